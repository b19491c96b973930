"""What operators are needed for: it fails until something outside is put right, and part of it may be left out."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, field_validator

from backend_loop.mission import Latest, Mission, state, steps, undo
from backend_loop.outcomes import Fail, Go, Outcome, Retry, WaitFor
from backend_loop.retry import Retry as RetryPolicy
from backend_loop.toolbox import Toolbox
from shared.status import ErrorCode
from tests.missions.tally import tally


class Address(BaseModel):
    """Where a parcel goes."""

    depot: str = Field(description="path of a file: while it is not there, the depot is closed")
    street: str = "Main Street"
    signature: bool = False
    bank: str | None = Field(None, description="path of a file: while it is not there, nothing can be paid back")

    @field_validator("street")
    @classmethod
    def _known(cls, street: str) -> str:
        if street == "Nowhere":
            raise ValueError("no such street")
        return street


def _is_open(path: str) -> bool:
    return Path(path).exists()


def _ship(tools: Toolbox[Address, Any]) -> Outcome:
    tally(tools)
    if not _is_open(tools.payload.depot):
        return Fail("the depot is closed", ErrorCode.PERMANENT)
    return Go("shipped", result={"street": tools.payload.street, "key": tools.key})


class Parcel(Mission):
    """A signature may be waited for, and may be left out; then the depot has to be open."""

    type = "test.parcel"
    table = {
        "PACKING": {"packed": "SIGNING"},
        "SIGNING": {"SIGNED": "SHIPPING", "skipped": "SHIPPING"},
        "SHIPPING": {"shipped": "SUCCEEDED"},
    }
    Payload = Address

    @state("PACKING")
    async def pack(self, tools: Toolbox[Address, Any]) -> Outcome:
        tally(tools)
        return Go("packed")

    @state("SIGNING", on_failure="skip")
    async def sign(self, tools: Toolbox[Address, Any]) -> Outcome:
        tally(tools)
        return WaitFor("SIGNED", 600) if tools.payload.signature else Go("skipped")

    @state("SHIPPING", acting=True)
    async def ship(self, tools: Toolbox[Address, Any]) -> Outcome:
        return _ship(tools)


class Paid(Mission):
    """Is paid first, and paid back if it cannot be shipped."""

    type = "test.paid"
    table = steps("PAYING", "SHIPPING")
    Payload = Address

    @state("PAYING", acting=True)
    async def pay(self, tools: Toolbox[Address, Any]) -> Outcome:
        tally(tools)
        return Go("done")

    @undo("PAYING", retry=RetryPolicy(tries=100, base_s=60))
    async def pay_back(self, tools: Toolbox[Address, Any]) -> Outcome | None:
        tally(tools)
        bank = tools.payload.bank
        return None if bank is None or _is_open(bank) else Retry("the bank is closed")

    @state("SHIPPING", acting=True)
    async def ship(self, tools: Toolbox[Address, Any]) -> Outcome:
        outcome = _ship(tools)
        return Go("done", result=outcome.result) if isinstance(outcome, Go) else outcome


class Switch(Mission):
    """What a newer command of the same aspect replaces; it refuses to work."""

    type = "test.switch"
    table = steps("SWITCHING")
    target = "entity"
    latest = Latest(field="action", aspects={"turn_on": "power", "turn_off": "power", "dim": "brightness"})

    class Payload(BaseModel):
        """What to do with it."""

        entity: str
        action: str = Field(pattern="^(turn_on|turn_off|dim)$")
        works: bool = False

    @state("SWITCHING", acting=True)
    async def switch(self, tools: Toolbox["Switch.Payload", Any]) -> Outcome:
        tally(tools)
        return Go("done") if tools.payload.works else Fail("it refuses", ErrorCode.PERMANENT)
