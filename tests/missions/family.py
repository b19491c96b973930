"""Missions that spawn missions: a wide one, a deep one, and the children that they have."""

import asyncio
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from backend_loop.mission import Mission, state, undo
from backend_loop.outcomes import Fail, Go, Outcome, WaitForChildren
from backend_loop.toolbox import Toolbox
from tests.missions.tally import VARIABLE, tally

Tools = Toolbox[Any, Any]
NOWHERE = asyncio.Event  # nobody sets it


def _healed() -> bool:
    """Whether there is a file of that name beside the tally."""
    return VARIABLE in os.environ and Path(os.environ[VARIABLE]).with_name("healed").exists()


class Kid(Mission):
    """Works, fails, or hangs in its act; what ails fails until it is healed."""

    type = "test.kid"
    table = {"WORKING": {"done": "SUCCEEDED"}}
    target = "at"

    class Payload(BaseModel):
        """What becomes of it."""

        n: int = 0
        how: Literal["works", "fails", "hangs", "ails"] = "works"
        seconds: float = 0.0
        at: str | None = None

    @state("WORKING", acting=True, timeout_s=600)
    async def work(self, tools: Tools) -> Outcome:
        tally(tools)
        if tools.payload.how == "hangs":
            await NOWHERE().wait()
        await asyncio.sleep(tools.payload.seconds)
        if tools.payload.how == "fails" or (tools.payload.how == "ails" and not _healed()):
            return Fail(f"number {tools.payload.n} is tired")
        return Go("done", result={"n": tools.payload.n})


class Fan(Mission):
    """Spawns its children, waits for them, and says what became of them."""

    type = "test.fan"
    target = "at"
    table = {"SPREADING": {"spread": "SUCCEEDED"}}
    deadline_s = 3600

    class Payload(BaseModel):
        """Whom, and how it waits."""

        kids: list[dict[str, Any]] = Field(default_factory=list)
        policy: Literal["all", "any"] | int = "all"
        on_failure: Literal["fail", "continue"] = "fail"
        bound: int | None = None
        at: str | None = None

    @state("SPREADING", timeout_s=60)
    async def spread(self, tools: Tools) -> Outcome:
        tally(tools)
        payload = tools.payload
        if not tools.children:
            for n, kid in enumerate(payload.kids):
                tools.spawn("test.kid", {"n": n, **kid}, name=f"kid-{n}")
            return WaitForChildren(payload.policy, payload.on_failure, bound=payload.bound)
        ends = {one.name: one.status for one in tools.children if one.ended}
        results = [one.result["n"] for one in tools.children if one.succeeded]
        return Go("spread", result={"ends": ends, "sum": sum(results)})


class Line(Mission):
    """Spawns one like itself, so deep; the last one of the line hangs."""

    type = "test.line"
    table = {"GROWING": {"grown": "SUCCEEDED"}}
    deadline_s = 3600

    class Payload(BaseModel):
        """How many more there are to come."""

        deep: int = 2

    @state("GROWING", timeout_s=600)
    async def grow(self, tools: Tools) -> Outcome:
        tally(tools)
        if tools.payload.deep == 0:
            await NOWHERE().wait()
        tools.spawn("test.line", {"deep": tools.payload.deep - 1})
        return WaitForChildren(event="grown")


class Careful(Mission):
    """Waits in its undo until its children have really ended."""

    type = "test.careful"
    table = {"SPREADING": {"spread": "SUCCEEDED"}}

    @state("SPREADING", acting=True)
    async def spread(self, tools: Tools) -> Outcome:
        if not tools.children:
            tools.spawn("test.kid", {"n": 0})
            tools.spawn("test.kid", {"n": 1, "how": "hangs"})
        return WaitForChildren(event="spread")

    @undo("SPREADING")
    async def gather(self, tools: Tools) -> Outcome | None:
        if not all(one.ended for one in tools.children):
            return WaitForChildren("all", "continue")
        for one in tools.children:
            tally(tools, f"undo-{one.status}")
        return None
