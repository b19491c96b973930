"""What is true for the whole fleet: how many shards there are, and the key that makes ids genuine."""

import os
from dataclasses import dataclass

from shared import keys
from shared.ids import Ids
from shared.redis import Link


class FleetMismatchError(Exception):
    """This process is configured for another number of shards than its fleet."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Recorded at the fleet's first start; read by every process at its own."""

    shards: int
    ids: Ids


async def join(link: Link, shards: int) -> Fleet:
    """Record the fleet, or read what another process recorded.

    Raises:
        FleetMismatchError: the fleet has another number of shards.
        RedisAwayError: Redis cannot be asked now.
    """
    await link.call("HSETNX", keys.FLEET, "shards", shards)
    await link.call("HSETNX", keys.FLEET, "mac_key", os.urandom(32))
    recorded, mac_key = await link.call("HMGET", keys.FLEET, "shards", "mac_key")
    if int(recorded) != shards:
        raise FleetMismatchError(
            f"this fleet was started with {int(recorded)} shards, this process wants {shards}: "
            f"set DUALLOOP_SHARDS={int(recorded)}, or use another Redis database"
        )
    return Fleet(shards, Ids(mac_key))
