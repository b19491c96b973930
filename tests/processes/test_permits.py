"""Permits among real workers (P12, B12), counted by the outside that they call."""

import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.outside import Outside, outside
from tests.processes.calling import LEASE_S, calling, permits, succeed
from tests.processes.commands import Front, events
from tests.stories.stack import Stack
from tests.waiting import eventually

SLACK_S = 10.0  # what a slow machine adds


@pytest.fixture
async def service() -> AsyncIterator[Outside]:
    async with outside() as service:
        yield service


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path, service: Outside) -> AsyncIterator[Stack]:
    async with calling(redis_url, tmp_path, service, 2) as stack:
        yield stack


async def test_two_workers_never_have_more_under_way_than_the_dependency_bears(
    stack: Stack, front: Front, service: Outside
) -> None:
    service.hold()
    ids = [await front.send("test.bank") for _ in range(24)]
    await eventually(lambda: service.now == 2)
    service.lasts_s = 0.05
    began = time.monotonic()
    service.let_go()
    await succeed(front, ids)

    assert service.most() == 2
    assert len({visit.caller for visit in service.visits}) == 2, "both workers called"
    assert Counter(visit.task for visit in service.visits) == Counter(ids), "once each"
    assert time.monotonic() - began < 60, "a freed permit wakes the next one, nobody waits for a timer"
    assert permits(stack, "dep:bank") == 0


async def test_whoever_waits_for_a_permit_says_so_once_and_uses_no_try(
    stack: Stack, front: Front, service: Outside
) -> None:
    service.hold()
    ids = [await front.send("test.bank") for _ in range(4)]
    await eventually(lambda: service.now == 2)

    async def waiting() -> bool:
        documents = [await front.result(one, wait=0) for one in ids]
        return [document["waiting_for"] for document in documents].count("permit") == 2

    await eventually(waiting)
    service.let_go()
    await succeed(front, ids)
    assert [visit.attempt for visit in service.visits] == [1] * 4
    said = [b"".join(events(stack, one)).count(b'"no_permit"') for one in ids]
    assert sorted(said) == [0, 0, 1, 1]
    assert any(b"no permit of dep:bank is free" in line for one in ids for line in events(stack, one))


async def test_whoever_waits_for_a_permit_takes_no_slot(redis_url: str, tmp_path: Path, service: Outside) -> None:
    async with calling(redis_url, tmp_path, service, 1, DUALLOOP_SLOTS="3", DUALLOOP_URGENT_SLOTS="0") as stack:
        front = Front(stack.foregrounds[0])
        async with front.client:
            service.hold()
            ids = [await front.send("test.bank") for _ in range(6)]
            await eventually(lambda: service.now == 2)
            ids.append(await front.send("test.free"))
            await eventually(lambda: service.now == 3)
            service.let_go()
            await succeed(front, ids)


async def test_b12_kill_9_frees_the_permits_of_a_worker_at_its_takeover(
    redis_url: str, tmp_path: Path, service: Outside
) -> None:
    async with calling(redis_url, tmp_path, service, 2, DUALLOOP_LEASE_S=str(LEASE_S)) as stack:
        front = Front(stack.foregrounds[0])
        async with front.client:
            service.hold()
            ids = [await front.send("test.bank") for _ in range(6)]
            await eventually(lambda: service.now == 2)
            by_pid = {str(worker.running.pid): worker for worker in stack.workers}
            victims = {visit.caller for visit in service.visits}
            for pid in victims:
                by_pid[pid].kill()
            await eventually(lambda: service.now == 0)
            if len(victims) == 2:
                await stack.start([stack.worker()])
            killed_at = time.monotonic()
            await eventually(lambda: service.now == 2)
            assert time.monotonic() - killed_at < 2 * LEASE_S + SLACK_S
            service.let_go()
            await succeed(front, ids)

            assert service.most() == 2
            assert permits(stack, "dep:bank") == 0


@pytest.mark.usefixtures("stack")
async def test_one_of_a_type_at_a_time_and_a_permit_ends_with_every_state(front: Front, service: Outside) -> None:
    service.lasts_s = 0.02
    ids = [await front.send("test.mill") for _ in range(8)]
    await succeed(front, ids)

    assert service.most() == 1
    assert len(service.visits) == 16


async def test_so_many_of_a_tenant_at_a_time(redis_url: str, tmp_path: Path, service: Outside) -> None:
    async with calling(redis_url, tmp_path, service, 2, DUALLOOP_TENANT_CONCURRENCY="3") as stack:
        front = Front(stack.foregrounds[0])
        async with front.client:
            service.hold()
            ids = [await front.send(type_) for type_ in ("test.free", "test.bank", "test.crowd") for _ in range(4)]
            await eventually(lambda: service.now == 3)
            service.lasts_s = 0.05
            service.let_go()
            await succeed(front, ids)

    assert service.most() == 3


@pytest.mark.usefixtures("stack")
async def test_without_a_limit_all_run_at_once(front: Front, service: Outside) -> None:
    service.hold()
    ids = [await front.send("test.free") for _ in range(8)]
    await eventually(lambda: service.now == 8)
    service.let_go()
    await succeed(front, ids)


async def test_a_mission_that_is_cancelled_while_it_waits_leaves_the_turn_to_the_next(
    stack: Stack, front: Front, service: Outside
) -> None:
    service.hold()
    ids = [await front.send("test.bank") for _ in range(4)]
    await eventually(lambda: service.now == 2)
    running_ = {visit.task for visit in service.visits}
    first, second = [one for one in ids if one not in running_]

    async def waits(one: str) -> bool:
        return bool((await front.result(one, wait=0))["waiting_for"] == "permit")

    for one in (first, second):
        await eventually(lambda one=one: waits(one))  # type: ignore[misc]  # bound in the loop
    await front.cancel(first)
    assert (await front.end(first))["status"] == "CANCELLED"
    service.let_go()
    await succeed(front, [*running_, second])
    assert permits(stack, "dep:bank") == 0
