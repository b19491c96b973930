"""The home's inventory as clients see and replace it."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from frontend_loop.home_file import HomeFile
from frontend_loop.reading import invalid, read_json
from shared.clock import rfc3339
from shared.errors import Problem
from shared.home import EMPTY, Inventory, InventoryError, check
from shared.home_store import Stored, Taken, fetch, furnish
from shared.logs import get
from shared.redis import Link
from shared.settings import Settings

log = get(__name__)

SHOWN: Final = ("file", "detail", "errors", "at")
"""What clients see of the trouble with a file; which machine has it they do not."""


class Told(NamedTuple):
    """An answer: its body and its entity tag, quotes included."""

    body: bytes
    etag: str


class Inventories:
    """Tells it, and takes another one in.

    Args:
        link: to Redis.
        file: what it is written to as well.
        settings: of the process.
    """

    def __init__(self, link: Link, file: HomeFile, settings: Settings) -> None:
        """Ready at once."""
        self._link, self._file, self._settings = link, file, settings

    async def look(self) -> Told:
        """The inventory, its revision, and what is wrong with the file, if anything is.

        Raises:
            RedisAwayError: it cannot be read now.
        """
        return told(await fetch(self._link))

    async def replace(self, raw: bytes, if_match: str | None) -> Told:
        """Take this document in; `if_match` is the header of that name.

        Raises:
            Problem: 400, 422 it is no inventory; 409 the file cannot be written; 412 another one is there by now.
            RedisAwayError: nothing, or as `RedisUnknownError` perhaps something, was changed.
        """
        inventory = await asyncio.to_thread(self._read, raw)
        known = None if if_match is None else revisions(if_match)
        try:
            async with self._file.held():
                prepared = await self._file.prepare(inventory)
                try:
                    taken = await self._taken(inventory, known)
                    await self._put(prepared, taken)
                finally:
                    self._file.drop(prepared)
        except (OSError, TimeoutError) as error:
            why = getattr(error, "strerror", None) or "another process holds it"
            raise Problem("home_file", f"the file of the home's inventory cannot be written: {why}") from error
        log.info("home replaced", word=taken.word, revision=taken.revision, devices=len(inventory.devices))
        return told(Stored(taken.revision, inventory.packed(), taken.changed_at, None))

    async def _taken(self, inventory: Inventory, known: frozenset[str] | None) -> Taken:
        taken = await furnish(self._link, inventory, known)
        if taken.word == "CHANGED":
            detail = f"the home is at revision {taken.revision} by now: read it again, and change that"
            raise Problem("home_changed", detail)
        return taken

    async def _put(self, prepared: Path, taken: Taken) -> None:
        """Redis has it already, so that it is true; what keeps the file from following is no fault of who asked."""
        try:
            await self._file.put(prepared, taken.revision, taken.changed_at or 0)
        except OSError as error:
            log.warning("home file not written", error=str(error))

    def _read(self, raw: bytes) -> Inventory:
        try:
            return check(read_json(raw, self._settings.max_depth))
        except InventoryError as error:
            raise invalid(error.faults, "invalid_home") from None


def told(stored: Stored) -> Told:
    """What clients are told of what lies in Redis."""
    document = EMPTY.packed() if stored.document is None else stored.document
    trouble = None if stored.trouble is None else {name: stored.trouble[name] for name in SHOWN}
    body: dict[str, Any] = {
        "revision": stored.revision,
        "changed_at": None if stored.changed_at is None else rfc3339(stored.changed_at),
        "trouble": trouble,
        "inventory": from_json(document),
    }
    mark = "" if trouble is None else "." + hashlib.sha256(to_json(trouble)).hexdigest()[:8]
    return Told(to_json(body), f'"{stored.revision}{mark}"')


def revisions(header: str) -> frozenset[str] | None:
    """The revisions that an If-Match names; None: any. A weak tag matches nothing there."""
    tags = frozenset(tag.strip() for tag in header.split(","))
    if "*" in tags:
        return None
    return frozenset(tag.strip('"').partition(".")[0] for tag in tags if tag.startswith('"'))


def unchanged(header: str | None, etag: str) -> bool:
    """Whether an If-None-Match names this tag."""
    tags = {tag.strip().removeprefix("W/") for tag in (header or "").split(",")}
    return bool(tags & {etag, "*"})
