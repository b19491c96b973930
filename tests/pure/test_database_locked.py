"""A database that another process holds locked for long: whoever loads or exports waits for it, and says so."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from backend_loop import database
from backend_loop.etl import chunk_file
from backend_loop.missions import etl_run, report_export
from backend_loop.missions.etl_run import EtlExtract, EtlLoad, EtlRun, EtlTransform
from backend_loop.missions.report_export import ReportExport
from backend_loop.outcomes import Sleep
from backend_loop.testing import Bench, Trial

URL: Final = "sqlite:///it.sqlite"
JOB: Final[dict[str, Any]] = {
    "source": "people.csv",
    "fields": [{"name": "id", "type": "integer"}],
    "table": "people",
    "chunk_rows": 2,
}
WAITS: Final = 60
"""Of ten seconds: far more than the tries of a state."""


@pytest.fixture(autouse=True)
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """The connection of another process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(database, "BUSY_S", 0.01)
    Path("data").mkdir()
    Path("data/people.csv").write_text("id\n1\n2\n3\n")
    with closing(sqlite3.connect("it.sqlite", isolation_level=None, check_same_thread=False)) as db:
        yield db


@pytest.fixture
def lock(other: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType, str, int], None]:
    """Lock it just before the n-th call of a function, and until somebody has waited for it long enough."""

    def at(module: ModuleType, name: str, n: int) -> None:
        called, calls, waits = getattr(module, name), count(1), count(1)

        def first_locked(*of: Any) -> Any:
            if next(calls) == n:
                other.execute("PRAGMA journal_mode=DELETE")  # in which a writer shuts out readers too
                other.execute("BEGIN EXCLUSIVE")
            return called(*of)

        def until_free(*of: Any) -> Any:
            if next(waits) == WAITS:
                other.execute("ROLLBACK")
            return database.until_free(*of)

        monkeypatch.setattr(module, name, first_locked)
        monkeypatch.setattr(etl_run, "until_free", until_free)
        monkeypatch.setattr(report_export, "until_free", until_free)

    return at


def load() -> Trial:
    return Bench(EtlRun, EtlExtract, EtlTransform, EtlLoad, database=URL, files=Path("files").absolute()).accept(JOB)


def loaded(mission: Trial, other: sqlite3.Connection) -> None:
    assert mission.status == "SUCCEEDED", mission.told()
    assert other.execute("SELECT id FROM people ORDER BY id").fetchall() == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("module", "name", "n"),
    [
        pytest.param(etl_run, "_tidy", 1, id="making the table"),
        pytest.param(chunk_file, "transformed", 1, id="loading a chunk"),
        pytest.param(etl_run, "_report", 1, id="reporting"),
        pytest.param(etl_run, "_tidy", 2, id="tidying"),
    ],
)
def test_an_import_waits_wherever_it_is_and_loses_no_row(
    other: sqlite3.Connection, lock: Callable[..., None], module: ModuleType, name: str, n: int
) -> None:
    lock(module, name, n)
    mission = load().run()
    loaded(mission, other)
    assert mission.took_s >= WAITS * 10 - 10


@pytest.mark.parametrize("n", [1, 2], ids=["counting", "writing"])
def test_an_export_waits_too(other: sqlite3.Connection, lock: Callable[..., None], n: int) -> None:
    other.executescript("CREATE TABLE people (id INTEGER); INSERT INTO people VALUES (1), (2), (3)")
    lock(report_export, "_open", n)
    mission = Bench(ReportExport, database=URL, files=Path("files").absolute()).run({"table": "people"})
    assert mission.result is not None, mission.told()
    assert mission.file(mission.result["file"]).read_text().split() == ["id", "1", "2", "3"]
    assert mission.took_s >= WAITS * 10 - 10


class Told:
    """What a handler has said."""

    def __init__(self) -> None:
        self.said: tuple[float, float | None, str | None] = (0, None, None)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        self.said = done, total, message


def test_it_says_what_it_waits_for(other: sqlite3.Connection) -> None:
    other.execute("BEGIN EXCLUSIVE")
    tools = Told()
    with pytest.raises(sqlite3.OperationalError) as fault:
        database.connect(URL)
    assert database.until_free(tools, fault.value, 3, 7) == Sleep(10)
    assert tools.said == (3, 7, "the database is locked by another process: it is tried again every 10 s")


def test_what_is_wrong_otherwise_is_no_lock() -> None:
    Path("it.sqlite").write_bytes(b"no database at all" * 100)
    mission = load().run()
    assert mission.error is not None
    assert mission.error["message"] == "DatabaseError: file is not a database (try 5 of 5)"
