"""P8, B49: who kills its worker is run alone, and buried if it kills again; neighbours and healthy ones are not."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis

from shared import keys
from tests.processes.commands import Front, tally
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LEASE_S = 1.5


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_MISSIONS="tests.missions.plain,tests.missions.heavy",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_DRAIN_S="3",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


def record(stack: Stack, task_id: str) -> dict[str, str]:
    with redis.Redis.from_url(stack.redis_url) as client:
        fields: Any = client.hgetall(keys.mission(0, task_id))
    return {name.decode(): value.decode() for name, value in fields.items()}


async def begun_in(stack: Stack, task_id: str, times: int) -> list[int]:
    """The processes in which its handler has begun, once these are so many."""

    def pids() -> list[int]:
        lines = [line for line in tally(stack) if line[0].startswith("begin-") and line[1] == task_id]
        found = [int(line[0].partition("-")[2]) for line in lines]
        return found if len(found) >= times else []

    return await eventually(pids, within=30, what=f"{task_id} has begun {times} times")


async def survive(stack: Stack) -> None:
    """Start the worker again whenever it has died."""
    worker = stack.workers[0]
    await eventually(lambda: worker.running.poll() is not None, within=30, what="the worker dies")
    await worker.start()


@pytest.mark.parametrize("how", ["kill", "segfault", "exit", "memory"])
async def test_b49_who_kills_three_processes_is_buried_and_its_neighbour_lives(
    stack: Stack, front: Front, how: str
) -> None:
    healthy = await front.send("test.slow", payload={"seconds": 1.0})
    poison = await front.send("test.poison", payload={"how": how})
    await survive(stack)
    await survive(stack)
    document = await front.result(poison)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "worker_lost")
    assert document["error"]["state"] == "WORKING"
    assert ("exited with 9" if how == "exit" else "was ended by SIG") in document["error"]["message"]
    assert (await front.result(healthy))["status"] == "SUCCEEDED"
    pids = await begun_in(stack, poison, 3)
    assert len(set(pids)) == 3
    assert pids[2] != stack.workers[0].running.pid  # it died alone
    assert stack.workers[0].running.poll() is None
    assert "quarantined" in stack.workers[0].tail(10**6)
    with redis.Redis.from_url(stack.redis_url) as client:
        assert client.zscore(keys.prefix(0) + "dead_letters", poison) is not None
        assert record(stack, poison)["failed_in"] == "WORKING"
        await eventually(lambda: client.zcard(keys.owners(0)) == 1)  # the solo owner has resigned
