"""The home's memory on disk: devices, the answers given by key, and the journal, in one SQLite file.

A change, its journal line and its answer are one transaction, so a home killed at any instruction comes back with
all three or none. The file is locked: a second home on the same folder is refused.
"""

from pathlib import Path
from typing import Final

from dualloop.home.model import Device, Effect, Order
from dualloop.sqlite_file import FileTakenError, open_alone, transaction

KEYS_KEPT: Final = 10_000
JOURNAL_KEPT: Final = 100_000

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS devices (entity TEXT PRIMARY KEY, device TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS orders (n INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, entity TEXT NOT NULL,
                                   placed TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS journal (n INTEGER PRIMARY KEY, entity TEXT NOT NULL, effect TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS journal_by_entity ON journal (entity, n);
"""


class HomeTaken(Exception):  # noqa: N818  a sentence for a person
    """Another home runs on this folder."""


class Store:
    """The file `home.db` in the home's folder; for one thread."""

    def __init__(self, folder: Path) -> None:
        """Open or make it.

        Raises:
            HomeTaken: another process holds it.
        """
        try:
            self._db = open_alone(folder / "home.db", _SCHEMA)
        except FileTakenError as fault:
            raise HomeTaken(f"another home runs on {folder}") from fault

    def close(self) -> None:
        """Give the folder back."""
        self._db.close()

    def devices(self) -> dict[str, Device]:
        """All devices as they were left, by entity."""
        rows = self._db.execute("SELECT entity, device FROM devices")
        return {entity: Device.model_validate_json(device) for entity, device in rows}

    def save(self, device: Device, effect: Effect | None = None, order: Order | None = None) -> None:
        """Keep a device's state, what was done to it, and that the order was carried out, all or none."""
        with transaction(self._db):
            self._db.execute("REPLACE INTO devices VALUES (?, ?)", (device.entity, device.model_dump_json()))
            if effect is not None:
                self._append("journal", "entity, effect", (effect.entity, effect.model_dump_json()), JOURNAL_KEPT)
            if order is not None:
                values = (order.key, device.entity, order.model_dump_json())
                self._append("orders", "key, entity, placed", values, KEYS_KEPT)

    def order(self, key: str) -> tuple[str, Order] | None:
        """The entity and the order that was answered with success under this key, if it is still known."""
        row = self._db.execute("SELECT entity, placed FROM orders WHERE key = ?", (key,)).fetchone()
        return None if row is None else (row[0], Order.model_validate_json(row[1]))

    def journal(self, entity: str) -> list[Effect]:
        """What was done to a device, in order."""
        rows = self._db.execute("SELECT effect FROM journal WHERE entity = ? ORDER BY n", (entity,))
        return [Effect.model_validate_json(effect) for (effect,) in rows]

    def _append(self, table: str, columns: str, values: tuple[str, ...], kept: int) -> None:
        marks = ", ".join("?" * len(values))
        row = self._db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values)  # noqa: S608  our own words
        self._db.execute(f"DELETE FROM {table} WHERE n <= ?", ((row.lastrowid or 0) - kept,))  # noqa: S608  as above
