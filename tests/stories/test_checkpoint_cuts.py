"""What cuts a handler in the midst of a checkpoint: the commit is on its way, and what became of it is heard."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.stories.midway import Bench, Held, Tools, benched
from tests.waiting import eventually


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with benched(redis_url) as bench:
        yield bench


async def revs(bench: Bench) -> int:
    return int((await bench.record())["rev"])


async def test_a_time_out_waits_for_one_that_waits_for_redis(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    store = bench.store()

    async def play(tools: Tools) -> None:
        tools.context.items.append(1)
        await tools.checkpoint()

    await bench.take(play)
    held = Held(store, monkeypatch)
    runner = await bench.claim(store)
    handling = runner._handling
    task = asyncio.create_task(runner.run())
    await held.asked.wait()
    stands = handling._limit is not None and handling._limit.cancelled()
    held.let.set()
    await task
    assert stands
    assert (await bench.result())["status"] == "SUCCEEDED"


async def test_what_cuts_a_handler_in_the_midst_of_one_reacts_to_what_became_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler is gone by then; the write is not, and no second one is made of the same rev."""
    undone: list[list[int]] = []
    ended = asyncio.Event()

    async def play(tools: Tools) -> None:
        tools.context.items.append(1)
        try:
            await tools.checkpoint()
        finally:
            ended.set()

    async def back(tools: Tools) -> None:
        undone.append(list(tools.context.items))

    store = bench.store()
    await bench.take(play, back)
    held = Held(store, monkeypatch)
    runner = await bench.claim(store)
    task = asyncio.create_task(runner.run())
    await held.asked.wait()
    await bench.cancel()
    runner._handling.interrupt()
    await ended.wait()
    assert not task.done()
    held.let.set()
    await task
    assert undone == [[1]]
    assert (await revs(bench), await bench.log()) == (2, ["WORKING", "working", "CANCELLED"])


async def test_a_worker_that_ends_in_the_midst_of_one_leaves_nothing_under_way(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is cut, whatever it waits for: Redis may be away for good."""

    async def play(tools: Tools) -> None:
        tools.context.items.append(1)
        await tools.checkpoint()

    store = bench.store()
    await bench.take(play)
    held = Held(store, monkeypatch)
    runner = await bench.claim(store)
    task = asyncio.create_task(runner.run())
    await held.asked.wait()
    runner.drop()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not [one for one in asyncio.all_tasks() if "Midway" in repr(one)])


async def test_who_loses_the_mission_in_the_midst_of_one_makes_nothing_of_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the shard's loop does it: what is committing is left alone until it is answered."""
    passed: list[int] = []

    async def play(tools: Tools) -> None:
        tools.context.items.append(1)
        await tools.checkpoint()
        passed.append(1)

    store = bench.store()
    await bench.take(play)
    held = Held(store, monkeypatch)
    runner = await bench.claim(store)
    task = asyncio.create_task(runner.run())
    await held.asked.wait()
    runner.drop()
    assert runner.committing
    held.let.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (passed, await revs(bench)) == ([], 1)
