"""What is done is undone: a mission of three effects, each with an undo, that fails or hangs where its payload says.

Also what only the whole engine shows: a bulk mission of many states, and one on which newer replaces older.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from backend_loop.dependency import Dependency
from backend_loop.mission import Latest, Mission, state, steps, undo
from backend_loop.outcomes import Fail, Go, Outcome, Retry, Sleep
from backend_loop.retry import Retry as Policy
from backend_loop.toolbox import Toolbox
from shared.status import Priority
from tests.missions.gate import opened
from tests.missions.tally import tally

Tools = Toolbox[Any, Any]
NOWHERE = asyncio.Event  # nobody sets it


class Errand(Mission):
    """Reserve, charge, ship; the third one fails, or hangs in its act."""

    type = "test.errand"
    table = steps("RESERVING", "CHARGING", "SHIPPING")

    class Payload(BaseModel):
        """What goes wrong."""

        ship: Literal["fails", "hangs"] = "fails"
        refund: Literal["works", "fails", "hangs once"] = "works"

    class Context(BaseModel):
        """Who did what."""

        done: list[str] = Field(default_factory=list)

    @state("RESERVING", acting=True)
    async def reserve(self, tools: Tools) -> Outcome:
        tally(tools)
        tools.context.done.append("reserved")
        return Go("done")

    @state("CHARGING", acting=True)
    async def charge(self, tools: Tools) -> Outcome:
        tally(tools)
        tools.context.done.append("charged")
        return Go("done")

    @state("SHIPPING", acting=True, timeout_s=600)
    async def ship(self, tools: Tools) -> Outcome:
        tally(tools)
        if tools.payload.ship == "hangs":
            await NOWHERE().wait()
        return Fail("no ship sails")

    @undo("RESERVING")
    async def release(self, tools: Tools) -> None:
        tally(tools, "undo")

    @undo("CHARGING", timeout_s=600, retry=Policy(tries=2, base_s=0.01))
    async def refund(self, tools: Tools) -> Outcome | None:
        tally(tools, "undo")
        if tools.payload.refund == "fails":
            return Retry("the bank is closed")
        if tools.payload.refund == "hangs once" and not tools.taken_over:
            await NOWHERE().wait()
        return None

    @undo("SHIPPING")
    async def call_back(self, tools: Tools) -> None:
        tools.check()  # the deadline of the mission is none of its undo
        tally(tools, "perhaps" if tools.may_have_happened else "undo")


def _page(name: str) -> Callable[[Any, Any], Awaitable[Outcome]]:
    async def turn(_self: Mission, tools: Tools) -> Outcome:
        tally(tools)
        await opened(tools.payload.gate)
        return Go("done")

    return state(name)(turn)


class Ledger(Mission):
    """Six short states in the bulk lane, each behind the gate."""

    type = "test.ledger"

    class Payload(BaseModel):
        """When it goes on."""

        gate: Path | None = None

    priority = Priority.BULK
    table = steps("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX")
    one, two, three, four, five, six = (_page(name) for name in ("ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX"))


class Setting(Mission):
    """Sets something to a value; the newest value is what counts."""

    type = "test.setting"
    table = {"LOOKING": {"looked": "SETTING"}, "SETTING": {"set": "SUCCEEDED"}}
    target = "entity"
    latest = Latest(field="what", aspects={"on": "power", "off": "power", "warm": "temperature"})

    class Payload(BaseModel):
        """What of what."""

        entity: str
        what: str

    @state("LOOKING")
    async def look(self, tools: Tools) -> Outcome:
        tally(tools)
        return Go("looked")

    @state("SETTING", acting=True)
    async def set(self, tools: Tools) -> Outcome:
        tally(tools)
        return Go("set", result={"what": tools.payload.what})


class Spoken(Mission):
    """For the workers of a pool of its own."""

    type = "test.spoken"
    pool = "speech"
    table = steps("HEARING")

    @state("HEARING")
    async def hear(self, tools: Tools) -> Outcome:
        tally(tools)
        return Go("done")


GATE = Dependency("gate", concurrency=1, breaker=None)


class Passing(Mission):
    """Rests, then goes through a gate that takes one at a time; of those at one door the newest counts."""

    type = "test.passing"
    table = {"RESTING": {"rested": "PASSING"}, "PASSING": {"passed": "SUCCEEDED"}}
    target = "door"
    latest = Latest(aspect="way")

    class Payload(BaseModel):
        """Which door, and how long."""

        door: str
        rest_s: float = 0
        stays: bool = False

    class Context(BaseModel):
        """What was done."""

        rested: bool = False

    @state("RESTING")
    async def rest(self, tools: Tools) -> Outcome:
        if tools.context.rested or not tools.payload.rest_s:
            return Go("rested")
        tools.context.rested = True
        return Sleep(tools.payload.rest_s)

    @state("PASSING", acting=True, uses=(GATE,), timeout_s=600)
    async def go(self, tools: Tools) -> Outcome:
        tally(tools)
        if tools.payload.stays:
            await NOWHERE().wait()
        return Go("passed")
