"""Bulk missions step aside, before each step, while an urgent one runs in their process."""

from collections.abc import AsyncIterator

import pytest

from backend_loop import way
from backend_loop.runner import Runner
from shared import keys
from tests.shard import Bench, benched
from tests.waiting import eventually


@pytest.fixture
async def bench(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    monkeypatch.setattr(way, "ASIDE_S", 60.0)
    async with benched(redis_url) as bench:
        yield bench


async def events(bench: Bench, task_id: str) -> int:
    return int(await bench.good.call("LLEN", keys.log(0, task_id)))


@pytest.mark.parametrize(("priority", "aside"), [("bulk", True), ("normal", False)])
async def test_bulk_waits_for_who_is_urgent_and_for_nobody_else(bench: Bench, priority: str, aside: bool) -> None:
    urgent = await bench.send("test.slow", priority="urgent", seconds=60)
    await bench.shard._claim()
    other = await bench.send("test.five", priority=priority)
    await bench.shard._claim()
    if aside:
        await eventually(lambda: bench.slots.way.aside == 1, what="it steps aside")
        assert (await bench.place(other), await events(bench, other)) == ("leased", 1)
        runner, task = bench.shard._runs[urgent]
        runner.drop()
        task.cancel()
    await _ends(bench, other)


async def test_a_step_between_two_waits_too_and_a_cancel_reaches_who_waits(bench: Bench) -> None:
    bulk = await bench.send("test.slow", priority="bulk", seconds=0.5)
    hurry = bench.slots.way
    await bench.shard._claim()
    runner, _ = bench.shard._runs[bulk]
    assert isinstance(runner, Runner)
    handling = runner._handling
    await eventually(lambda: handling.running, what="it acts")
    hurry.begins()
    await eventually(lambda: hurry.aside == 1, what="its second state waits")
    assert await bench.place(bulk) == "leased"
    runner, _ = bench.shard._runs[bulk]
    await bench.good.run(
        "control", keys.prefix(0), bulk, "cancel", "c", b'{"entry":"cancel"}', "requested", 60_000, "null"
    )
    await runner.signal()
    hurry.ended()
    await _ends(bench, bulk)
    assert (await bench.good.call("HGET", keys.mission(0, bulk), "status")).decode() == "CANCELLED"


async def _ends(bench: Bench, task_id: str) -> None:
    async def ended() -> bool:
        return await bench.place(task_id) == "ended"

    await eventually(ended, what="it ends")
