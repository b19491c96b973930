"""The stock: goods stand on a shelf, are reserved for an order, and are taken, or go back.

Its book has an account for each place of each item. Nothing leaves a place that is not there.
"""

from typing import Any, Final

from fastapi import APIRouter
from pydantic import BaseModel, Field

from dualloop.outside.desk import CALLED_OFF, Desk, Of, Refused, Stamped, shown
from dualloop.outside.ledger import Ledger, Thing

BOOK: Final = "stock"
SUPPLIER: Final = "supplier"
"""Where goods come from: the only account that may fall below nothing."""
RESERVED, TAKEN = "reserved", "taken"
PLACES: Final = {RESERVED: "reserved", TAKEN: "taken"}
"""State of a reservation → the place where its goods are; once called off they are on the shelf."""


class Line(BaseModel):
    """So many of an item."""

    sku: str
    quantity: int = Field(ge=1, le=1_000_000)


class Reservation(BaseModel):
    """What is to be kept for an order."""

    order: str
    lines: list[Line] = Field(min_length=1, max_length=100)


def item(ledger: Ledger, sku: str) -> dict[str, Any]:
    """It, as it stands.

    Raises:
        Refused: there is none.
    """
    known = ledger.fact("item", sku)
    if known is None:
        raise Refused(404, "no_such_item", f"there is no {sku} in this stock")
    places = {place: ledger.balance(BOOK, f"{place}:{sku}") for place in ("shelf", "reserved", "taken")}
    return {"sku": sku, "price_cents": known["price_cents"], "available": places["shelf"], **places}


def stock(ledger: Ledger) -> APIRouter:
    """Its routes."""
    routes, desk = APIRouter(prefix="/stock"), Desk(ledger, "stock")
    _reserve(routes, desk)
    _carry(routes, desk)

    @routes.get("/items/{sku}")
    async def look(sku: str) -> dict[str, Any]:
        return item(ledger, sku)

    @routes.get("/reservations/{id_}")
    async def find(id_: str) -> dict[str, Any]:
        thing = ledger.thing("stock", id_)
        if thing is None:
            raise Refused(404, "not_found", f"there is no reservation {id_}")
        return shown(thing)

    return routes


def _reserve(routes: APIRouter, desk: Desk) -> None:
    ledger = desk.ledger

    @routes.post("/reservations", status_code=201)
    async def reserve(wish: Reservation, stamp: Stamped) -> dict[str, Any]:
        def work(effect: int) -> dict[str, Any]:
            for line in wish.lines:
                left = item(ledger, line.sku)["available"]
                if left < line.quantity:
                    sentence = f"{line.quantity} of {line.sku} are wanted, {left} are there"
                    raise Refused(409, "out_of_stock", sentence)
                ledger.move(effect, BOOK, line.quantity, f"shelf:{line.sku}", f"reserved:{line.sku}")
            lines = [line.model_dump() for line in wish.lines]
            return desk.make(stamp, wish.order, RESERVED, {"lines": lines})

        return desk.act(stamp, "reserve", wish.order, stamp.key, work)


def _carry(routes: APIRouter, desk: Desk) -> None:
    def carry(effect: int, reservation: Thing, to: str) -> None:
        for line in reservation.body["lines"]:
            place = PLACES[reservation.state]
            desk.ledger.move(effect, BOOK, line["quantity"], f"{place}:{line['sku']}", f"{to}:{line['sku']}")

    @routes.post("/reservations/{id_}/commit")
    async def commit(id_: str, of: Of, stamp: Stamped) -> dict[str, Any]:
        def work(effect: int) -> dict[str, Any]:
            before = desk.turn(id_, of.order, TAKEN, of=(RESERVED,))
            carry(effect, before, "taken")
            return shown(before._replace(state=TAKEN))

        return desk.act(stamp, "commit", of.order, id_, work)

    @routes.post("/reservations/{id_}/release")
    async def release(id_: str, of: Of, stamp: Stamped) -> dict[str, Any]:
        def work(effect: int) -> dict[str, Any]:
            before = desk.call_off(id_, of.order)
            if before is not None and before.state != CALLED_OFF:
                carry(effect, before, "shelf")
            return {"id": id_, "order": of.order, "state": CALLED_OFF}

        return desk.act(stamp, "release", of.order, id_, work)
