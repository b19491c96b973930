"""What is true for the whole fleet: how many shards there are, and the key that makes ids genuine."""

import os

from shared import keys
from shared.errors import RedisAwayError
from shared.ids import Ids
from shared.redis import Link


class FleetMismatchError(Exception):
    """This process is configured for another number of shards than its fleet."""


class Fleet:
    """Recorded at the fleet's first start; read by every process at its own, and by foregrounds ever after."""

    def __init__(self, shards: int) -> None:
        """As configured; `join` holds it to what is recorded."""
        self.shards = shards
        self._ids: Ids | None = None
        self._mac_key: bytes | None = None

    @property
    def joined(self) -> bool:
        """Whether the record was read."""
        return self._ids is not None

    @property
    def ids(self) -> Ids:
        """Makes and reads the fleet's ids.

        Raises:
            RedisAwayError: the fleet's key could not be read yet.
        """
        if self._ids is None:
            raise RedisAwayError("Redis has not been reached since this process started")
        return self._ids

    async def join(self, link: Link) -> None:
        """Record the fleet, or read what another process recorded. To be said again: Redis may have lost the record.

        What was lost is recorded again with the key that this process knows, so that ids stay genuine; where another
        process was faster, its key counts.

        Raises:
            FleetMismatchError: the fleet has another number of shards.
            RedisAwayError: Redis cannot be asked now.
        """
        recorded, mac_key = await link.call("HMGET", keys.FLEET, "shards", "mac_key")
        if recorded is None or mac_key is None:  # asked first: a full Redis refuses even a write that changes nothing
            await link.call("HSETNX", keys.FLEET, "shards", self.shards)
            await link.call("HSETNX", keys.FLEET, "mac_key", self._mac_key or os.urandom(32))
            recorded, mac_key = await link.call("HMGET", keys.FLEET, "shards", "mac_key")
        if int(recorded) != self.shards:
            raise FleetMismatchError(
                f"this fleet was started with {int(recorded)} shards, this process wants {self.shards}: "
                f"set DUALLOOP_SHARDS={int(recorded)}, or use another Redis database"
            )
        if mac_key != self._mac_key:
            self._mac_key, self._ids = mac_key, Ids(mac_key)
