"""What went wrong at the edges: an outcome near the limit, a first state that acts, one alone, data of an event."""

import asyncio
from typing import Any

from pydantic import BaseModel

from backend_loop.mission import Latest, Mission, state, steps, undo
from backend_loop.outcomes import Fail, Go, Outcome, Sleep, WaitFor
from backend_loop.toolbox import Toolbox
from tests.missions.tally import tally

Tools = Toolbox[Any, Any]


class Fat(Mission):
    """Fills its context, and then has more to say than there is room for."""

    type = "test.fat"
    table = steps("GROWING", "ENDING")

    class Payload(BaseModel):
        """How much."""

        bytes: int

    class Context(BaseModel):
        """All of it."""

        fat: str = ""

    @state("GROWING")
    async def grow(self, tools: Tools) -> Outcome:
        tools.context.fat = "x" * tools.payload.bytes
        return Go("done")

    @state("ENDING")
    async def end(self, tools: Tools) -> Outcome:
        tally(tools)
        return Go("done", result={"more": "y" * 2000})


class Reserving(Mission):
    """Hangs in the act of its first state, which can be undone."""

    type = "test.reserving"
    table = {"RESERVING": {"reserved": "SUCCEEDED"}}

    @state("RESERVING", acting=True, timeout_s=600)
    async def reserve(self, tools: Tools) -> Outcome:
        tally(tools)
        await asyncio.Event().wait()
        return Go("reserved")

    @undo("RESERVING")
    async def release(self, tools: Tools) -> None:
        tally(tools, "perhaps" if tools.may_have_happened else "undo")


class Counting(Mission):
    """One state alone, which counts in its context, and fails."""

    type = "test.counting"
    table = steps("COUNTING")

    class Context(BaseModel):
        """How far it is."""

        n: int = 0

    @state("COUNTING")
    async def count(self, tools: Tools) -> Outcome:
        tally(tools, f"n{tools.context.n}")
        tools.context.n += 1
        return Fail("no further") if tools.context.n == 2 else Sleep(0.01)


class Dial(Mission):
    """Looks for a while, and then turns a dial; the newest command is what counts."""

    type = "test.dial"
    table = {"LOOKING": {"looked": "TURNING"}, "TURNING": {"turned": "SUCCEEDED"}}
    target = "dial"
    latest = Latest(aspect="angle")

    class Payload(BaseModel):
        """Which one."""

        dial: str

    @state("LOOKING")
    async def look(self, tools: Tools) -> Outcome:
        tally(tools)
        await asyncio.sleep(1)
        return Go("looked")

    @state("TURNING", acting=True)
    async def turn(self, tools: Tools) -> Outcome:
        tally(tools)
        return Go("turned")


class Addressed(Mission):
    """An event says where to ship to; no lorry goes there."""

    type = "test.addressed"
    table = {"LISTENING": {"ADDRESS": "SHIPPING"}, "SHIPPING": {"shipped": "SUCCEEDED"}}

    @state("LISTENING")
    async def listen(self, tools: Tools) -> Outcome:
        tally(tools)
        return WaitFor("ADDRESS", 600)

    @state("SHIPPING")
    async def ship(self, tools: Tools) -> Outcome:
        tally(tools, f"to-{(tools.received or {}).get('street')}")
        return Fail("no lorry")
