"""Handlers and models as no author should write them; each one's damage must stay its own."""

import asyncio
import sys
from typing import Any

from pydantic import BaseModel, field_validator

from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome
from backend_loop.outcomes import Retry as RetryOutcome
from backend_loop.retry import Retry
from backend_loop.toolbox import Toolbox
from tests.missions.tally import tally

Tools = Toolbox[Any, Any]
TWICE = Retry(tries=2, base_s=0.01)


class Puzzled(Mission):
    """Its validator raises what pydantic does not expect."""

    type = "test.puzzled"
    table = steps("WORKING")

    class Payload(BaseModel):
        """A letter."""

        letter: str

        @field_validator("letter")
        @classmethod
        def _known(cls, letter: str) -> str:
            return {"a": "A"}[letter]

    @state("WORKING")
    async def work(self, tools: Toolbox["Puzzled.Payload", Any]) -> Outcome:
        return Go("done", result={"letter": tools.payload.letter})


class Stubborn(Mission):
    """Swallows the first cancel, whoever sends it, and goes on."""

    type = "test.stubborn"
    table = steps("WORKING")

    class Payload(BaseModel):
        """How often."""

        swallows: int = 1

    @state("WORKING", timeout_s=0.5, retry=Retry(tries=1))
    async def work(self, tools: Toolbox["Stubborn.Payload", Any]) -> Outcome:
        tally(tools)
        for _ in range(tools.payload.swallows):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                tally(tools, "swallowed")
        await asyncio.Event().wait()
        return Go("done")


class Stays(Stubborn):
    """The same, and its state has time."""

    type = "test.stays"
    table = steps("WORKING")

    @state("WORKING", timeout_s=600)
    async def work(self, tools: Toolbox["Stubborn.Payload", Any]) -> Outcome:
        return await super().work(tools)


class Exits(Mission):
    """Ends the process, as it thinks; or cancels itself; or gives too much."""

    type = "test.exits"
    table = steps("WORKING")

    class Payload(BaseModel):
        """How."""

        how: str = "exit"

    @state("WORKING", retry=TWICE)
    async def work(self, tools: Toolbox["Exits.Payload", Any]) -> Outcome:
        tally(tools)
        match tools.payload.how:
            case "exit":
                sys.exit(3)
            case "cancel":
                gone = asyncio.get_running_loop().create_future()
                gone.cancel()
                await gone
            case "base":
                raise BaseException("a panic of a native library")  # noqa: TRY002  that is what is shown
            case "event":
                return Go(["done"])  # type: ignore[arg-type]  # what an author may get wrong
        return Go("done", result={"much": "x" * 2_000_000})


class Lost(Mission):
    """Three states that say whether a worker was lost in them."""

    type = "test.lost"
    table = steps("ONE", "TWO", "THREE")

    class Context(BaseModel):
        """What each run of each state was told."""

        told: list[str] = []

    @state("ONE", acting=True)
    async def one(self, tools: Toolbox[Any, "Lost.Context"]) -> Outcome:
        tally(tools)
        if not tools.taken_over:
            await asyncio.Event().wait()
        tools.context.told.append(f"ONE {tools.taken_over}")
        if tools.attempt == 1:
            return RetryOutcome("once more")
        return Go("done")

    @state("TWO")
    async def two(self, tools: Toolbox[Any, "Lost.Context"]) -> Outcome:
        tools.context.told.append(f"TWO {tools.taken_over}")
        return Go("done")

    @state("THREE")
    async def three(self, tools: Toolbox[Any, "Lost.Context"]) -> Outcome:
        tools.context.told.append(f"THREE {tools.taken_over}")
        return Go("done", result={"told": tools.context.told})
