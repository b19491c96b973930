"""The third release: several items in an order, steps that know their release; the first one comes by the second."""

from typing import Any

from pydantic import BaseModel, Field

from backend_loop.mission import Mission, Upcast, state
from backend_loop.outcomes import Go, Outcome, WaitFor
from backend_loop.toolbox import Toolbox
from tests.missions.tally import tally
from tests.missions.versions import second
from tests.missions.versions.stored import examples
from tests.missions.versions.working import work


class Ordered(BaseModel):
    """What is ordered."""

    items: list[str] = Field(min_length=1)
    price: second.Price
    seconds: float = 0.05
    ask: bool = False


class Step(BaseModel):
    """Something that was done, and by which release."""

    done: str
    release: int


def gathered(payload: dict[str, Any]) -> dict[str, Any]:
    """One item is a list of one."""
    payload["items"] = [payload.pop("item")]
    return payload


def released(context: dict[str, Any]) -> dict[str, Any]:
    """The release stands at the end of each line."""
    for step in context.get("steps", []):
        step["release"] = int(step["done"].rpartition("@")[2])
    return context


FROM_SECOND = Upcast(
    payload=gathered,
    context=released,
    states={"PICKING": "COLLECTING"},
    schema=second.Ordered,
    examples=examples("test.order@2"),
)


class Order(Mission):
    """Collect, pack, check, send; where asked for, it waits for a word before it is packed."""

    type = "test.order"
    version = 3
    upcasters = {1: second.FROM_FIRST, 2: FROM_SECOND}
    table = {
        "COLLECTING": {"collected": "PACKING", "asked": "ASKING"},
        "ASKING": {"AGREED": "PACKING"},
        "PACKING": {"packed": "CHECKING"},
        "CHECKING": {"checked": "SENDING"},
        "SENDING": {"sent": "SUCCEEDED"},
    }
    Payload = Ordered

    class Context(BaseModel):
        """What was done."""

        steps: list[Step] = []

    @state("COLLECTING")
    async def collect(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        await self._do(tools)
        return Go("asked" if tools.payload.ask else "collected")

    @state("ASKING")
    async def ask(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        tally(tools, "ask")
        return WaitFor("AGREED", 600)

    @state("PACKING", timeout_s=60)
    async def pack(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        await self._do(tools)
        return Go("packed")

    @state("CHECKING")
    async def check(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        await self._do(tools)
        return Go("checked")

    @state("SENDING")
    async def send(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        await self._do(tools)
        return Go("sent", result={"log": [step.done for step in tools.context.steps], "items": tools.payload.items})

    async def _do(self, tools: Toolbox[Ordered, Any]) -> None:
        tools.context.steps.append(Step(done=await work(tools, 3), release=3))
