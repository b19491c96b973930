"""A CSV of sales with all that may be wrong with one, made from a seed, and what is to become of it."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

JOB: Final[dict[str, Any]] = {
    "source": "sales.csv",
    "fields": [
        {"name": "id", "type": "integer", "required": True},
        {"name": "customer", "required": True},
        {"name": "email"},
        {"name": "price_cents", "type": "integer", "required": True},
        {"name": "quantity", "type": "integer", "required": True},
        {"name": "sold", "type": "date"},
    ],
    "columns": {
        "id": "id",
        "customer": "customer",
        "email": {"from": "email", "case": "lower"},
        "total_cents": {"product": ["price_cents", "quantity"]},
        "sold": "sold",
    },
    "key": ["id"],
    "table": "sales",
    "budget": {"share": 0.05},
}

BAD: Final = (
    b"{id},{name},{email},{price},many,{sold}",
    b"{id},,{email},{price},{quantity},{sold}",
    b",{name},{email},{price},{quantity},{sold}",
    b"{id},{name},{email},{price},{quantity}",
    b"{id},{name},{email},{price},{quantity},{sold},more",
    b"{id},{name},{email},{price},{quantity},2026-02-30",
    b"{id},\xff\xfe,{email},{price},{quantity},{sold}",
    b'{id},"{name},{email},{price},{quantity},{sold}',
    b"{id},{name},{email},9223372036854775807,9,{sold}",
)
GOOD: Final = (
    b"{id},{name},{email},{price},{quantity},{sold}",
    b'{id},"{name}, Ltd.",{email},{price},{quantity},{sold}',
    b'{id},"{name}\n""the second""",{email},{price},{quantity},',
    b" {id} , {name} ,,{price},{quantity}, {sold} ",
)


@dataclass
class Sales:
    """What is in the file.

    Attributes:
        good: total by id, of the rows that are to be in the table.
        bad: lines of those that are not.
    """

    rows: int = 0
    good: dict[int, int] = field(default_factory=dict)
    bad: list[int] = field(default_factory=list)


def write(path: Path, rows: int, seed: int = 0, bad: float = 0.01) -> Sales:
    """Make the file; such a part of it is bad, a third of that by keys that were there before."""
    dice, sales, line = random.Random(seed), Sales(rows), 2
    with path.open("wb") as file:
        file.write(b"\xef\xbb\xbfid,customer,email,price_cents,quantity,sold\r\n")
        for id_ in range(1, rows + 1):
            price, quantity = dice.randint(1, 99_999), dice.randint(1, 20)
            spoilt = dice.random() < bad
            double = spoilt and dice.random() < 1 / 3 and len(sales.good) > 0
            text = dice.choice(BAD if spoilt and not double else GOOD)
            key = dice.choice(list(sales.good)[-5_000:]) if double else id_
            for name, value in {
                "id": key,
                "name": f"Customer {id_}",
                "email": f"Person{id_}@Example.org",
                "price": price,
                "quantity": quantity,
                "sold": f"2026-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}",
            }.items():
                text = text.replace(b"{%s}" % name.encode(), str(value).encode())
            file.write(text + b"\r\n")
            if spoilt:
                sales.bad.append(line)
            else:
                sales.good[id_] = price * quantity
            line += 1 + text.count(b"\n")
    return sales
