"""The home as this process knows it: a copy of the inventory that lies in Redis, kept fresh."""

import asyncio
from typing import Final

from shared import keys
from shared.home import EMPTY, Inventory, InventoryError, read
from shared.home_store import fetch
from shared.logs import get
from shared.loop import Answer, Idle, Loop
from shared.redis import Link

log = get(__name__)

LOOK_S: Final = 5.0
"""A lost hint costs so much time at most."""


class HomeBook:
    """This process' copy; an empty home until it was first read."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._inventory, self._seen = EMPTY, EMPTY.revision

    def current(self) -> Inventory:
        """The home as of the last look."""
        return self._inventory

    async def refresh(self, link: Link) -> bool:
        """Look whether it has changed, and read it; True if it has.

        A document that this release cannot read leaves the copy as it is: one bad write must not empty every home.

        Raises:
            RedisAwayError: the copy stays as it is.
        """
        revision = await link.call("HGET", keys.HOME, "revision")
        if (EMPTY.revision if revision is None else revision.decode()) == self._seen:
            return False
        stored = await fetch(link)
        try:
            inventory = EMPTY if stored.document is None else await asyncio.to_thread(read, stored.document)
        except InventoryError as error:
            log.warning("home not understood", revision=stored.revision, error=str(error))
            self._seen = stored.revision
            return False
        self._inventory, self._seen = inventory, stored.revision
        log.info("home read", revision=stored.revision, devices=len(inventory.devices), scenes=len(inventory.scenes))
        return True

    def following(self, link: Link) -> Loop:
        """The loop `home`, woken by the channel `keys.FURNISHED`."""

        async def look() -> Answer:
            await self.refresh(link)
            return Idle()

        return Loop(
            "home",
            look,
            trigger="woken",
            interval_s=LOOK_S,
            vital=False,
            describe="reads the home's inventory where it has changed",
            output="this process' copy",
        )
