"""`order.fulfil`: keep the goods, write the shipment, have it carried, tell the customer; or put everything back.

Each effect is one state and carries the state's key, under which the service keeps what it made. So a second try, or
another worker after a kill, gets the answer of the first, and an undo names what it undoes even where the answer was
lost. What the front knew (`snapshot`) is held against what is true now, where something is decided by it.
"""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel

from backend_loop.mission import Mission, state, undo
from backend_loop.missions.shop import (
    BACK,
    FORTH,
    LOGISTICS,
    NOTIFICATION,
    SHIPPING,
    STOCK,
    NotAsPromisedError,
    Order,
    SnapshotError,
    at,
    live_address,
    total_cents,
)
from backend_loop.outcomes import Go, Outcome
from backend_loop.retry import Retry as Policy
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.toolbox import Toolbox


class OrderFulfil(Mission):
    """Reserve, ship, hand over to a carrier, take from stock, notify."""

    type = "order.fulfil"
    target = "order"
    deadline_s = 3_600.0
    permanent = (ServiceRefused, NotAsPromisedError, SnapshotError)
    retryable = (ServiceUnavailable,)
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "VALIDATING": {"valid": "RESERVING_STOCK"},
        "RESERVING_STOCK": {"reserved": "CREATING_SHIPMENT"},
        "CREATING_SHIPMENT": {"created": "CALLING_LOGISTICS"},
        "CALLING_LOGISTICS": {"called": "TAKING_STOCK"},
        "TAKING_STOCK": {"taken": "NOTIFYING"},
        "NOTIFYING": {"notified": "CLOSING", "skipped": "CLOSING"},
        "CLOSING": {"closed": "SUCCEEDED"},
    }

    class Payload(Order):
        """The order."""

    class Context(BaseModel):
        """What it costs, and what the services have made for it, by the ids that they gave."""

        total_cents: int = 0
        address: dict[str, str] | None = None
        moved: bool = False
        reservation: str = ""
        shipment: str = ""
        waybill: str = ""
        notified: bool = False

    @state("VALIDATING", uses=(STOCK,), retry=FORTH)
    async def validate(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Stock and prices as of now; nothing is promised yet."""
        tools.context.total_cents = await total_cents(tools)
        return Go("valid")

    @state("RESERVING_STOCK", acting=True, uses=(STOCK,), retry=FORTH)
    async def reserve(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """All of it or nothing: stock itself decides, in one step."""
        payload = tools.payload
        made = await tools.order("stock/reservations", {"order": payload.order, "lines": payload.wanted})
        tools.context.reservation = made["id"]
        return Go("reserved")

    @undo("RESERVING_STOCK", uses=(STOCK,), retry=BACK)
    async def release(self, tools: Toolbox[Payload, Context]) -> None:
        """Back on the shelf, taken or not; one that never arrived is refused if it still does."""
        await tools.order(f"stock/reservations/{at(tools.undoes)}/release", {"order": tools.payload.order})

    @state("CREATING_SHIPMENT", acting=True, uses=(SHIPPING,), retry=FORTH)
    async def ship(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """To where the customer lives now; a move since the order was placed is noted."""
        payload, context = tools.payload, tools.context
        body = {"order": payload.order, "customer": payload.customer, "lines": payload.wanted}
        made = await tools.order("shipping/shipments", {**body, "address": await live_address(tools)})
        context.shipment, context.address = made["id"], made["address"]  # of the first try, if this is a second one
        context.moved = (tools.envelope.snapshot or {}).get("address", made["address"]) != made["address"]
        return Go("created")

    @undo("CREATING_SHIPMENT", uses=(SHIPPING,), retry=BACK)
    async def unship(self, tools: Toolbox[Payload, Context]) -> None:
        """No parcel leaves."""
        await tools.order(f"shipping/shipments/{at(tools.undoes)}/cancel", {"order": tools.payload.order})

    @state("CALLING_LOGISTICS", acting=True, uses=(LOGISTICS,), retry=FORTH)
    async def call(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """A carrier gives a waybill."""
        context = tools.context
        body = {"order": tools.payload.order, "shipment": context.shipment, "address": context.address}
        context.waybill = (await tools.order("logistics/waybills", body))["waybill"]
        return Go("called")

    @undo("CALLING_LOGISTICS", uses=(LOGISTICS,), retry=BACK)
    async def call_back(self, tools: Toolbox[Payload, Context]) -> None:
        """No carrier comes."""
        await tools.order(f"logistics/waybills/{at(tools.undoes)}/cancel", {"order": tools.payload.order})

    @state("TAKING_STOCK", acting=True, uses=(STOCK,), retry=FORTH)
    async def take(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """What was reserved leaves the house; RESERVING_STOCK's undo brings it back."""
        await tools.order(f"stock/reservations/{at(tools.context.reservation)}/commit", {"order": tools.payload.order})
        return Go("taken")

    @state(
        "NOTIFYING",
        acting=True,
        uses=(NOTIFICATION,),
        on_failure="skip",
        retry=Policy(tries=4, base_s=0.2, cap_s=2, max_elapsed_s=20),
    )
    async def notify(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Optional: a parcel comes without a message too."""
        payload, context = tools.payload, tools.context
        text = f"Order {payload.order} is on its way: {context.waybill}"
        await tools.order("notification/messages", {"order": payload.order, "customer": payload.customer, "text": text})
        context.notified = True
        return Go("notified")

    @state("CLOSING")
    async def close(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Say what came of it."""
        return Go("closed", result={"order": tools.payload.order, **tools.context.model_dump()})
