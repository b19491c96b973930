"""The verbs on one shard that only suspects need: adopt, renew, resign, and a look at the record."""

import asyncio
from typing import NamedTuple

from backend_loop.lease import Lease
from backend_loop.redis_clock import RedisClock, boottime
from backend_loop.store import REFUSED_S, Claimed
from backend_loop.suspicion import Losses
from shared import keys
from shared.errors import RedisAwayError
from shared.redis import Link
from shared.settings import Settings


class Standing(NamedTuple):
    """How many commits there are, what workers it has cost, and what was kept of it."""

    rev: int
    losses: Losses
    document: bytes


class SoloVerbs:
    """Each goes on however long Redis is away.

    Args:
        link: to Redis.
        shard: whose keys.
        settings: of the process.
    """

    def __init__(self, link: Link, shard: int, settings: Settings) -> None:
        """Nothing is asked yet."""
        self._link, self._shard, self._settings = link, shard, settings
        self._prefix = keys.prefix(shard)

    async def adopt(self, claimed: Claimed, solo: str) -> bool:
        """Move a mission to an owner that carries nothing else; whether it was ours."""
        lease_ms = round(self._settings.lease_s * 1000)
        while True:
            try:
                await self._link.up()
                answer = await self._link.run(
                    "adopt", self._prefix, claimed.owner, solo, lease_ms, claimed.task_id, claimed.fence
                )
                return bool(answer == b"OK")
            except RedisAwayError:
                await asyncio.sleep(REFUSED_S[0])

    async def renew(self, lease: Lease, clock: RedisClock) -> bool:
        """Renew a lease once, and learn Redis' time; whether it stands. The renewal thread does it from there on."""
        settings, owner = self._settings, lease.owner
        times = (round(settings.lease_s * 1000), round(settings.poll_s * 1000))
        while True:
            try:
                await self._link.up()
                sent_at = boottime()
                answer = await self._link.run("renew", self._prefix, owner, *times)
            except RedisAwayError:
                await asyncio.sleep(REFUSED_S[0])
                continue
            if answer == b"LOST":
                return False
            clock.set(answer[1], sent_at)
            lease.renewed(owner, sent_at)
            return True

    async def standing(self, task_id: str) -> Standing:
        """As of now; of a mission that is gone, nothing."""
        while True:
            try:
                await self._link.up()
                names = ("rev", "deaths", "toll", "document")
                rev, deaths, toll, text = await self._link.call("HMGET", keys.mission(self._shard, task_id), *names)
                return Standing(int(rev or 0), Losses(int(deaths or 0), int(toll or 0)), text or b"")
            except RedisAwayError:
                await asyncio.sleep(REFUSED_S[0])

    async def resign(self, owner: str) -> None:
        """End a solo owner's lease, if nothing is held under it.

        Raises:
            RedisAwayError: it will lapse.
        """
        await self._link.run("resign", self._prefix, owner)
