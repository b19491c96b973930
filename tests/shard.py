"""The work of one process on one shard, in the process of the test: claims are made when the test says so."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from backend_loop import registry
from backend_loop.admission import Admission
from backend_loop.blocking import BlockWatch
from backend_loop.breakers import Breakers
from backend_loop.carrier import Carrier
from backend_loop.executors import Executors
from backend_loop.lease import Lease
from backend_loop.redis_clock import RedisClock
from backend_loop.shard_loop import ShardLoop
from backend_loop.slots import Slots
from backend_loop.spawning import Spawning
from backend_loop.store import Store
from backend_loop.suspects import Suspects
from frontend_loop.door import Door
from shared import keys
from shared.catalogue import Catalogue
from shared.fleet import Fleet
from shared.redis import Link
from shared.settings import Settings
from tests.toxic import Toxic

SETTINGS = Settings(_env_file=None, pools=("default",), lease_s=120)
TYPES = registry.load(["tests.missions.plain"])


class Bench:
    """A door on a good connection, and a shard's work on one that the test can spoil."""

    def __init__(self, good: Link, door: Door, shard: ShardLoop, slots: Slots, toxic: Toxic) -> None:
        self.good, self.door, self.shard, self.slots, self.toxic = good, door, shard, slots, toxic

    async def send(self, type_: str, *, priority: str = "normal", **payload: Any) -> str:
        command = {"type": type_, "payload": payload, "priority": priority}
        return (await self.door.take(command, "cli")).task_id

    async def place(self, task_id: str) -> str:
        return str((await self.good.call("HGET", keys.mission(0, task_id), "place")).decode())


@asynccontextmanager
async def benched(redis_url: str) -> AsyncIterator[Bench]:
    """Nothing is claimed yet; what runs at the end is cut."""
    async with Toxic(redis_url) as toxic:
        good = await Link(redis_url).open(wait_s=30)
        spoiled = await Link(toxic.url, timeout_s=30).open(wait_s=30)
        fleet, catalogue = Fleet(1), Catalogue()
        await fleet.join(good)
        rows = [definition.row() for definition in TYPES.values()]
        parts = [part for row in rows for part in (row.kind, row.model_dump_json())]
        await good.run("announce", keys.prefix(0), 60_000, *parts)
        await catalogue.refresh(good)
        clock, lease, slots = RedisClock(), Lease(0, SETTINGS.lease_s, lambda _owner: None), Slots(SETTINGS)
        store = Store(spoiled, 0, lease, SETTINGS, clock)
        shard = ShardLoop(
            store=store,
            types=TYPES,
            slots=slots,
            clock=clock,
            admission=Admission(spoiled, 0, SETTINGS, clock, Breakers(spoiled, 1)),
            executors=Executors(SETTINGS),
            device=None,
            spawning=Spawning(fleet, TYPES.values(), catalogue, SETTINGS.deadline_s),
            carrier=Carrier(spoiled, 0, fleet, SETTINGS),
            suspects=Suspects(SETTINGS, redis_url, spoiled),
            watch=BlockWatch(TYPES.values(), SETTINGS.lease_s),
            settings=SETTINGS,
            freed=lambda: None,
        )
        yield Bench(good, Door(good, fleet, catalogue, SETTINGS, ""), shard, slots, toxic)
        toxic.swallow = False
        await shard.cut()
        await spoiled.close()
        await good.close()
