"""A question is answered where one waits: one line, of what was typed after it, as long as it is open."""

import asyncio
import os
import pty
import select
from collections.abc import Iterator
from typing import Any, cast

import pytest

from dualloop.cli.answering import PROMPT, Desk
from dualloop.client_faults import ClientProblem

ASKS = {"op": "event", "state": "ASKING", "data": {"spoken": "In which room?", "question": "where"}}
WAITS = {"op": "event", "state": "ASKING", "data": None}
GOES_ON = {"op": "event", "state": "CANCELLED", "data": None}


class Stage:
    """A terminal, the line at its bottom, and whoever asked."""

    def __init__(self, keys: int, terminal: int) -> None:
        self.keys, self.terminal = keys, terminal
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self.shown: list[str] = []
        self.desk = Desk(cast("Any", self), self._tell, terminal)

    def hold(self) -> None:
        self.shown.append("held")

    def go_on(self) -> None:
        self.shown.append("goes on")

    def type(self, line: str) -> None:
        """Typed, and there to be read."""
        os.write(self.keys, f"{line}\n".encode())
        assert select.select([self.terminal], [], [], 30)[0]

    async def heard(self) -> str:
        async with asyncio.timeout(30):
            return await self.told.get()

    async def _tell(self, text: str) -> None:
        self.told.put_nowait(text)
        if text == "no room":
            raise ClientProblem({"status": 409, "code": "ended", "title": "x", "detail": "it has ended"})


@pytest.fixture
def stage() -> Iterator[Stage]:
    keys, terminal = pty.openpty()
    yield Stage(keys, terminal)
    os.close(keys)
    os.close(terminal)


async def test_each_question_takes_one_line(stage: Stage) -> None:
    for answer in ("the study", "书房"):
        stage.desk.ask(ASKS)
        stage.desk.see(WAITS)
        stage.type(answer)
        assert await stage.heard() == answer
    assert stage.shown == ["held", "goes on"] * 2


async def test_what_was_typed_before_the_question_is_no_answer(stage: Stage) -> None:
    stage.type("yes")
    stage.desk.ask(ASKS)
    stage.type("no")
    assert await stage.heard() == "no"


async def test_an_empty_line_is_none_either(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.desk.ask(ASKS)
    os.write(stage.keys, b"  \nthe hall\n")
    assert await stage.heard() == "the hall"
    assert capsys.readouterr().out == 2 * PROMPT


async def test_a_question_that_is_over_takes_nothing(stage: Stage) -> None:
    stage.desk.ask(ASKS)
    stage.desk.see(GOES_ON)
    stage.desk.close()
    assert stage.shown == ["held", "goes on"]
    assert not asyncio.get_running_loop().remove_reader(stage.terminal)


async def test_an_answer_that_is_refused_is_said_to_be(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.desk.ask(ASKS)
    stage.type("no room")
    await stage.heard()
    assert capsys.readouterr().out.splitlines()[-1].endswith("It was not told: it has ended")
