"""The second release: prices have a currency, the log has records, wrapping is called packing and a check is new."""

from typing import Any

from pydantic import BaseModel, Field

from backend_loop.mission import Mission, Upcast, state
from backend_loop.outcomes import Go, Outcome, WaitFor
from backend_loop.toolbox import Toolbox
from tests.missions.tally import tally
from tests.missions.versions import first
from tests.missions.versions.stored import examples
from tests.missions.versions.working import work


class Price(BaseModel):
    """An amount of money."""

    cents: int = Field(ge=0)
    currency: str


class Ordered(BaseModel):
    """What is ordered."""

    item: str
    price: Price
    seconds: float = 0.05
    ask: bool = False


def priced(payload: dict[str, Any]) -> dict[str, Any]:
    """Who ordered before there were currencies ordered in euros."""
    payload["price"] = {"cents": payload.pop("cents"), "currency": "EUR"}
    return payload


def recorded(context: dict[str, Any]) -> dict[str, Any]:
    """Words become records."""
    return {"steps": [{"done": word} for word in context.get("log", [])]}


FROM_FIRST = Upcast(
    payload=priced,
    context=recorded,
    states={"WRAPPING": "PACKING"},
    schema=first.Ordered,
    examples=examples("test.order@1"),
)


class Step(BaseModel):
    """Something that was done."""

    done: str


class Order(Mission):
    """Pick, pack, check, send; where asked for, it waits for a word before it is packed."""

    type = "test.order"
    version = 2
    upcasters = {1: FROM_FIRST}
    table = {
        "PICKING": {"picked": "PACKING", "asked": "ASKING"},
        "ASKING": {"AGREED": "PACKING"},
        "PACKING": {"packed": "CHECKING"},
        "CHECKING": {"checked": "SENDING"},
        "SENDING": {"sent": "SUCCEEDED"},
    }
    Payload = Ordered

    class Context(BaseModel):
        """What was done."""

        steps: list[Step] = []

    @state("PICKING")
    async def pick(self, tools: Toolbox[Ordered, Any]) -> Outcome:
        await self._do(tools)
        return Go("asked" if tools.payload.ask else "picked")

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
        log = [step.done for step in tools.context.steps]
        return Go("sent", result={"log": log, "cents": tools.payload.price.cents, "in": tools.payload.price.currency})

    async def _do(self, tools: Toolbox[Ordered, Any]) -> None:
        tools.context.steps.append(Step(done=await work(tools, 2)))


class Gift(Mission):
    """A type that the first release does not have."""

    type = "test.gift"
    table = {"WRAPPING": {"wrapped": "SUCCEEDED"}}

    class Payload(BaseModel):
        """How long it takes."""

        seconds: float = 0.05

    @state("WRAPPING")
    async def wrap(self, tools: Toolbox["Gift.Payload", Any]) -> Outcome:
        return Go("wrapped", result={"log": [await work(tools, 2)]})
