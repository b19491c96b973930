"""A mission that writes more than it may ends with a plain sentence, and leaves nothing half."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from backend_loop import step_tools
from backend_loop.files import Files
from backend_loop.mission import Mission, state
from backend_loop.outcomes import Go, Outcome
from backend_loop.step_tools import StepTools
from backend_loop.testing import Bench
from backend_loop.toolbox import Toolbox
from shared.settings import Settings

TABLE: Mapping[str, Mapping[str, str]] = {"WRITING": {"done": "SUCCEEDED"}}
PAGE = b"x" * 1000


class Writes(Mission):
    """Writes pages without end, a checkpoint behind each."""

    type = "test.writes"
    table: ClassVar[Mapping[str, Mapping[str, str]]] = TABLE

    @state("WRITING")
    async def write(self, tools: Toolbox[Any, Any]) -> Outcome:
        file = tools.file("pages.txt")
        with file.resume(0) as out:
            for _ in range(10):
                out.write(PAGE)
                out.flush()
                await tools.checkpoint()
        return Go("done")


class WritesBeside(Mission):
    """Likewise, in a thread."""

    type = "test.writes_beside"
    table: ClassVar[Mapping[str, Mapping[str, str]]] = TABLE

    @state("WRITING", runs="thread")
    def write(self, tools: StepTools[Any, Any]) -> Outcome:
        file = tools.file("pages.txt")
        with file.resume(0) as out:
            for _ in range(10):
                out.write(PAGE)
                out.flush()
                tools.checkpoint()
        return Go("done")


class WritesOn(Mission):
    """Asks whether it may go on, and keeps nothing."""

    type = "test.writes_on"
    table: ClassVar[Mapping[str, Mapping[str, str]]] = TABLE

    @state("WRITING", runs="thread")
    def write(self, tools: StepTools[Any, Any]) -> Outcome:
        file = tools.file("pages.txt")
        with file.path.open("wb", buffering=0) as out:
            for _ in range(10):
                out.write(PAGE)
                tools.check()
        return Go("done")


class WritesAtOnce(Mission):
    """All of it before it is given out."""

    type = "test.writes_at_once"
    table: ClassVar[Mapping[str, Mapping[str, str]]] = TABLE

    @state("WRITING")
    async def write(self, tools: Toolbox[Any, Any]) -> Outcome:
        file = tools.file("pages.txt")
        file.path.write_bytes(10 * PAGE)
        return Go("done", result={"file": file.publish()})


def test_no_checkpoint_looks_at_them_in_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, look = list[int](), Files.bound

    def looking(files: Files, task_id: str) -> None:
        looked.append(threading.get_ident())
        look(files, task_id)

    monkeypatch.setattr(Files, "bound", looking)
    assert Bench(Writes, files=tmp_path).run({}).status == "SUCCEEDED"
    assert len(looked) == 10
    assert threading.get_ident() not in looked


@pytest.mark.parametrize(
    ("mission", "size"), [(Writes, 5000), (WritesBeside, 5000), (WritesOn, 5000), (WritesAtOnce, 10_000)], ids=str
)
def test_its_end_says_how_much_there_was(
    mission: type[Mission], size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_tools, "LOOK_S", 0.0)
    settings = Settings(_env_file=None, max_files_bytes=4_500)
    trial = Bench(mission, settings=settings, files=tmp_path).run({})
    assert trial.document is not None
    error = trial.document["error"]
    assert (error["code"], error["message"]) == ("too_large", f"its files have {size} bytes, of 4500 allowed")
    assert list((tmp_path / trial.task_id).iterdir()) == []
