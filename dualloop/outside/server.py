"""The services over HTTP, and the bench at which people and tests stand.

Paths that begin with a service's name are subject to its faults; the bench (all else) never is.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.middleware.trustedhost import TrustedHostMiddleware

from dualloop.outside import model, payment, stock
from dualloop.outside.books import SERVICES, books, page
from dualloop.outside.collector import Collector
from dualloop.outside.delivery import Address, logistics, notification, shipping
from dualloop.outside.desk import Refused
from dualloop.outside.faults import WELL, Faults, Faulty, faults_of
from dualloop.outside.gadgets import Hand, Shed, gadgets
from dualloop.outside.ledger import Effect, Ledger
from shared.clock import now_ms

ITEMS: Final = {"lamp": (4_990, 10_000), "kettle": (2_450, 10_000), "chair": (12_900, 3)}
"""At the first start: price in cents, and how many are there."""
CUSTOMERS: Final[dict[str, tuple[dict[str, str] | None, int]]] = {
    "ada": ({"street": "Short Street 1", "city": "London"}, 100_000_000),
    "bo": ({"street": "Long Street 2", "city": "Oslo"}, 100_000_000),
    "nemo": ({"street": "Sea Floor 3", "city": "Atlantis"}, 100_000_000),
    "nomad": (None, 100_000_000),
    "pip": ({"street": "Debt Lane 4", "city": "London"}, 100),
}
"""At the first start: address, and what they have in cents. No carrier goes to Atlantis."""


class Delivery(BaseModel):
    """What a person does to an item: puts more on the shelf, or another price."""

    model_config = ConfigDict(extra="forbid")

    add: int = Field(0, ge=0)
    price_cents: int | None = Field(None, ge=1)


class Customer(BaseModel):
    """What becomes of a customer: another address, more money."""

    model_config = ConfigDict(extra="forbid")

    address: Address | None = None
    add_cents: int = Field(0, ge=0)


def outside_app(ledger: Ledger, allowed_hosts: Sequence[str], front: str) -> Faulty:
    """The app of the services; the bank tells missions at the foreground `front`."""
    collector = Collector(lambda changed: payment.Bank(ledger, changed), front)

    @contextlib.asynccontextmanager
    async def living(_app: FastAPI) -> AsyncIterator[None]:
        running = asyncio.create_task(collector.run())
        yield
        running.cancel()
        await asyncio.wait({running})

    app = FastAPI(title="Outside services", docs_url=None, redoc_url=None, lifespan=living)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts))
    app.add_exception_handler(Refused, _refused)
    for routes in (stock.stock(ledger), payment.payment(collector.bank), shipping(ledger), logistics(ledger)):
        app.include_router(routes)
    app.include_router(notification(ledger))
    app.include_router(gadgets(ledger))
    app.include_router(model.model(ledger))
    _furnish(ledger)
    _bench(app, ledger)
    model.bench(app, ledger)
    _switches(app, ledger, collector)

    def met(service: str) -> None:
        faults = faults_of(ledger, service)
        if faults.times is not None:
            left = faults.times - 1
            _break_down(ledger, service, faults.model_copy(update={"times": left}) if left else WELL)

    return Faulty(app, lambda service: faults_of(ledger, service) if service in SERVICES else None, met)


async def _refused(_: Request, fault: Exception) -> Response:  # a plain function would cost a thread
    assert isinstance(fault, Refused)  # noqa: S101  it is registered for that
    return JSONResponse({"code": fault.code, "detail": str(fault)}, fault.status)


def _furnish(ledger: Ledger) -> None:
    """Fill shelves and accounts at the first start."""
    with ledger.transaction():
        Shed(ledger).furnish()
        for sku, (price, count) in ITEMS.items():
            if ledger.fact("item", sku) is None:
                ledger.know("item", sku, {"price_cents": price})
                _bring(ledger, stock.BOOK, stock.SUPPLIER, f"shelf:{sku}", count)
        for customer, (address, cents) in CUSTOMERS.items():
            if ledger.fact("customer", customer) is None:
                ledger.know("customer", customer, {"address": address})
                _bring(ledger, payment.BOOK, payment.WORLD, f"customer:{customer}", cents)


def _bring(ledger: Ledger, book: str, source: str, to: str, amount: int) -> None:
    """Into the books, from where their things come."""
    at, order = now_ms(), f"bench:{to}"
    number = ledger.ask("SELECT COUNT(*) FROM effects WHERE order_id = ?", order)[0][0]
    key = f"{order}:{number}"
    ledger.move(ledger.journal(Effect(key, book, "bring", key, order, 0, at)), book, amount, source, to)


def _bench(app: FastAPI, ledger: Ledger) -> None:
    @app.get("/livez")
    async def livez() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/books")
    async def all_books() -> dict[str, Any]:
        return books(ledger)

    @app.get("/books/{order}")
    async def one_page(order: str) -> dict[str, Any]:
        return page(ledger, order)

    @app.post("/items/{sku}")
    async def deliver(sku: str, delivery: Delivery) -> dict[str, Any]:
        with ledger.transaction():
            known = ledger.fact("item", sku) or {"price_cents": 100}
            ledger.know("item", sku, {"price_cents": delivery.price_cents or known["price_cents"]})
            if delivery.add:
                _bring(ledger, stock.BOOK, stock.SUPPLIER, f"shelf:{sku}", delivery.add)
        return stock.item(ledger, sku)

    @app.post("/customers/{customer}")
    async def change(customer: str, change: Customer) -> dict[str, Any]:
        with ledger.transaction():
            known = ledger.fact("customer", customer) or {"address": None}
            if change.address is not None:
                known["address"] = change.address.model_dump()
            ledger.know("customer", customer, known)
            if change.add_cents:
                _bring(ledger, payment.BOOK, payment.WORLD, f"customer:{customer}", change.add_cents)
        return {"customer": customer, **known, "cents": ledger.balance(payment.BOOK, f"customer:{customer}")}

    @app.post("/devices/{gadget}")
    async def touch(gadget: str, hand: Hand) -> dict[str, Any]:
        return Shed(ledger).touch(gadget, hand)


def _switches(app: FastAPI, ledger: Ledger, collector: Collector) -> None:
    @app.get("/faults")
    async def faults() -> dict[str, Any]:
        return {service: faults_of(ledger, service).model_dump() for service in SERVICES}

    @app.put("/faults/{service}")
    async def break_down(service: str, faults: Faults) -> dict[str, Any]:
        if service not in SERVICES:
            raise Refused(404, "no_such_service", f"there is no {service}; there are {', '.join(SERVICES)}")
        _break_down(ledger, service, faults)
        collector.wake()
        return {"service": service, **faults.model_dump()}


def _break_down(ledger: Ledger, service: str, faults: Faults) -> None:
    with ledger.transaction():
        ledger.know("faults", service, faults.model_dump())
