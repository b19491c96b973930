"""P6: a mission leased to a process that does not run it goes back at once, or its renewals would keep it for ever."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.shard import Bench, benched
from tests.waiting import eventually


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with benched(redis_url) as bench:
        yield bench


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
