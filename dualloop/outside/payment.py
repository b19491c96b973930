"""The bank: a payment is ordered, paid by the customer a moment later, and can be given back.

Amounts are whole cents. Its book has an account for each customer and one for the shop; nobody owes anything. That a
payment was made it tells the mission that ordered it, as an outside event, until the mission has taken it.
"""

from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter
from pydantic import BaseModel, Field

from dualloop.outside.desk import CALLED_OFF, Desk, Of, Refused, Stamp, Stamped, shown
from dualloop.outside.ledger import Ledger

BOOK: Final = "money"
WORLD: Final = "world"
"""Where customers have their money from: the only account that may fall below nothing."""
SHOP: Final = "shop"
ORDERED, PAID = "ordered", "paid"
EVENT: Final = "PAYMENT_CONFIRMED"


class Payment(BaseModel):
    """What is to be paid, and which mission is to be told."""

    order: str
    customer: str
    amount_cents: int = Field(ge=1, le=10**12)
    mission: str


class Bank:
    """Takes payments; `Collector` has it take those that nobody pays by hand.

    Args:
        ledger: its books.
        changed: called when something was ordered or paid.
    """

    def __init__(self, ledger: Ledger, changed: Callable[[], None]) -> None:
        """As its books say."""
        self.ledger, self.desk, self._changed = ledger, Desk(ledger, "payment"), changed

    def order(self, wish: Payment, stamp: Stamp) -> dict[str, Any]:
        """Write a payment down, to be paid."""

        def work(_effect: int) -> dict[str, Any]:
            self._covered(wish.customer, wish.amount_cents)
            self._changed()
            return self.desk.make(stamp, wish.order, ORDERED, wish.model_dump(exclude={"order"}))

        return self.desk.act(stamp, "order", wish.order, stamp.key, work)

    def pay(self, id_: str, order: str, stamp: Stamp) -> dict[str, Any]:
        """The customer pays; the mission will be told."""

        def work(effect: int) -> dict[str, Any]:
            before = self.desk.turn(id_, order, PAID, of=(ORDERED,))
            body = before.body
            self._covered(body["customer"], body["amount_cents"])
            self.ledger.move(effect, BOOK, body["amount_cents"], f"customer:{body['customer']}", SHOP)
            data = {"payment": id_, "order": order, "amount_cents": body["amount_cents"]}
            self.ledger.notify(body["mission"], {"event": EVENT, "data": data, "id": id_})
            self._changed()
            return shown(before._replace(state=PAID))

        return self.desk.act(stamp, "pay", order, id_, work)

    def refund(self, id_: str, order: str, stamp: Stamp) -> dict[str, Any]:
        """Give back what was paid; what was not is to be paid no more."""

        def work(effect: int) -> dict[str, Any]:
            before = self.desk.call_off(id_, order)
            paid = before is not None and before.state == PAID
            if before is not None and paid:
                customer = f"customer:{before.body['customer']}"
                self.ledger.move(effect, BOOK, before.body["amount_cents"], SHOP, customer)
            refunded = before.body["amount_cents"] if before is not None and paid else 0
            return {"id": id_, "order": order, "state": CALLED_OFF, "refunded_cents": refunded}

        return self.desk.act(stamp, "refund", order, id_, work)

    def _covered(self, customer: str, cents: int) -> None:
        has = self.ledger.balance(BOOK, f"customer:{customer}")
        if has < cents:
            raise Refused(402, "no_funds", f"{customer} has {has} cents of {cents}")


def payment(bank: Bank) -> APIRouter:
    """Its routes."""
    routes = APIRouter(prefix="/payment")

    @routes.get("/orders/{id_}")
    async def find(id_: str) -> dict[str, Any]:
        thing = bank.ledger.thing("payment", id_)
        if thing is None:
            raise Refused(404, "not_found", f"there is no payment {id_}")
        return shown(thing)

    @routes.post("/orders", status_code=201)
    async def order(wish: Payment, stamp: Stamped) -> dict[str, Any]:
        return bank.order(wish, stamp)

    @routes.post("/orders/{id_}/pay")
    async def pay(id_: str, of: Of, stamp: Stamped) -> dict[str, Any]:
        return bank.pay(id_, of.order, stamp)

    @routes.post("/orders/{id_}/refund")
    async def refund(id_: str, of: Of, stamp: Stamped) -> dict[str, Any]:
        return bank.refund(id_, of.order, stamp)

    return routes
