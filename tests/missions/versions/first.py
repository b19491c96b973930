"""The first release: a price in cents, and a log of words."""

from typing import Any

from pydantic import BaseModel, Field

from backend_loop.mission import Mission, state
from backend_loop.outcomes import Go, Outcome, WaitFor
from backend_loop.toolbox import Toolbox
from tests.missions.tally import tally
from tests.missions.versions.working import work


class Ordered(BaseModel):
    """What is ordered."""

    item: str
    cents: int = Field(ge=0)
    seconds: float = 0.05
    ask: bool = False


class Order(Mission):
    """Pick, wrap, send; where asked for, it waits for a word before it is wrapped."""

    type = "test.order"
    version = 1
    table = {
        "PICKING": {"picked": "WRAPPING", "asked": "ASKING"},
        "ASKING": {"AGREED": "WRAPPING"},
        "WRAPPING": {"wrapped": "SENDING"},
        "SENDING": {"sent": "SUCCEEDED"},
    }
    Payload = Ordered

    class Context(BaseModel):
        """What was done, as text."""

        log: list[str] = []

    @state("PICKING")
    async def pick(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        tools.context.log.append(await work(tools, 1))
        return Go("asked" if tools.payload.ask else "picked")

    @state("ASKING")
    async def ask(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        tally(tools, "ask")
        return WaitFor("AGREED", 600)

    @state("WRAPPING", timeout_s=60)
    async def wrap(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        tools.context.log.append(await work(tools, 1))
        return Go("wrapped")

    @state("SENDING")
    async def send(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        tools.context.log.append(await work(tools, 1))
        return Go("sent", result={"log": tools.context.log, "cents": tools.payload.cents})
