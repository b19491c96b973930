"""Says which mission types this process knows, and hears which ones others do (P15)."""

import asyncio
from collections.abc import Mapping
from typing import Final

from backend_loop.mission_type import MissionType, rows_of
from shared import keys
from shared.catalogue import Catalogue
from shared.loop import Answer, Idle, Loop
from shared.redis import Link
from shared.settings import Settings

ROW_KEPT_MS: Final = 86_400_000
"""A catalogue row goes a day after its last live worker (P15)."""

ANNOUNCE_S: Final = 30.0


class Announcer:
    """The loop `announce`.

    Args:
        link: to Redis.
        types: what this process knows.
        catalogue: of all types, kept fresh here: missions of others may be children of ours.
        settings: of the process.
        announced: set once the types were said.
    """

    def __init__(
        self,
        link: Link,
        types: Mapping[str, MissionType],
        catalogue: Catalogue,
        settings: Settings,
        announced: asyncio.Event,
    ) -> None:
        """Nothing runs yet: start its `loop`."""
        self._link, self._catalogue, self._announced = link, catalogue, announced
        # made once: a type does not change while its process runs, and to describe one takes milliseconds
        self._rows = [word for row in rows_of(types.values()) for word in (row.kind, row.model_dump_json())]
        self.loop = Loop(
            "announce",
            self._once,
            trigger="timed",
            interval_s=ANNOUNCE_S,
            backoff_cap_s=settings.poll_s,
            describe="publishes the mission types that this process knows",
            output="catalogue rows",
        )

    async def _once(self) -> Answer:
        await self._link.run("announce", keys.prefix(0), ROW_KEPT_MS, *self._rows)
        self._announced.set()
        await self._catalogue.refresh(self._link)
        return Idle()
