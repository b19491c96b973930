"""The memory of the outside services on disk: things, effects, postings and answers, in one SQLite file.

Whatever one request does is one transaction, so a process killed at any instruction comes back with all of it or none.
The file is locked: a second process on the same folder is refused.
"""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, NamedTuple

from dualloop.sqlite_file import FileTakenError, open_alone, transaction

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS facts (kind TEXT, id TEXT, body TEXT NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS things (service TEXT, id TEXT, order_id TEXT NOT NULL, state TEXT NOT NULL,
                                   body TEXT NOT NULL, PRIMARY KEY (service, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS things_by_order ON things (order_id);
CREATE INDEX IF NOT EXISTS things_by_state ON things (service, state);
CREATE TABLE IF NOT EXISTS effects (n INTEGER PRIMARY KEY, key TEXT NOT NULL, service TEXT NOT NULL,
                                    verb TEXT NOT NULL, thing TEXT NOT NULL, order_id TEXT NOT NULL,
                                    fence INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS effects_by_order ON effects (order_id);
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, asked TEXT NOT NULL, answer TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS postings (n INTEGER PRIMARY KEY, effect INTEGER NOT NULL, book TEXT NOT NULL,
                                     account TEXT NOT NULL, amount INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS balances (book TEXT, account TEXT, amount INTEGER NOT NULL,
                                     PRIMARY KEY (book, account)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fences (holder TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS notices (n INTEGER PRIMARY KEY, mission TEXT NOT NULL, body TEXT NOT NULL);
"""


class OutsideTaken(Exception):  # noqa: N818  a sentence for a person
    """Other outside services run on this folder."""


class Thing(NamedTuple):
    """What a service keeps under the key that it was made with: a reservation, a payment, a shipment."""

    service: str
    id: str
    order: str
    state: str
    body: dict[str, Any]


class Effect(NamedTuple):
    """One line of the journal: something was done, under this key."""

    key: str
    service: str
    verb: str
    thing: str
    order: str
    fence: int
    at: int


class Ledger:
    """The file `outside.db` in the services' folder; for one thread."""

    def __init__(self, folder: Path) -> None:
        """Open or make it.

        Raises:
            OutsideTaken: another process holds it.
        """
        try:
            self._db = open_alone(folder / "outside.db", _SCHEMA)
        except FileTakenError as fault:
            raise OutsideTaken(f"other outside services run on {folder}") from fault

    def close(self) -> None:
        """Give the folder back."""
        self._db.close()

    def transaction(self) -> AbstractContextManager[None]:
        """All that is written within, or nothing if it raises."""
        return transaction(self._db)

    def fact(self, kind: str, id_: str) -> dict[str, Any] | None:
        """What is known, of an item or a customer, say."""
        row = self._db.execute("SELECT body FROM facts WHERE kind = ? AND id = ?", (kind, id_)).fetchone()
        return None if row is None else json.loads(row[0])

    def facts(self, kind: str) -> dict[str, dict[str, Any]]:
        """All of a kind, by id."""
        rows = self._db.execute("SELECT id, body FROM facts WHERE kind = ?", (kind,))
        return {id_: json.loads(body) for id_, body in rows}

    def know(self, kind: str, id_: str, body: Mapping[str, Any]) -> None:
        """Replace it."""
        self._db.execute("REPLACE INTO facts VALUES (?, ?, ?)", (kind, id_, json.dumps(body)))

    def thing(self, service: str, id_: str) -> Thing | None:
        """It, as it stands."""
        row = self._db.execute("SELECT * FROM things WHERE service = ? AND id = ?", (service, id_)).fetchone()
        return None if row is None else _thing(row)

    def things(self, service: str | None = None, state: str | None = None, order: str | None = None) -> list[Thing]:
        """Those of a service, in a state, of an order; by id."""
        asked = {"service": service, "state": state, "order_id": order}
        of = " AND ".join(f"(:{one} IS NULL OR {one} = :{one})" for one in asked)
        rows = self._db.execute(f"SELECT * FROM things WHERE {of} ORDER BY id", asked)  # noqa: S608  our own words
        return [_thing(row) for row in rows]

    def put(self, thing: Thing) -> None:
        """Keep it as it is now."""
        values = (thing.service, thing.id, thing.order, thing.state, json.dumps(thing.body))
        self._db.execute("REPLACE INTO things VALUES (?, ?, ?, ?, ?)", values)

    def journal(self, effect: Effect) -> int:
        """Write an effect down; its number."""
        columns = "key, service, verb, thing, order_id, fence, at"
        row = self._db.execute(f"INSERT INTO effects ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)", effect)  # noqa: S608  our own words
        return row.lastrowid or 0

    def effects(self, order: str) -> list[Effect]:
        """What was done for an order, in order."""
        columns = "key, service, verb, thing, order_id, fence, at"
        rows = self._db.execute(f"SELECT {columns} FROM effects WHERE order_id = ? ORDER BY n", (order,))  # noqa: S608  our own words
        return [Effect(*row) for row in rows]

    def move(self, effect: int, book: str, amount: int, source: str, to: str) -> None:
        """Post an amount from one account of a book to another."""
        for account, change in ((source, -amount), (to, amount)):
            columns = "effect, book, account, amount"
            self._db.execute(f"INSERT INTO postings ({columns}) VALUES (?, ?, ?, ?)", (effect, book, account, change))  # noqa: S608  our own words
            known = "ON CONFLICT (book, account) DO UPDATE SET amount = amount + excluded.amount"
            self._db.execute(f"INSERT INTO balances VALUES (?, ?, ?) {known}", (book, account, change))  # noqa: S608  as above

    def balance(self, book: str, account: str) -> int:
        """What stands on an account."""
        row = self._db.execute("SELECT amount FROM balances WHERE book = ? AND account = ?", (book, account))
        return int((row.fetchone() or (0,))[0])

    def balances(self, book: str) -> dict[str, int]:
        """What stands on every account of a book."""
        return dict(self._db.execute("SELECT account, amount FROM balances WHERE book = ? ORDER BY account", (book,)))

    def answer(self, key: str) -> tuple[str, dict[str, Any]] | None:
        """What was asked and answered under this key."""
        row = self._db.execute("SELECT asked, answer FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else (row[0], json.loads(row[1]))

    def keep_answer(self, key: str, asked: str, answer: Mapping[str, Any]) -> None:
        """Remember it."""
        self._db.execute("INSERT INTO answers VALUES (?, ?, ?)", (key, asked, json.dumps(answer)))

    def fence(self, holder: str) -> int:
        """The highest one that this mission has come with."""
        row = self._db.execute("SELECT fence FROM fences WHERE holder = ?", (holder,)).fetchone()
        return 0 if row is None else int(row[0])

    def keep_fence(self, holder: str, fence: int) -> None:
        """Remember a higher one."""
        self._db.execute("REPLACE INTO fences VALUES (?, ?)", (holder, fence))

    def notify(self, mission: str, body: Mapping[str, Any]) -> None:
        """An event that a mission is to be told."""
        self._db.execute("INSERT INTO notices (mission, body) VALUES (?, ?)", (mission, json.dumps(body)))

    def notice(self, after: int) -> tuple[int, str, dict[str, Any]] | None:
        """Number, mission and body of the first event behind this number that nobody has taken yet."""
        asked = "SELECT n, mission, body FROM notices WHERE n > ? ORDER BY n LIMIT 1"
        row = self._db.execute(asked, (after,)).fetchone()
        return None if row is None else (row[0], row[1], json.loads(row[2]))

    def told(self, notice: int) -> None:
        """It was taken, or never will be."""
        self._db.execute("DELETE FROM notices WHERE n = ?", (notice,))

    def ask(self, query: str, *values: Any) -> list[Any]:
        """Rows, for an audit."""
        return self._db.execute(query, values).fetchall()


def _thing(row: tuple[str, str, str, str, str]) -> Thing:
    service, id_, order, state, body = row
    return Thing(service, id_, order, state, json.loads(body))
