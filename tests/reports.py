"""A database of people, and what an export of it must be."""

import csv
import io
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

COLUMNS: Final = ("id", "name", "city", "size")


def person(n: int) -> tuple[int, str, str | None, float]:
    return (n, f"Person {n}, called “{'x' * (n % 17)}”", None if n % 5 == 0 else f"City {n % 7}", n / 4)


def fill(path: Path, count: int) -> None:
    """A database with a table of so many people, and a view of the tall ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city TEXT, size REAL)")
        db.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", map(person, range(1, count + 1)))
        db.execute("CREATE VIEW tall AS SELECT name, size FROM people WHERE size > 10")


def read(data: bytes) -> list[tuple[Any, ...]]:
    """The people of a CSV file, as `person` makes them."""
    head, *rows = csv.reader(io.StringIO(data.decode(), newline=""))
    assert tuple(head) == COLUMNS
    return [(int(id_), name, city or None, float(size)) for id_, name, city, size in rows]
