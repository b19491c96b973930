"""Missions that are there, and what their types say of what may be done to them."""

from dataclasses import dataclass
from typing import Final

from frontend_loop.record import Record, number, readable
from shared import keys
from shared.catalogue import Catalogue, Entry
from shared.errors import Problem
from shared.ids import MissionId
from shared.redis import Link

NEEDED: Final = ("type", "version", "status", "state", "place")


@dataclass(frozen=True, slots=True)
class Found:
    """A mission: some fields of its record, and its type in its version (None: no live worker knows that)."""

    record: Record
    entry: Entry | None

    @property
    def kind(self) -> str:
        """``type@version``."""
        return f"{self.record['type']}@{self.record['version']}"


class Kinds:
    """Looks them up."""

    def __init__(self, link: Link, catalogue: Catalogue) -> None:
        """`catalogue` is kept fresh by somebody else."""
        self._link, self._catalogue = link, catalogue

    async def find(self, mission: MissionId, *fields: str) -> Found:
        """A mission, with these fields of its record and those that are always `NEEDED`.

        Raises:
            Problem: 410, it has ended and is no longer kept.
            RedisAwayError: it cannot be read now.
        """
        names = (*NEEDED, *fields)
        values = await self._link.call("HMGET", keys.mission(mission.shard, mission.text), *names)
        known = readable(dict(zip(names, values, strict=True)))
        if any(name not in known for name in NEEDED):
            raise Problem("expired", "this mission has ended and is no longer kept", correlation_id=mission.text)
        return Found(known, await self.entry(known["type"], number(known, "version")))

    async def entry(self, type_: str, version: int) -> Entry | None:
        """A type in a version, asked anew if it is not known: perhaps a worker has just announced it."""
        found = self._catalogue.find(type_, version)
        if found is None and await self._catalogue.refresh(self._link):
            found = self._catalogue.find(type_, version)
        return found
