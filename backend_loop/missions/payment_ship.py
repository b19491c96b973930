"""`payment.ship`: have it paid, wait for the bank's word, then ship; what was paid goes back if it cannot be shipped.

Between the order and the bank's word lie seconds or days, so nothing that was true before is believed after it: stock
and address are read again where the shipment is prepared. Nor is the word itself: whoever knows the mission's id can
say it, and it may come twice, or too early. It only says when to look; whether it is paid, the bank is asked.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import BaseModel, Field

from backend_loop.mission import Example, Mission, Upcast, state, undo
from backend_loop.missions.shop import (
    BACK,
    FORTH,
    PAYMENT,
    SHIPPING,
    STOCK,
    NotAsPromisedError,
    Order,
    SnapshotError,
    at,
    live_address,
    total_cents,
)
from backend_loop.outcomes import Go, Outcome, WaitFor
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.toolbox import Toolbox
from shared.clock import now_ms

DAY_S: Final = 86_400.0


class PaymentShip(Mission):
    """Pay, wait until the bank has the money, prepare the shipment, ship."""

    type = "payment.ship"
    version = 2  # 1 believed the word: it asked no bank, and kept neither the payment's id nor until when it waits
    target = "order"
    deadline_s = 3 * DAY_S
    permanent = (ServiceRefused, NotAsPromisedError, SnapshotError)
    retryable = (ServiceUnavailable,)
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "INITIAL": {"valid": "PAYING"},
        "PAYING": {"PAYMENT_CONFIRMED": "CHECKING_PAYMENT", "timed_out": "FAILED"},
        "CHECKING_PAYMENT": {
            "paid": "PREPARING_SHIPMENT",
            "PAYMENT_CONFIRMED": "CHECKING_PAYMENT",
            "timed_out": "FAILED",
        },
        "PREPARING_SHIPMENT": {"prepared": "SHIPPING"},
        "SHIPPING": {"shipped": "TAKING_STOCK"},
        "TAKING_STOCK": {"taken": "SUCCEEDED"},
    }

    class Payload(Order):
        """The order, and how long the customer may take to pay."""

        patience_s: float = Field(DAY_S, gt=0, le=2 * DAY_S)

    class Context(BaseModel):
        """What was asked and paid, and what the services have made for it.

        `until`: how long is waited for the money, epoch ms.
        """

        amount_cents: int = 0
        payment: str = ""
        until: int = 0
        paid: dict[str, Any] | None = None
        address: dict[str, str] | None = None
        reservation: str = ""
        shipment: str = ""

    upcasters: ClassVar[Mapping[int, Upcast]] = {
        1: Upcast(
            schema=Payload,
            examples=[
                Example(
                    {"order": "A-1", "customer": "ada", "lines": [{"sku": "lamp", "quantity": 1}], "patience_s": 60},
                    {"amount_cents": 4_990, "paid": None, "address": None, "reservation": "", "shipment": ""},
                    "PAYING",
                )
            ],
        )
    }

    @state("INITIAL", uses=(STOCK,), retry=FORTH)
    async def begin(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """What it costs now, and whether it is there at all."""
        tools.context.amount_cents = await total_cents(tools)
        return Go("valid")

    @state("PAYING", acting=True, uses=(PAYMENT,), retry=FORTH)
    async def pay(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Order the payment, then wait, over restarts of everything; a word that comes early is remembered."""
        payload, context = tools.payload, tools.context
        body = {"order": payload.order, "customer": payload.customer, "amount_cents": context.amount_cents}
        context.payment = (await tools.order("payment/orders", {**body, "mission": tools.task_id}))["id"]
        context.until = now_ms() + round(payload.patience_s * 1000)
        return WaitFor("PAYMENT_CONFIRMED", payload.patience_s)

    @undo("PAYING", uses=(PAYMENT,), retry=BACK)
    async def refund(self, tools: Toolbox[Payload, Context]) -> None:
        """Give it back; what was not paid yet cannot be paid any more."""
        await tools.order(f"payment/orders/{at(tools.undoes)}/refund", {"order": tools.payload.order})

    @state("CHECKING_PAYMENT", uses=(PAYMENT,), retry=FORTH)
    async def check(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Does the bank have the money? Somebody said so; where it has not, that changes nothing."""
        context = tools.context
        context.until = context.until or now_ms() + round(tools.payload.patience_s * 1000)  # unknown to version 1
        if await _paid(tools):
            return Go("paid")
        return WaitFor("PAYMENT_CONFIRMED", max(0.0, (context.until - now_ms()) / 1000))

    @state("PREPARING_SHIPMENT", acting=True, uses=(STOCK, SHIPPING), retry=FORTH)
    async def prepare(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Is it still there, and where does the customer live now? Then keep it."""
        payload, context = tools.payload, tools.context
        if context.paid is None and not await _paid(tools):  # version 1 came here on anybody's word
            raise NotAsPromisedError("the bank does not have the money")
        context.address = await live_address(tools)
        made = await tools.order("stock/reservations", {"order": payload.order, "lines": payload.wanted})
        context.reservation = made["id"]
        return Go("prepared")

    @undo("PREPARING_SHIPMENT", uses=(STOCK,), retry=BACK)
    async def release(self, tools: Toolbox[Payload, Context]) -> None:
        """Back on the shelf, taken or not."""
        await tools.order(f"stock/reservations/{at(tools.undoes)}/release", {"order": tools.payload.order})

    @state("SHIPPING", acting=True, uses=(SHIPPING,), retry=FORTH)
    async def ship(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Write the shipment."""
        payload, context = tools.payload, tools.context
        body = {"order": payload.order, "customer": payload.customer, "lines": payload.wanted}
        made = await tools.order("shipping/shipments", {**body, "address": context.address})
        context.shipment, context.address = made["id"], made["address"]
        return Go("shipped")

    @undo("SHIPPING", uses=(SHIPPING,), retry=BACK)
    async def unship(self, tools: Toolbox[Payload, Context]) -> None:
        """No parcel leaves."""
        await tools.order(f"shipping/shipments/{at(tools.undoes)}/cancel", {"order": tools.payload.order})

    @state("TAKING_STOCK", acting=True, uses=(STOCK,), retry=FORTH)
    async def take(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """What was kept leaves the house; PREPARING_SHIPMENT's undo brings it back."""
        context = tools.context
        await tools.order(f"stock/reservations/{at(context.reservation)}/commit", {"order": tools.payload.order})
        return Go("taken", result={"order": tools.payload.order, **context.model_dump(exclude={"until"})})


Tools = Toolbox[PaymentShip.Payload, PaymentShip.Context]


async def _paid(tools: Tools) -> bool:
    """Ask the bank, and keep what it says was paid.

    A payment's id is the key it was ordered with, by which alone one that version 1 ordered is found.

    Raises:
        NotAsPromisedError: another amount was paid.
        ServiceUnavailable, ServiceRefused: see `backend_loop.services`.
    """
    context = tools.context
    ordered = context.payment or f"{tools.key.rsplit(':', 2)[0]}:PAYING:1"
    known = await tools.ask(f"payment/orders/{at(ordered)}")
    if known["state"] != "paid":
        return False
    context.paid = {"payment": known["id"], "order": known["order"], "amount_cents": known["amount_cents"]}
    if context.paid["amount_cents"] != context.amount_cents:
        raise NotAsPromisedError(f"{known['amount_cents']} cents were paid, and not {context.amount_cents}")
    return True
