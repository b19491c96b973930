"""Breakers and budgets of retries among real workers (B46, B48), counted by the outside that they call."""

import math
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.missions.outside import FRAGILE
from tests.outside import Outside, Visit, outside
from tests.processes.calling import LEASE_S, breaker, calling, succeed, under_way
from tests.processes.commands import Front
from tests.stories.stack import Stack
from tests.waiting import eventually

SLACK_S = 0.05  # two clocks


@pytest.fixture
async def service() -> AsyncIterator[Outside]:
    async with outside() as service:
        yield service


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path, service: Outside) -> AsyncIterator[Stack]:
    async with calling(redis_url, tmp_path, service, 3) as stack:
        yield stack


def refuse(_visit: Visit) -> tuple[int, dict[str, str]]:
    return 503, {}


def accept(_visit: Visit) -> tuple[int, dict[str, str]]:
    return 200, {}


def on_the_ramp(elapsed_s: float) -> int:
    """How many calls may be under way so long after the probes succeeded."""
    rule = FRAGILE.breaker
    assert rule is not None
    done = (elapsed_s + SLACK_S) / rule.ramp_s
    return math.floor(rule.probes * 64**done) if done < 1 else 10**9


async def test_b48_left_alone_then_probed_by_so_many_over_all_workers_then_ramped_up(
    stack: Stack, front: Front, service: Outside
) -> None:
    rule = FRAGILE.breaker
    assert rule is not None
    service.reply = refuse
    ids = [await front.send("test.fragile") for _ in range(12)]
    await eventually(lambda: breaker(stack, "fragile").get("phase") == "open")
    await eventually(lambda: under_way(stack, "fragile") == 0)
    service.hold()
    service.reply = accept
    before = len(service.visits)
    opened_at = sorted(visit.ended or 0.0 for visit in service.visits)[rule.failures - 1]

    # probes: so many and no more, though all workers ask for more
    await eventually(lambda: service.now == rule.probes)
    assert service.visits[before].began - opened_at >= rule.open_s - SLACK_S, "nobody called meanwhile"
    ids += [await front.send("test.fragile") for _ in range(60)]
    await eventually(lambda: int(breaker(stack, "fragile").get("turned", 0)) > 20, what="many were turned away")
    assert service.now == rule.probes

    # the ramp
    service.lasts_s = 0.25
    service.let_go()
    await succeed(front, ids)
    probed_at = max(visit.ended or 0.0 for visit in service.visits[before : before + rule.probes])
    after = service.visits[before + rule.probes :]
    assert [visit for visit in after if visit.beside > on_the_ramp(visit.began - probed_at)] == []
    early = [visit for visit in after if visit.began - probed_at < rule.ramp_s / 4]
    late = [visit for visit in after if visit.began - probed_at > rule.ramp_s / 2]
    # a slow machine may be late for the first ones
    assert max(visit.beside for visit in late) > max((visit.beside for visit in early), default=0), "more and more"
    assert {visit.caller for visit in service.visits} == {str(one.running.pid) for one in stack.workers}
    assert max(visit.attempt for visit in service.visits) <= 3, "waiting used up no try"


async def test_the_probe_of_a_worker_that_was_killed_comes_back_by_time(
    redis_url: str, tmp_path: Path, service: Outside
) -> None:
    async with calling(
        redis_url, tmp_path, service, 2, DUALLOOP_CUT_GRACE_S="0.1", DUALLOOP_LEASE_S=str(LEASE_S)
    ) as stack:
        front = Front(stack.foregrounds[0])
        async with front.client:
            service.reply = lambda visit: refuse(visit) if visit is service.visits[0] else accept(visit)
            ids = [await front.send("test.frail")]
            await eventually(lambda: breaker(stack, "frail").get("phase") == "open")
            service.hold()
            ids += [await front.send("test.frail") for _ in range(8)]
            await eventually(lambda: len(service.visits) == 2, what="one probe is under way")
            probe = service.visits[1]
            by_pid = {str(worker.running.pid): worker for worker in stack.workers}
            by_pid[probe.caller].kill()
            service.let_go()
            await succeed(front, ids)
    lasts_s = 2 + LEASE_S
    after = service.visits[2]
    assert after.began - probe.began >= lasts_s - 0.5, "nobody knows how the first one went, until its time is over"
    assert after.caller != probe.caller


async def test_a_retry_after_closes_the_dependency_for_all_workers_until_then(
    stack: Stack, front: Front, service: Outside
) -> None:
    service.reply = lambda visit: (429, {"retry-after": "4"}) if len(service.visits) == 1 else accept(visit)
    ids = [await front.send("test.fragile")]
    await eventually(lambda: breaker(stack, "fragile").get("why") == "retry_after")
    told_at = service.visits[0].ended
    assert told_at is not None
    ids += [await front.send("test.fragile") for _ in range(20)]
    await succeed(front, ids)

    assert min(visit.began for visit in service.visits[1:]) - told_at >= 4 - SLACK_S
    assert Counter(visit.task for visit in service.visits[1:]) == Counter(ids), "once each, by any worker"


@pytest.mark.usefixtures("stack")
async def test_b46_many_that_fail_together_return_one_after_the_other(front: Front, service: Outside) -> None:
    service.hold()
    service.reply = lambda visit: refuse(visit) if visit.attempt == 1 else accept(visit)
    ids = [await front.send("test.crowd") for _ in range(50)]
    await eventually(lambda: service.now == 50)
    service.let_go()
    await succeed(front, ids)

    assert Counter(visit.attempt for visit in service.visits) == {1: 50, 2: 50}, "waiting used up no try"
    again = sorted(visit.began for visit in service.visits if visit.attempt == 2)
    first_at = min(visit.ended or math.inf for visit in service.visits)
    budget = 10 + 0.2 * 50  # a burst, one in five of the first tries; and ten a second
    early = [n for n, at in enumerate(again) if n + 1 > budget + 10 * (at - first_at + SLACK_S)]
    assert not early, "whatever holds a call up makes it later"
