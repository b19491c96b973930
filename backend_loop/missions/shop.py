"""What the missions of a shop share: how an order is written, and what they lean on outside."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from pydantic import BaseModel, Field

from backend_loop.dependency import Breaker, Dependency
from backend_loop.retry import Retry
from backend_loop.toolbox import Toolbox
from shared.shortened import shortened

STOCK: Final = Dependency("stock", breaker=Breaker(failures=10, open_s=2, probes=2, ramp_s=2), retry_ratio=1.0)
PAYMENT: Final = Dependency("payment", breaker=Breaker(failures=10, open_s=2, probes=2, ramp_s=2), retry_ratio=1.0)
SHIPPING: Final = Dependency("shipping", breaker=Breaker(failures=10, open_s=2, probes=2, ramp_s=2), retry_ratio=1.0)
LOGISTICS: Final = Dependency("logistics", breaker=Breaker(failures=10, open_s=2, probes=2, ramp_s=2), retry_ratio=1.0)
NOTIFICATION: Final = Dependency("notification", breaker=Breaker(failures=5, open_s=10), retry_ratio=0.5)

FORTH: Final = Retry(tries=20, base_s=0.2, cap_s=10, max_elapsed_s=120)
"""Going on: a customer waits, so there is a time for all tries."""

BACK: Final = Retry(tries=1_000, base_s=0.2, cap_s=30)
"""Undoing: whatever happens it is to be undone, however long that takes."""

NAME: Final = r"^[\w-][\w.-]*$"
"""What stands in paths of services begins with no dot: ``..`` would lead to another one."""

TOLD: Final = 60
"""Characters of a wrong value in a sentence."""


class Line(BaseModel):
    """So many of an item."""

    sku: str = Field(min_length=1, max_length=100, pattern=NAME)
    quantity: int = Field(ge=1, le=1_000)


class Order(BaseModel):
    """Who wants what."""

    order: str = Field(min_length=1, max_length=100, pattern=NAME, examples=["A-1"])
    customer: str = Field(min_length=1, max_length=100, pattern=NAME, examples=["ada"])
    lines: list[Line] = Field(min_length=1, max_length=20)

    @property
    def wanted(self) -> list[dict[str, Any]]:
        """The lines, as services take them."""
        return [line.model_dump() for line in self.lines]


class NotAsPromisedError(Exception):
    """What the customer saw does not hold any more: it is for them to say what is to become of it."""


class SnapshotError(ValueError):
    """The front's snapshot holds what cannot be compared with anything."""


def promised_cents(snapshot: Mapping[str, Any] | None, sku: str) -> float | None:
    """What the customer saw as the price of an item; None: the front did not say.

    Raises:
        SnapshotError: that is no price. It is looked at here, since whatever breaks a handler counts against a service.
    """
    prices = (snapshot or {}).get("prices", {})
    if not isinstance(prices, dict):
        raise SnapshotError("the snapshot's prices are no object of cents by item")
    price = prices.get(sku)
    if sku in prices and (isinstance(price, bool) or not isinstance(price, int | float)):
        raise SnapshotError(f"the snapshot's price of {sku} is {shortened(repr(price), TOLD)}, and no number of cents")
    return price


async def total_cents(tools: Toolbox[Any, Any]) -> int:
    """What the order costs, by what stock says now.

    Raises:
        NotAsPromisedError: something is not there, or costs more than in the front's snapshot.
        SnapshotError: see `promised_cents`.
    """
    total = 0
    for line in tools.payload.lines:
        promised = promised_cents(tools.envelope.snapshot, line.sku)
        item = await tools.ask(f"stock/items/{line.sku}")
        if item["available"] < line.quantity:
            raise NotAsPromisedError(f"{line.quantity} of {line.sku} are wanted, {item['available']} are there")
        price = item["price_cents"]
        if promised is not None and price > promised:
            raise NotAsPromisedError(f"{line.sku} costs {price} cents now, and the customer saw {promised}")
        total += price * line.quantity
    return total


async def live_address(tools: Toolbox[Any, Any]) -> dict[str, str]:
    """Where the customer lives now, whatever the front knew."""
    known = await tools.ask(f"shipping/addresses/{tools.payload.customer}")
    return {"street": known["street"], "city": known["city"]}


def at(thing: str) -> str:
    """A thing's id, which is a key, as part of a path."""
    return quote(thing, safe="")
