"""A worker is lost in the middle of a state: another one goes on within two leases, and it is recorded once."""

import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import cast

import pytest
import redis

from shared import keys
from tests.processes.commands import Front, acting, events, tally
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LEASE_S = 1.5


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        workers=2,
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_SLOTS="20",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


async def test_b01_b02_kill_9_in_a_state_is_taken_over_within_two_leases_and_ends_once(
    stack: Stack, front: Front
) -> None:
    ids = [await front.send("test.slow", payload={"seconds": 0.8}) for _ in range(10)]
    for one in ids:
        await eventually(partial(acting, front, one))
    stack.workers[0].kill()
    began = time.monotonic()
    with redis.Redis.from_url(stack.redis_url) as client:
        await eventually(
            lambda: not any(client.hget(keys.mission(0, one), "place") == b"leased" and _lapsed(client) for one in ids),
            within=4 * LEASE_S,
        )
    for one in ids:
        document = await front.result(one)
        assert (document["status"], document["run"]) == ("SUCCEEDED", 1)
    assert time.monotonic() - began < 2 * LEASE_S + 2 * 0.8 + 1.5  # two leases, then the state runs again
    ends = [line[1] for line in tally(stack) if line[0] == "run"]
    assert sorted(ends) == sorted(ids)  # the state behind the lost one ran once each
    for one in ids:
        log = events(stack, one)
        assert [f'"seq":{n},'.encode() in line for n, line in enumerate(log, 1)] == [True] * len(log)


def _lapsed(client: "redis.Redis") -> bool:
    seconds, micros = cast("tuple[int, int]", client.time())
    return bool(client.zcount(keys.prefix(0) + "owners", "-inf", seconds * 1000 + micros // 1000))


async def test_b16_b20_a_long_handler_of_a_living_worker_is_never_taken_over(stack: Stack, front: Front) -> None:
    one = await front.send("test.slow", payload={"seconds": 3 * LEASE_S})
    assert (await front.result(one))["status"] == "SUCCEEDED"
    assert [line[0] for line in tally(stack) if line[1] == one] == ["begin", "end", "run"]


async def test_b17_a_worker_that_thaws_after_its_takeover_records_nothing(stack: Stack, front: Front) -> None:
    ids = [await front.send("test.slow", payload={"seconds": 0.5}) for _ in range(6)]
    for one in ids:
        await eventually(partial(acting, front, one))
    for worker in stack.workers:
        worker.freeze()
    spare = stack.worker()
    await stack.start([spare])
    for one in ids:
        assert (await front.result(one))["status"] == "SUCCEEDED"
    for worker in stack.workers[:2]:
        worker.thaw()
    await eventually(lambda: all("lease lost" in part.tail(10**6) for part in stack.workers[:2]))
    for one in ids:
        document = await front.result(one)
        assert (document["status"], document["seq"]) == ("SUCCEEDED", 4)  # started, reclaimed, CHECKING, the end
    again = await front.send("test.noop")  # and they work on, under new leases
    assert (await front.result(again))["status"] == "SUCCEEDED"


async def test_b01_p8_a_takeover_counts_a_death_and_no_attempt(stack: Stack, front: Front) -> None:
    one = await front.send("test.slow", payload={"seconds": 1.0})
    await eventually(partial(acting, front, one))
    for worker in stack.workers:
        worker.kill()
    await stack.workers[0].restart()
    assert (await front.result(one))["status"] == "SUCCEEDED"
    begun = [line for line in tally(stack) if line[0] == "begin" and line[1] == one]
    assert [line[3] for line in begun] == ["1", "1"]
    assert int(begun[0][4]) < int(begun[1][4])  # the fence rose
    assert b'"event":"reclaimed","deaths":1' in b"\n".join(events(stack, one))
