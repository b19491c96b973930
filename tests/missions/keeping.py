"""Handlers that keep one item after the other, as far as a file lets them; in the loop, in a thread, in a process."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from backend_loop.mission import Mission, state, steps, undo
from backend_loop.outcomes import Go, Outcome
from backend_loop.retry import Retry
from backend_loop.step_tools import StepTools
from backend_loop.toolbox import Toolbox
from tests.missions.tally import tally

TWICE = Retry(tries=2, base_s=0.01)


class Work(BaseModel):
    """So many items; as many are to be done as `gate` has bytes."""

    items: int
    gate: Path
    kills: bool = False
    """Each item kills its process once it is kept."""


class Kept(BaseModel):
    """What is done."""

    items: list[int] = []


def _open(tools: Any) -> bool:
    """Whether the next item may be done."""
    gate: Path = tools.payload.gate
    return gate.exists() and gate.stat().st_size > len(tools.context.items)


def _next(tools: Any) -> None:
    items: list[int] = tools.context.items
    items.append(len(items) + 1)
    tally(tools, f"item-{items[-1]}")
    tools.progress(len(items), tools.payload.items, f"item {items[-1]}")


def _kept(tools: Any) -> None:
    tally(tools, f"kept-{len(tools.context.items)}")
    if tools.payload.kills:
        os._exit(9)


def _done(tools: Any) -> Outcome:
    return Go("done", result={"items": tools.context.items})


async def _later(tools: Toolbox[Work, Kept]) -> Outcome:
    tally(tools, f"begin-{os.getpid()}")
    while len(tools.context.items) < tools.payload.items:
        while not _open(tools):  # noqa: ASYNC110  a file has no event
            await asyncio.sleep(0.01)
        _next(tools)
        await tools.checkpoint()
        _kept(tools)
    return _done(tools)


def _blocking(tools: StepTools[Work, Kept]) -> Outcome:
    tally(tools, f"begin-{os.getpid()}")
    while len(tools.context.items) < tools.payload.items:
        while not _open(tools):
            tools.check()
            time.sleep(0.01)
        _next(tools)
        tools.checkpoint()
        _kept(tools)
    return _done(tools)


class Keeps(Mission):
    """In the loop, with an undo that keeps what it takes back."""

    type = "test.keeps"
    table = steps("WORKING")
    Payload, Context = Work, Kept

    @state("WORKING", acting=True, timeout_s=600, retry=TWICE)
    async def work(self, tools: Toolbox[Work, Kept]) -> Outcome:
        return await _later(tools)

    @undo("WORKING", timeout_s=600, retry=TWICE)
    async def take_back(self, tools: Toolbox[Work, Kept]) -> None:
        tally(tools, f"begin-{os.getpid()}")
        while tools.context.items:
            tally(tools, f"undo-{tools.context.items.pop()}")
            await tools.checkpoint()


class KeepsInThread(Mission):
    """In a thread."""

    type = "test.keeps_thread"
    table = steps("WORKING")
    Payload, Context = Work, Kept

    @state("WORKING", runs="thread", timeout_s=600, retry=TWICE)
    def work(self, tools: StepTools[Work, Kept]) -> Outcome:
        return _blocking(tools)


class KeepsInProcess(Mission):
    """In a child process."""

    type = "test.keeps_process"
    table = steps("WORKING")
    Payload, Context = Work, Kept

    @state("WORKING", runs="process", timeout_s=600, retry=TWICE)
    def work(self, tools: StepTools[Work, Kept]) -> Outcome:
        return _blocking(tools)
