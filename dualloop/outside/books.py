"""The audit: whether what the services wrote down agrees with itself, and what stands for an order."""

from collections import Counter
from typing import Any

from dualloop.outside import gadgets, model, payment, stock
from dualloop.outside.desk import shown, stands
from dualloop.outside.ledger import Ledger

SERVICES = ("stock", "payment", "shipping", "logistics", "notification", gadgets.SERVICE, model.SERVICE)
_MAY_OWE = {stock.BOOK: stock.SUPPLIER, payment.BOOK: payment.WORLD}


def audit(ledger: Ledger) -> list[str]:
    """What does not balance, a sentence each; none: all is well."""
    shop = [*_doubled(ledger), *_postings(ledger), *_stock(ledger), *_money(ledger), *_orders(ledger)]
    return shop + gadgets.audited(ledger)


def books(ledger: Ledger) -> dict[str, Any]:
    """The whole of it, in figures."""
    faults = audit(ledger)
    things = Counter((one.service, one.state) for one in ledger.things())
    return {
        "balanced": not faults,
        "faults": faults,
        "effects": ledger.ask("SELECT COUNT(*) FROM effects")[0][0],
        "stock": ledger.balances(stock.BOOK),
        "money": ledger.balances(payment.BOOK),
        "firmware": gadgets.counted(ledger),
        "model": model.book(ledger),
        "things": {
            name: {state: n for (service, state), n in sorted(things.items()) if service == name} for name in SERVICES
        },
    }


def page(ledger: Ledger, order: str) -> dict[str, Any]:
    """What stands for an order, by service, and all that was done for it."""
    things = ledger.things(order=order)
    standing = {one.service: shown(one) for one in things if stands(one)}
    states = {one.service: one.state for one in things} | {name: one["state"] for name, one in standing.items()}
    journal = [effect._asdict() for effect in ledger.effects(order)]
    return {"order": order, "states": states, "standing": standing, "journal": journal}


def _doubled(ledger: Ledger) -> list[str]:
    """No effect twice under one key, and nothing done twice to one thing."""
    keys = ledger.ask("SELECT key, COUNT(*) FROM effects GROUP BY key HAVING COUNT(*) > 1")
    verbs = "SELECT service, verb, thing, COUNT(*) FROM effects WHERE verb NOT IN ('cancel', 'release', 'refund')"
    things = ledger.ask(f"{verbs} GROUP BY service, verb, thing HAVING COUNT(*) > 1")
    said = [f"key {key} has {n} effects" for key, n in keys]
    return said + [f"{service} did {verb} {n} times to {thing}" for service, verb, thing, n in things]


def _postings(ledger: Ledger) -> list[str]:
    """Every effect moves as much out as in; balances are the sums of their postings; nobody owes."""
    uneven = ledger.ask("SELECT effect, book FROM postings GROUP BY effect, book HAVING SUM(amount) <> 0")
    said = [f"effect {effect} moves more in than out in {book}" for effect, book in uneven]
    sums = {(book, account): total for book, account, total in _sums(ledger)}
    for book, may_owe in _MAY_OWE.items():
        for account, amount in ledger.balances(book).items():
            if sums.get((book, account)) != amount:
                said.append(f"{account} has {amount} in {book}, its postings make {sums.get((book, account))}")
            if amount < 0 and account != may_owe:
                said.append(f"{account} has {amount} in {book}")
    return said


def _sums(ledger: Ledger) -> list[tuple[str, str, int]]:
    return ledger.ask("SELECT book, account, SUM(amount) FROM postings GROUP BY book, account")


def _stock(ledger: Ledger) -> list[str]:
    """What is reserved and taken is that of the reservations."""
    wanted = Counter[str]()
    for one in ledger.things("stock"):
        if one.state in stock.PLACES:
            for line in one.body["lines"]:
                wanted[f"{stock.PLACES[one.state]}:{line['sku']}"] += line["quantity"]
    has = {name: n for name, n in ledger.balances(stock.BOOK).items() if name.startswith(("reserved:", "taken:"))}
    return [
        f"{name} has {has.get(name, 0)}, reservations make {wanted[name]}"
        for name in sorted({*has, *wanted})
        if has.get(name, 0) != wanted[name]
    ]


def _money(ledger: Ledger) -> list[str]:
    """What the shop has is that of the payments."""
    paid = sum(one.body["amount_cents"] for one in ledger.things("payment", payment.PAID))
    has = ledger.balance(payment.BOOK, payment.SHOP)
    return [] if has == paid else [f"the shop has {has} cents, payments make {paid}"]


def _orders(ledger: Ledger) -> list[str]:
    """An order has at most one of each that counts, and each waybill its shipment."""
    live = [one for one in ledger.things() if stands(one)]
    each = Counter((one.service, one.order) for one in live)
    said = [f"order {order} has {n} of {service}" for (service, order), n in each.items() if n > 1]
    shipments = {one.id for one in live if one.service == "shipping"}
    lost = [one for one in live if one.service == "logistics" and one.body["shipment"] not in shipments]
    return said + [f"waybill {one.body['waybill']} of order {one.order} has no shipment" for one in lost]
