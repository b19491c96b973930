"""`etl.run` on the test kit: killed before and after each commit, its own and its children's; failed, and replayed."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from backend_loop.missions.etl_run import EtlExtract, EtlLoad, EtlRun, EtlTransform
from backend_loop.testing import Bench, Kill, Trial

JOB: Final[dict[str, Any]] = {
    "source": "people.csv",
    "fields": [{"name": "id", "type": "integer", "required": True}],
    "table": "people",
    "chunk_rows": 2,
    "budget": {"count": 1},
}
REJECT: Final = {"line": 4, "reason": "id is 'x', and no integer", "raw": "x"}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    Path("data/people.csv").write_text("id\n1\n2\nx\n4\n5\n")


def bench(folder: str) -> Bench:
    """With a database and files of its own."""
    stages = (EtlExtract, EtlTransform, EtlLoad)
    return Bench(EtlRun, *stages, database=f"sqlite:///{folder}/it.sqlite", files=Path(folder, "files").absolute())


def run(folder: str, kill: Kill | Iterable[Kill] = ()) -> Trial:
    return bench(folder).run(JOB, kill=kill)


def check(folder: str, mission: Trial) -> None:
    """Each good row is in, once; the bad one is told; nothing is left."""
    assert mission.status == "SUCCEEDED", mission.error
    assert mission.result is not None
    assert [mission.result[name] for name in ("rows", "loaded", "rejected", "lost")] == [5, 4, 1, 0]
    assert ids(folder) == [1, 2, 4, 5]
    (report,) = Path(folder, "files", mission.task_id).iterdir()
    assert [json.loads(line) for line in report.read_text().splitlines()] == [REJECT]


def _report(mission: Trial) -> list[bytes]:
    return Path("it/files", mission.task_id, "rejects.jsonl").read_bytes().splitlines()


def ids(folder: str) -> list[int]:
    with closing(sqlite3.connect(Path(folder, "it.sqlite"))) as db:
        return [row[0] for row in db.execute("SELECT id FROM people ORDER BY rowid")]


@pytest.mark.timeout(300)
def test_wherever_it_is_killed_each_good_row_is_loaded_once() -> None:
    places, kills = run("whole").places, 0
    for number, kill in enumerate(places):
        mission = run(f"killed-{number}", kill)
        kills += len(mission.killed)
        check(f"killed-{number}", mission)
    assert kills > 40, "whose child ends first is a matter of threads, and with it how many commits there are"


def fails(folder: str, kill: Kill | Iterable[Kill] = ()) -> Trial:
    """One row cannot be loaded, beside the one that is bad; looks what is said of it, and that nothing else is left."""
    Path(folder).mkdir()
    with closing(sqlite3.connect(f"{folder}/it.sqlite")) as db:
        db.execute("CREATE TABLE people (id INTEGER)")
        overflow = "SELECT abs(-9223372036854775807 - 1)"
        db.execute(f"CREATE TRIGGER breaks BEFORE INSERT ON people WHEN new.id = 4 BEGIN {overflow}; END")
    mission = run(folder, kill)
    assert (mission.status, mission.state) == ("FAILED", "FAILED")
    assert mission.error is not None
    assert (mission.error["state"], mission.error["message"]) == ("MOVING", "2 of 5 items failed, and 1 may")
    assert ids(folder) == [1, 2]
    (report,) = Path(folder, "files", mission.task_id).iterdir()
    assert [json.loads(line) for line in report.read_text().splitlines()] == [
        REJECT,
        {"line": 4, "reason": "etl.load ended FAILED: OperationalError: integer overflow (try 5 of 5)", "rows": 1},
        {"line": 6, "reason": "not loaded: 2 of 5 items failed, and 1 may", "rows": 1},
    ]
    return mission


def test_wherever_it_is_killed_towards_its_failure_the_report_is_whole() -> None:
    """It is made of what lies between the stages, which is removed then."""
    for number, kill in enumerate(fails("whole").places[-10:]):
        fails(f"killed-{number}", kill)


def test_its_children_are_told_apart_from_those_of_a_run_before_a_replay() -> None:
    """What they had extracted is not there any more."""
    mission = fails("it")
    with closing(sqlite3.connect("it/it.sqlite")) as db:
        db.execute("DROP TRIGGER breaks")
    mission.replay().run()
    assert mission.status == "SUCCEEDED", mission.error
    assert ids("it") == [1, 2, 4, 5]
    assert mission.result is not None
    assert mission.result["loaded"] == 4
    assert _report(mission) == [json.dumps(REJECT, separators=(",", ":")).encode()]
