"""A child that was killed and is not gone yet: what was cut is cut all the same."""

import asyncio
from typing import Any

import pytest

from backend_loop.step_frames import Frame
from backend_loop.step_processes import Children
from tests.missions.heavy import InProcess
from tests.processes.executing import executing


class Unheard:
    """A child whose end nobody hears of."""

    cut = False

    def __init__(self) -> None:
        self.running: asyncio.Task[Any] | None = None

    async def run(self, *_: object) -> Frame:
        self.running = asyncio.current_task()
        never: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        return await never

    def terminate(self) -> None:
        self.cut = True

    def kill(self) -> None:
        """It takes a while."""


async def test_a_killed_handler_is_cut_even_if_its_end_is_not_heard_of_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    child, back = Unheard(), list[bool]()

    async def borrow(_children: Children, _module: str) -> Unheard:
        return child

    monkeypatch.setattr(Children, "borrow", borrow)
    monkeypatch.setattr(Children, "back", lambda _children, _child, *, usable: back.append(usable))
    async with executing(cut_grace_s=0.01) as bench:
        one = bench.run(InProcess, "answer")
        await one.began.wait()
        one.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one.end()
        assert back == [False]
        assert child.running is not None
        await asyncio.wait({child.running})  # nothing is left that waits for its word
