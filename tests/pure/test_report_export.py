"""`report.export` as its handlers run, with the tools played: cut wherever it may be, the file is the same."""

import hashlib
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError

from backend_loop.database import DatabaseUrlError, NoDatabaseError, connect
from backend_loop.files import File, Files
from backend_loop.missions import report_export
from backend_loop.missions.report_export import ReportExport
from backend_loop.outcomes import Go
from backend_loop.report.query import NoTableError
from tests.reports import fill, person, read

TASK = "0" * 40
PAGE, AT_ONCE = 40, 10
COUNT = 3 * PAGE + 7


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_export, "PAGE", PAGE)
    monkeypatch.setattr(report_export, "AT_ONCE", AT_ONCE)


class CutHere(BaseException):
    """kill -9, as far as a handler can tell."""


class Played:
    """The tools of one mission; each run has a lease of its own, and begins with what was kept."""

    def __init__(self, folder: Path, **payload: Any) -> None:
        self.files, self.database = Files(folder / "files"), f"sqlite:///{folder}/data.sqlite"
        self.payload = ReportExport.Payload.model_validate({"table": "people"} | payload)
        self.context = ReportExport.Context()
        self.fence, self.points = 0, 0
        self.cut_at: int | None = None
        self.told: list[tuple[float, float | None, str | None]] = []
        self.keep()

    def keep(self) -> None:
        self.kept = self.context.model_dump_json()

    def point(self) -> None:
        """Here a worker may be lost."""
        self.points += 1
        if self.points == self.cut_at:
            raise CutHere

    def file(self, name: str) -> File:
        return self.files.file(TASK, name, self.fence, self.check)

    def check(self) -> None:
        self.point()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        self.told.append((done, total, message))

    def checkpoint(self) -> None:
        self.point()
        self.keep()
        self.point()

    def run(self, handler: Callable[[Any, Any], Any]) -> dict[str, Any]:
        self.fence += 1
        self.context = ReportExport.Context.model_validate_json(self.kept)
        outcome = handler(ReportExport(), cast("Any", self))
        assert isinstance(outcome, Go)
        self.event = outcome.event
        self.keep()
        return dict(outcome.result or {})

    def whole(self) -> bytes:
        """From the first handler to the end."""
        self.run(ReportExport.count)
        return self.found(self.run(ReportExport.export))

    def found(self, result: dict[str, Any]) -> bytes:
        """The file, as the result says it is."""
        data = self.files.find(result["file"]).read_bytes()
        assert (result["bytes"], result["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        return data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    fill(folder / "data.sqlite", COUNT)
    return folder


def played(folder: Path, tmp_path: Path, **payload: Any) -> Played:
    tools = Played(folder, **payload)
    tools.files = Files(tmp_path / "files")
    return tools


def test_all_rows_are_there_in_order(folder: Path, tmp_path: Path) -> None:
    tools = played(folder, tmp_path)
    assert read(tools.whole()) == [person(n) for n in range(1, COUNT + 1)]
    assert [tools.told[0], tools.told[-1]] == [(0, COUNT, None), (COUNT, COUNT, None)]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_wherever_it_is_cut_the_file_is_the_same_to_the_last_byte(folder: Path, tmp_path: Path, form: str) -> None:
    undisturbed = played(folder, tmp_path / "whole", format=form)
    whole = undisturbed.whole()
    for point in range(2, undisturbed.points + 1):
        tools = played(folder, tmp_path / str(point), format=form)
        tools.run(ReportExport.count)
        tools.cut_at = point
        with pytest.raises(CutHere):
            tools.run(ReportExport.export)
        assert tools.found(tools.run(ReportExport.export)) == whole, point


def test_it_goes_on_where_it_was_right(folder: Path, tmp_path: Path) -> None:
    tools = played(folder, tmp_path)
    tools.run(ReportExport.count)
    tools.cut_at = next(point for point in range(1, 1000) if _rows_kept(tools, point) == 2 * PAGE)
    begun = len(tools.told)
    tools.run(ReportExport.export)
    assert tools.told[begun][0] > 2 * PAGE, "the first two pages are not written again"


def _rows_kept(tools: Played, point: int) -> int:
    """Cut there, and anew next time."""
    tools.cut_at, tools.points, before = point, 0, tools.kept
    with pytest.raises(CutHere):
        tools.run(ReportExport.export)
    rows = ReportExport.Context.model_validate_json(tools.kept).rows
    if rows != 2 * PAGE:
        tools.kept = before
    return rows


def test_cut_after_it_was_published_it_is_published_again(folder: Path, tmp_path: Path) -> None:
    tools = played(folder, tmp_path)
    tools.run(ReportExport.count)
    before_the_end = tools.kept
    first = tools.found(tools.run(ReportExport.export))
    tools.kept = before_the_end
    assert tools.found(tools.run(ReportExport.export)) == first


def test_what_was_written_on_another_machine_is_written_anew(folder: Path, tmp_path: Path) -> None:
    whole = played(folder, tmp_path / "whole").whole()
    tools = played(folder, tmp_path / "here")
    tools.run(ReportExport.count)
    tools.cut_at = 20
    with pytest.raises(CutHere):
        tools.run(ReportExport.export)
    assert ReportExport.Context.model_validate_json(tools.kept).written > 0
    tools.files = Files(tmp_path / "there")
    assert tools.found(tools.run(ReportExport.export)) == whole


def test_a_view_is_read_in_one_go_and_anew(folder: Path, tmp_path: Path) -> None:
    whole = played(folder, tmp_path / "whole", table="tall").whole()
    tools = played(folder, tmp_path / "cut", table="tall")
    tools.run(ReportExport.count)
    tools.cut_at = 7
    with pytest.raises(CutHere):
        tools.run(ReportExport.export)
    assert tools.found(tools.run(ReportExport.export)) == whole
    assert whole.count(b"\n") == COUNT - 40 + 1


@pytest.mark.parametrize("change", ["VACUUM", "ALTER TABLE bare DROP COLUMN city"])
def test_where_rows_are_numbered_anew_or_columns_go_it_begins_anew(tmp_path: Path, change: str) -> None:
    fill(tmp_path / "data.sqlite", COUNT)
    tools = Played(tmp_path, table="bare")
    with closing(connect(tools.database)) as db:
        db.execute("CREATE TABLE bare AS SELECT * FROM people")  # no key, so that its rows are numbered by their place
        db.execute("DELETE FROM bare WHERE id <= 10")
        tools.run(ReportExport.count)
        tools.cut_at = 20
        with pytest.raises(CutHere):
            tools.run(ReportExport.export)
        assert ReportExport.Context.model_validate_json(tools.kept).written > 0
        db.execute(change)
    assert tools.run(ReportExport.export) == {}
    assert tools.event == "changed"
    rows = tools.whole().decode().splitlines()
    assert [int(row.split(",")[0]) for row in rows[1:]] == list(range(11, COUNT + 1))


def test_columns_conditions_form_and_name_are_as_said(folder: Path, tmp_path: Path) -> None:
    where = [{"column": "city", "op": "is null"}, {"column": "id", "op": "<=", "value": 20}]
    tools = played(folder, tmp_path, columns=["name", "id"], where=where, format="jsonl", name="few.jsonl")
    rows = [json.loads(line) for line in tools.whole().splitlines()]
    assert rows == [{"name": person(n)[1], "id": n} for n in (5, 10, 15, 20)]
    result = tools.run(ReportExport.export)
    assert (result["file"], result["rows"], result["table"]) == (f"/v1/files/{TASK}/few.jsonl", 4, "people")


def test_what_is_not_there_is_said(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(NoTableError, match="there are people, tall"):
        played(folder, tmp_path, table="nobody").run(ReportExport.count)
    nowhere = Played(tmp_path / "nowhere")
    with pytest.raises(NoDatabaseError, match="no database"):
        nowhere.run(ReportExport.count)
    nowhere.database = "postgresql://somewhere/data"
    with pytest.raises(DatabaseUrlError, match="set DUALLOOP_DATABASE"):
        nowhere.run(ReportExport.count)


def test_text_that_is_none_comes_out_readable(tmp_path: Path) -> None:
    fill(tmp_path / "data.sqlite", 1)
    tools = Played(tmp_path, columns=["name"])
    with closing(connect(tools.database)) as db:
        db.execute("UPDATE people SET name = CAST(x'41ff42' AS TEXT)")
    assert tools.whole().decode() == "name\r\nA\ufffdB\r\n"


@pytest.mark.parametrize(
    "wrong",
    [
        {"table": ""},
        {"table": "a\0b"},
        {"columns": []},
        {"columns": ["id", "ID"]},
        {"where": [{"column": "id"}]},
        {"where": [{"column": "id", "op": "=", "value": 1}] * 21},
        {"format": "xlsx"},
        {"name": "../up.csv"},
        {"name": ".hidden"},
        {"sql": "SELECT 1"},
    ],
)
def test_nonsense_is_refused_at_the_door(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ReportExport.Payload.model_validate({"table": "people"} | wrong)
