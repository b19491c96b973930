"""What a careless handler, a late worker or a refusing Redis can do, and what it may cost: itself, and a moment."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes.commands import Front, tally
from tests.processes.restartable import Restartable
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LEASE_S = 1.5


@pytest.fixture
async def stack(server: Restartable, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        server.url,
        tmp_path,
        DUALLOOP_MISSIONS="tests.missions.plain,tests.missions.hostile",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_REDIS_TIMEOUT_S="0.5",
        DUALLOOP_DRAIN_S="2",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


async def test_p14_what_is_past_its_deadline_is_never_run(stack: Stack, front: Front) -> None:
    await stack.workers[0].stop()
    ids = [await front.send("test.noop", deadline_s=0.2) for _ in range(100)]
    ids.append(await front.send("test.noop", deadline_s=1e-9))
    fresh = await front.send("test.noop", deadline_s=600)
    past = time.monotonic() + 0.2
    await eventually(lambda: time.monotonic() > past, what="the deadline of all others has passed")
    await stack.workers[0].start()
    for one in ids:
        document = await front.result(one)
        assert (document["status"], document["reason"]) == ("CANCELLED", "expired")
    assert (await front.result(fresh))["status"] == "SUCCEEDED"
    assert [line[1] for line in tally(stack)] == [fresh]


@pytest.mark.usefixtures("stack")
async def test_b50_a_validator_may_raise_anything(front: Front) -> None:
    document = await front.result(await front.send("test.puzzled", payload={"letter": "z"}))
    assert (document["status"], document["error"]["code"]) == ("FAILED", "undecodable")
    assert "KeyError" in document["error"]["message"]


async def test_b27_who_swallows_a_cancel_is_cut_again(stack: Stack, front: Front) -> None:
    document = await front.result(await front.send("test.stubborn", payload={"swallows": 2}))
    assert (document["status"], document["error"]["code"]) == ("FAILED", "timeout")
    stays = await front.send("test.stays", payload={"swallows": 1})
    await eventually(lambda: ["run", stays] in [line[:2] for line in tally(stack)])
    await front.cancel(stays)
    assert (await front.result(stays))["status"] == "CANCELLED"


async def test_b49_no_exit_or_panic_of_a_handler_ends_the_worker_or_costs_its_neighbours(
    stack: Stack, front: Front
) -> None:
    gate = stack.folder / "gate"
    neighbour = await front.send("test.slow", payload={"gate": str(gate)})
    for how, code in (("exit", "retries_exhausted"), ("base", "retries_exhausted"), ("cancel", "retries_exhausted")):
        one = await front.send("test.exits", payload={"how": how})
        document = await front.result(one)
        assert (how, document["status"], document["error"]["code"]) == (how, "FAILED", code)
        assert [line[3] for line in tally(stack) if line[1] == one] == ["1", "2"]
    event = await front.result(await front.send("test.exits", payload={"how": "event"}))
    assert (event["status"], event["error"]["code"]) == ("FAILED", "permanent")
    gate.touch()
    assert (await front.result(neighbour))["status"] == "SUCCEEDED"
    assert [line[0] for line in tally(stack) if line[1] == neighbour] == ["begin", "end", "run"]


@pytest.mark.usefixtures("stack")
async def test_b53_a_result_beyond_the_limit_is_a_permanent_error(front: Front) -> None:
    document = await front.result(await front.send("test.exits", payload={"how": "much"}))
    assert (document["status"], document["error"]["code"]) == ("FAILED", "too_large")


async def test_taken_over_means_lost_in_this_state_and_in_no_other(stack: Stack, front: Front) -> None:
    one = await front.send("test.lost")
    await eventually(lambda: len(tally(stack)) == 1)
    stack.workers[0].kill()
    await stack.workers[0].start()
    document = await front.result(one)
    assert document["result"] == {"told": ["ONE True", "ONE True", "TWO False", "THREE False"]}


async def test_b28_a_stop_does_not_wait_for_a_redis_that_is_away(
    server: Restartable, stack: Stack, front: Front
) -> None:
    one = await front.send("test.slow", payload={"seconds": 600})
    await eventually(lambda: ["begin", one] in [line[:2] for line in tally(stack)])
    server.kill()
    worker = stack.workers[0]
    assert await worker.stop() == 0
    late = stack.worker()  # one that has never seen Redis
    late.spawn()
    await eventually(lambda: "redis away" in late.tail())
    assert await late.stop() == 0
    server.start()
    await worker.start()
    await eventually(lambda: [line[:2] for line in tally(stack)].count(["begin", one]) == 2)


async def test_b28_a_handler_that_cannot_be_cut_costs_no_neighbour_its_release(stack: Stack, front: Front) -> None:
    stubborn = await front.send("test.stays", payload={"swallows": 1000})
    others = [await front.send("test.slow", payload={"seconds": 600}) for _ in range(3)]
    await eventually(lambda: len(tally(stack)) == 4)
    assert await stack.workers[0].stop() == 0
    for one in (*others, stubborn):
        assert (await front.state(one))[0] == "PENDING"


async def test_a_redis_that_refused_for_long_is_used_again_at_once(server: Restartable, front: Front) -> None:
    with server.client() as client:
        client.config_set("min-replicas-to-write", 1)
        # so often that pauses without a bound would be longer by now than the deadline of what comes then
        await eventually(lambda: _refusals(client.info("errorstats")) > 40, within=60)
        client.config_set("min-replicas-to-write", 0)
    one = await front.send("test.noop", priority="urgent", deadline_s=10)
    assert (await front.end(one))["status"] == "SUCCEEDED"


def _refusals(stats: Any) -> int:
    return int(stats.get("errorstat_NOREPLICAS", {}).get("count", 0))
