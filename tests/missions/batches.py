"""Batches, in the loop and beside it: each item leaves a line with its key, so that a test sees what was done twice."""

import os
import time
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from backend_loop.batch import Budget, Ledger, each, each_sync
from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome
from backend_loop.retry import Retry
from backend_loop.services import ServiceUnavailable
from backend_loop.step_tools import StepTools
from backend_loop.toolbox import Toolbox
from tests.missions.gate import opened

VARIABLE: Final = "DUALLOOP_TEST_ITEMS"
"""Environment: the file that the lines go to."""

POLICY: Final = Retry(tries=3, base_s=0.01)


class Many(BaseModel):
    """How many items, and what is wrong with some."""

    count: int = 200
    every: int = 40
    fails_each: int = 0
    may_fail: int | None = None
    down_at: int | None = None
    gate: Path | None = None
    """What the second half waits for."""

    def closed(self, item: int) -> Path | None:
        """The gate before this item, if there is one."""
        return self.gate if 2 * item >= self.count else None


class Far(BaseModel):
    """How far it is."""

    ledger: Ledger = Ledger()


def leave(payload: Many, attempt: int, item: int, key: str) -> int:
    """What is done for an item."""
    if item == payload.down_at and attempt == 1:
        raise ServiceUnavailable("down for once")
    with Path(os.environ[VARIABLE]).open("a") as file:
        file.write(f"{key}\n")
    if payload.fails_each and item % payload.fails_each == 0:
        raise ValueError(f"item {item} cannot be had")
    return item


def budget(payload: Many) -> Budget:
    return Budget(count=payload.may_fail)


class InLoop(Mission):
    """Some at once."""

    type = "test.batch_loop"
    table = steps("WORKING")
    retryable = (ServiceUnavailable,)
    Payload = Many
    Context = Far

    @state("WORKING", retry=POLICY)
    async def work(self, tools: Toolbox[Many, Far]) -> Outcome:
        payload, ledger = tools.payload, tools.context.ledger

        async def one(item: int, key: str) -> int:
            await opened(payload.closed(item))
            return leave(payload, tools.attempt, item, key)

        await each(
            tools, ledger, range(payload.count), one, key=str, every=payload.every, at_once=4, budget=budget(payload)
        )
        return Go("done", result=ledger.summary())


def plainly(tools: StepTools[Many, Far]) -> Outcome:
    payload, ledger = tools.payload, tools.context.ledger

    def one(item: int, key: str) -> int:
        gate = payload.closed(item)
        while gate is not None and not gate.exists():
            time.sleep(0.01)
        return leave(payload, tools.attempt, item, key)

    each_sync(tools, ledger, range(payload.count), one, key=str, every=payload.every, budget=budget(payload))
    return Go("done", result=ledger.summary())


class InThread(Mission):
    """One after the other, in a thread."""

    type = "test.batch_thread"
    table = steps("WORKING")
    retryable = (ServiceUnavailable,)
    Payload = Many
    Context = Far

    @state("WORKING", runs="thread", retry=POLICY)
    def work(self, tools: StepTools[Many, Far]) -> Outcome:
        return plainly(tools)


class InProcess(Mission):
    """One after the other, in a process."""

    type = "test.batch_process"
    table = steps("WORKING")
    retryable = (ServiceUnavailable,)
    Payload = Many
    Context = Far

    @state("WORKING", runs="process", retry=POLICY)
    def work(self, tools: StepTools[Many, Far]) -> Outcome:
        return plainly(tools)
