"""More work than can be done at once: a worker takes what it can run, by priority, and starves nobody."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from shared import keys
from tests.processes.commands import Front, tally
from tests.stories.stack import Stack, running
from tests.waiting import eventually

SLOTS: Final = 4


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_SLOTS=str(SLOTS),
        DUALLOOP_URGENT_SLOTS="1",
        DUALLOOP_DEADLINE_S="600",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


def order(stack: Stack) -> list[str]:
    """Missions in the order in which their handlers ran."""
    return [line[1] for line in tally(stack) if line[0] in {"run", "begin"}]


async def test_b43_priorities_are_checked_and_named_in_the_refusal(front: Front) -> None:
    for wrong in ("high", "URGENT", "", 1, -1, 10**9, True, ["urgent"]):
        answer = await front.client.post("/v1/commands", json={"type": "test.noop", "priority": wrong})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), wrong
        assert answer.json()["errors"][0]["pointer"] == "/priority"
        assert "'urgent', 'normal' or 'bulk'" in answer.json()["detail"]


async def test_b43_urgent_before_normal_before_bulk_and_every_lane_has_its_share(stack: Stack, front: Front) -> None:
    """All lanes are full when the worker comes: it goes by priority, and serves each one before another is empty."""
    await stack.workers[0].stop()
    many = {
        priority: await front.send_many(80, "test.noop", priority=priority) for priority in ("bulk", "normal", "urgent")
    }
    await stack.workers[0].start()
    for ids in many.values():
        for one in ids:
            assert (await front.result(one))["status"] == "SUCCEEDED"
    ran = order(stack)
    mean = {priority: sum(map(ran.index, ids)) / len(ids) for priority, ids in many.items()}
    assert mean["urgent"] < mean["normal"] < mean["bulk"]
    first = {priority: min(map(ran.index, ids)) for priority, ids in many.items()}
    # an eighth is kept from urgent, and a quarter of that for bulk: one of 32 where slots come free one by one
    assert first["normal"] < 2 * 8 + SLOTS
    assert first["bulk"] < 2 * 32 + SLOTS
    assert ran[0] in many["urgent"]
    assert Counter(ran) == dict.fromkeys((one for ids in many.values() for one in ids), 1)


async def test_b43_bulk_is_done_under_an_unending_stream_of_urgent_work(stack: Stack, front: Front) -> None:
    bulk = [await front.send("test.bulk") for _ in range(5)]
    left, sent = set(bulk), 0

    async def stream() -> bool:
        nonlocal sent
        for _ in range(3 * SLOTS):
            await front.send("test.slow", payload={"seconds": 0.02}, priority="urgent")
            sent += 1
        done = {one for one in left if (await front.state(one))[0] == "SUCCEEDED"}
        left.difference_update(done)
        return not left

    await eventually(stream, within=100)
    with redis.Redis.from_url(stack.redis_url) as client:
        assert client.exists(keys.lane(0, "urgent:default:default")) or sent > len(bulk), "there was always more"


async def test_b45_a_worker_holds_no_more_than_it_can_run_however_much_there_is(stack: Stack, front: Front) -> None:
    await stack.workers[0].stop()
    ids = await front.send_many(40, "test.slow", payload={"seconds": 0.1})
    sleepers = await front.send_many(40, "test.patient", payload={"sleep_s": 0.01, "wait_s": 0.01})
    await stack.workers[0].start()
    most = 0
    with redis.Redis.from_url(stack.redis_url) as client:

        def over() -> bool:
            nonlocal most
            held: Any = [client.scard(name) for name in client.scan_iter(keys.held(0, "*"))]
            most = max(most, *held, 0)
            return bool(client.zcard(keys.prefix(0) + "retire") == len(ids) + len(sleepers))

        await eventually(over, within=100)
    assert most == SLOTS, "those kept for urgent ones stay free"
    ended = Counter([(await front.result(one))["status"] for one in ids])
    assert ended == {"SUCCEEDED": len(ids)}


async def test_b44_many_timers_that_are_due_together_move_at_once_and_delay_nobody(stack: Stack, front: Front) -> None:
    """600 sleepers wake in the same instant; an urgent command sent then is done as if they slept on."""
    ids = await front.send_many(600, "test.patient", payload={"sleep_s": 3600, "wait_s": 0.01}, deadline_s=7200)
    prefix = keys.prefix(0)
    with redis.Redis.from_url(stack.redis_url) as client:
        await eventually(lambda: client.zcard(prefix + "timers") == len(ids), within=60)
        records: Any = [client.hget(keys.mission(0, one), "document") for one in ids]
        seconds: Any = client.time()
        due = seconds[0] * 1000
        with client.pipeline(transaction=True) as pipe:
            for one, document in zip(ids, records, strict=True):
                pipe.hset(keys.mission(0, one), "document", json.dumps(json.loads(document) | {"wake_at": due}))
            pipe.zadd(prefix + "timers", dict.fromkeys(ids, due))
            pipe.execute()

        def overdue() -> int:
            now: Any = client.time()
            return int(str(client.zcount(prefix + "timers", "-inf", now[0] * 1000 - 500)))

        urgent = dict[str, int]()
        for _ in range(20):
            one = await front.send("test.noop", priority="urgent")
            urgent[one] = len(order(stack))
        for one in urgent:
            assert (await front.result(one))["status"] == "SUCCEEDED"
        ran = order(stack)
        before = max(ran.index(one) - sent for one, sent in urgent.items())
        assert before < len(ids) / 2, "they do not wait for all who woke before them"
        # 50 a claim, claims follow each other while there are more: all are ready long before all are done
        await eventually(lambda: not overdue())
        for one in ids[:: len(ids) // 20]:
            assert (await front.end(one))["status"] == "FAILED"  # nobody knocked
