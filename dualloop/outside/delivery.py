"""Who brings it: shipping writes shipments, logistics gives waybills, notification sends messages."""

from typing import Any, Final

from fastapi import APIRouter
from pydantic import BaseModel, Field

from dualloop.outside.desk import CALLED_OFF, Desk, Of, Refused, Stamped
from dualloop.outside.ledger import Ledger

CREATED, ISSUED, SENT = "created", "issued", "sent"
NOT_SERVED: Final = frozenset({"Atlantis"})
"""Cities to which no carrier goes."""


class Address(BaseModel):
    """Where somebody lives."""

    street: str = Field(min_length=1)
    city: str = Field(min_length=1)


class Shipment(BaseModel):
    """What is to be shipped to whom."""

    order: str
    customer: str
    address: Address
    lines: list[dict[str, Any]] = Field(min_length=1)


class Waybill(BaseModel):
    """Which shipment is to be carried where."""

    order: str
    shipment: str
    address: Address


class Message(BaseModel):
    """What is to be told to whom."""

    order: str
    customer: str
    text: str = Field(min_length=1, max_length=1000)


def shipping(ledger: Ledger) -> APIRouter:
    """Addresses and shipments."""
    desk, routes = Desk(ledger, "shipping"), APIRouter(prefix="/shipping")

    @routes.get("/addresses/{customer}")
    async def address(customer: str) -> dict[str, Any]:
        known = ledger.fact("customer", customer)
        if known is None or known.get("address") is None:
            raise Refused(404, "no_address", f"no address of {customer} is known")
        return {"customer": customer, **known["address"]}

    @routes.post("/shipments", status_code=201)
    async def create(wish: Shipment, stamp: Stamped) -> dict[str, Any]:
        def work(_effect: int) -> dict[str, Any]:
            return desk.make(stamp, wish.order, CREATED, wish.model_dump(exclude={"order"}))

        return desk.act(stamp, "create", wish.order, stamp.key, work)

    _cancellable(routes, desk, "shipments")
    return routes


def logistics(ledger: Ledger) -> APIRouter:
    """Waybills."""
    desk, routes = Desk(ledger, "logistics"), APIRouter(prefix="/logistics")

    @routes.post("/waybills", status_code=201)
    async def issue(wish: Waybill, stamp: Stamped) -> dict[str, Any]:
        def work(effect: int) -> dict[str, Any]:
            if wish.address.city in NOT_SERVED:
                raise Refused(422, "not_served", f"no carrier goes to {wish.address.city}")
            body = {"waybill": f"WB-{effect:06}", **wish.model_dump(exclude={"order"})}
            return desk.make(stamp, wish.order, ISSUED, body)

        return desk.act(stamp, "issue", wish.order, stamp.key, work)

    _cancellable(routes, desk, "waybills")
    return routes


def notification(ledger: Ledger) -> APIRouter:
    """Messages; what was sent cannot be called back."""
    desk, routes = Desk(ledger, "notification"), APIRouter(prefix="/notification")

    @routes.post("/messages", status_code=201)
    async def send(wish: Message, stamp: Stamped) -> dict[str, Any]:
        def work(_effect: int) -> dict[str, Any]:
            return desk.make(stamp, wish.order, SENT, wish.model_dump(exclude={"order"}))

        return desk.act(stamp, "send", wish.order, stamp.key, work)

    return routes


def _cancellable(routes: APIRouter, desk: Desk, things: str) -> None:
    @routes.post(f"/{things}/{{id_}}/cancel")
    async def cancel(id_: str, of: Of, stamp: Stamped) -> dict[str, Any]:
        def work(_effect: int) -> dict[str, Any]:
            desk.call_off(id_, of.order)
            return {"id": id_, "order": of.order, "state": CALLED_OFF}

        return desk.act(stamp, "cancel", of.order, id_, work)
