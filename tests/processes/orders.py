"""Orders of the two shop missions, and what the outside services' books must say once they have ended."""

from dataclasses import dataclass
from typing import Any, Final

from tests.services import OutsideServices

DONE: Final[dict[str, dict[str, str]]] = {
    "order.fulfil": {"stock": "taken", "shipping": "created", "logistics": "issued", "notification": "sent"},
    "payment.ship": {"payment": "paid", "stock": "taken", "shipping": "created"},
}
"""What stands outside for an order that was done."""

OPTIONAL: Final = frozenset({"notification"})


@dataclass(frozen=True)
class Kind:
    """A way that an order goes."""

    type: str
    customer: str
    ends: str
    """The status that it ends with, if nothing else happens to it."""

    def command(self, order: str) -> dict[str, Any]:
        """What is sent."""
        lines = [{"sku": "lamp", "quantity": 2}, {"sku": "kettle", "quantity": 1}]
        return {"payload": {"order": order, "customer": self.customer, "lines": lines}}


KINDS: Final = (
    Kind("order.fulfil", "ada", "SUCCEEDED"),
    Kind("order.fulfil", "nemo", "FAILED"),  # no carrier goes there: stock and shipment are undone
    Kind("payment.ship", "bo", "SUCCEEDED"),
    Kind("payment.ship", "nomad", "FAILED"),  # has paid, and has no address: the money goes back
)


def check_order(outside: OutsideServices, order: str, document: dict[str, Any]) -> None:
    """What stands for it outside is all of it, or nothing."""
    page = outside.page(order)
    standing = {service: one["state"] for service, one in page["standing"].items()}
    if document["status"] == "SUCCEEDED":
        wanted = DONE[document["type"]]
        assert standing | {"notification": "sent"} == wanted | {"notification": "sent"}, (document, page)
        assert wanted.keys() - standing.keys() <= OPTIONAL, (document, page)
    else:
        assert standing.keys() <= OPTIONAL, (document, page)  # a message that was sent cannot be called back
    keys = [effect["key"] for effect in page["journal"]]
    assert len(keys) == len(set(keys)), page


def check_books(outside: OutsideServices) -> None:
    """All of them balance; so each effect was had once under its key."""
    books = outside.books()
    assert books["balanced"], books["faults"]
    assert sum(amount for name, amount in books["stock"].items() if name.startswith("reserved:")) == 0, books["stock"]
