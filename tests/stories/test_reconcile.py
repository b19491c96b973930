"""P6: a mission leased to a process that does not run it goes back at once, or its renewals would keep it for ever."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

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
from tests.waiting import eventually

SETTINGS = Settings(_env_file=None, redis_timeout_s=0.5)
TYPES = registry.load(["tests.missions.plain"])


class Bench:
    """A door on a good connection, and a shard's work on one that the test can spoil."""

    def __init__(self, good: Link, door: Door, shard: ShardLoop, toxic: Toxic) -> None:
        self.good, self.door, self.shard, self.toxic = good, door, shard, toxic

    async def send(self, type_: str, **payload: Any) -> str:
        return (await self.door.take({"type": type_, "payload": payload}, "cli")).task_id

    async def place(self, task_id: str) -> str:
        return str((await self.good.call("HGET", keys.mission(0, task_id), "place")).decode())


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with Toxic(redis_url) as toxic:
        good = await Link(redis_url).open(wait_s=5)
        spoiled = await Link(toxic.url, timeout_s=0.5).open(wait_s=5)
        fleet, catalogue = Fleet(1), Catalogue()
        await fleet.join(good)
        rows = [definition.row() for definition in TYPES.values()]
        parts = [part for row in rows for part in (row.kind, row.model_dump_json())]
        await good.run("announce", keys.prefix(0), 60_000, *parts)
        await catalogue.refresh(good)
        clock, lease = RedisClock(), Lease(0, SETTINGS.lease_s, lambda _owner: None)
        store = Store(spoiled, 0, lease, SETTINGS, clock)
        shard = ShardLoop(
            store=store,
            types=TYPES,
            slots=Slots(SETTINGS),
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
        yield Bench(good, Door(good, fleet, catalogue, SETTINGS, ""), shard, toxic)
        toxic.swallow = False
        await shard.cut()
        await spoiled.close()
        await good.close()


@pytest.mark.parametrize("claims_before", [0, 1])
async def test_the_answer_of_a_claim_is_lost_the_first_one_too(bench: Bench, claims_before: int) -> None:
    for _ in range(claims_before):
        await bench.shard._claim()
    ids = [await bench.send("test.slow", seconds=60) for _ in range(3)]
    bench.toxic.swallow = True
    claiming = asyncio.ensure_future(bench.shard._claim())
    await bench.toxic.swallowed.wait()
    bench.toxic.swallow = False
    bench.toxic.reset()
    await claiming
    assert [await bench.place(one) for one in ids] == ["leased"] * 3
    assert bench.shard.running == 0
    await bench.shard._claim()
    assert bench.shard.running == 3


async def test_b23_a_lease_that_has_run_out_here_and_not_in_redis_gives_the_mission_back(bench: Bench) -> None:
    one = await bench.send("test.slow", seconds=60)
    bench.shard.lease.good = lambda: False  # type: ignore[method-assign]  # as after an outage longer than a lease
    await bench.shard._claim()
    await eventually(lambda: bench.shard.running == 0)
    assert await bench.place(one) == "lane"


async def test_what_another_owner_s_runner_holds_does_not_hide_what_is_leased_to_this_one(bench: Bench) -> None:
    one = await bench.send("test.slow", seconds=60)
    await bench.shard._claim()
    bench.shard._runs[one][0].drop()
    runner, _ = bench.shard._runs[one]
    await bench.shard._store.release(runner.claimed.owner, [(one, runner.claimed.fence)])
    bench.shard.lease.begin()  # the lease was lost; the old runner has not ended yet
    bench.toxic.swallow = True
    claiming = asyncio.ensure_future(bench.shard._claim())
    await bench.toxic.swallowed.wait()
    bench.toxic.swallow = False
    bench.toxic.reset()
    await claiming
    assert await bench.place(one) == "leased"
    await bench.shard._store.up()
    await bench.shard._reconcile()
    assert await bench.place(one) == "lane"
