"""A batch as its author has it, in the loop and beside it: the tools are played, the files are real."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from backend_loop.batch import Ledger, each, each_sync
from backend_loop.files import File, Files

TASK = "0" * 40
Work = Callable[[int, str], Any]
Run = Callable[..., Any]


class Killed(BaseException):
    """kill -9, as far as a handler can tell."""


class Desk:
    """A mission and its tools: what a checkpoint has kept is where the next run begins."""

    def __init__(self, folder: Path) -> None:
        self.files = Files(folder)
        self.key = f"{TASK}:1:SENDING:1"
        self.kept = Ledger().model_dump_json()
        self.ledger = Ledger()
        self.fence = 0
        self.told: list[tuple[float, float | None, str | None]] = []
        self.checkpoints: list[int] = []
        self.on_checkpoint: Callable[[], None] = lambda: None
        self.on_check: Callable[[], None] = lambda: None

    def begin(self) -> Ledger:
        """A new run, under a new lease."""
        self.fence += 1
        self.ledger = Ledger.model_validate_json(self.kept)
        return self.ledger

    def file(self, name: str) -> File:
        return self.files.file(TASK, name, self.fence, self.check)

    def check(self) -> None:
        self.on_check()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        self.told.append((done, total, message))

    def keep(self) -> None:
        """What a commit writes down: a checkpoint's, or that of a failed try."""
        self.kept = self.ledger.model_dump_json()

    def checkpoint(self) -> None:
        self.keep()
        self.checkpoints.append(self.ledger.done)
        self.on_checkpoint()

    def report(self) -> list[dict[str, Any]]:
        assert self.ledger.report is not None
        return [json.loads(line) for line in self.files.find(self.ledger.report).read_text().splitlines()]


class Awaited:
    """A desk as a handler in the loop has it."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.key = desk, desk.key
        self.file, self.progress = desk.file, desk.progress

    async def checkpoint(self) -> None:
        await asyncio.sleep(0)
        self.desk.checkpoint()


async def in_loop(desk: Desk, items: Any, work: Work, **terms: Any) -> Ledger:
    async def one(item: int, key: str) -> Any:
        await asyncio.sleep(0)
        return work(item, key)

    ledger = desk.begin()
    await each(Awaited(desk), ledger, items, one, **({"key": str} | terms))
    return ledger


async def beside_it(desk: Desk, items: Any, work: Work, **terms: Any) -> Ledger:
    ledger = desk.begin()
    await asyncio.to_thread(partial(each_sync, desk, ledger, items, work, **({"key": str} | terms)))
    return ledger


def dies_at(times: int) -> Callable[[], None]:
    """Raises `Killed` when it is called for that time."""
    left = iter(range(times - 1))

    def die() -> None:
        if next(left, None) is None:
            raise Killed

    return die


def double(item: int, _key: str) -> int:
    return 2 * item


def picky(item: int, _key: str) -> int:
    if item % 7 == 3:
        raise ValueError(f"{item} is not liked")
    return item
