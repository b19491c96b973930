"""kill -9 at every commit boundary of the shop's missions, one by one: all end, and the services' books balance."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest
import redis

from shared import keys
from tests.processes import fatal
from tests.processes.commands import Front
from tests.processes.orders import KINDS, Kind, check_books, check_order
from tests.services import OutsideServices
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

WORKERS = 4


@contextlib.asynccontextmanager
async def revived(parts: list[Part]) -> AsyncIterator[None]:
    """Whoever dies is started again at once."""

    async def watch(part: Part) -> None:
        while True:
            await asyncio.to_thread(part.running.wait)
            part.spawn()

    watching = [asyncio.create_task(watch(part)) for part in parts]
    try:
        yield
    finally:
        for task in watching:
            task.cancel()


async def one_dies(workers: list[Part], deaths: Path, task_id: str, point: str) -> None:
    """Those that are dead are started, and whoever runs this mission dies there."""
    fatal.plan(deaths, task_id, point)
    for worker in workers:
        if worker.running.poll() is not None:
            worker.spawn()
    await eventually(lambda: fatal.died(deaths, task_id), 60, f"a worker has died {point}")
    (deaths / f"{task_id}.died").unlink()


@contextlib.asynccontextmanager
async def client_of(stack: Stack) -> AsyncIterator[Front]:
    front = Front(stack.foregrounds[0])
    try:
        yield front
    finally:
        await front.client.aclose()


async def submit(front: Front, kind: Kind, order: str) -> str:
    return await front.send(kind.type, **kind.command(order))


def commits(stack: Stack, task_id: str) -> int:
    """How many a mission has had in all."""
    with redis.Redis.from_url(stack.redis_url) as client:
        return int(cast("bytes", client.hget(keys.mission(0, task_id), "rev")))


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if one in {1, 2} else pytest.mark.long) for one, kind in enumerate(KINDS)],
    ids=lambda kind: f"{kind.type}-{kind.ends.lower()}",
)
async def test_b02_a_kill_at_every_commit_boundary_leaves_books_that_balance(
    redis_url: str, tmp_path: Path, kind: Kind
) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    async with running(redis_url, tmp_path, workers=0) as stack, client_of(stack) as front:
        with OutsideServices(tmp_path, stack.url) as outside:
            workers = await mortal(stack, outside, deaths)
            whole = await submit(front, kind, "undisturbed")
            assert (await front.end(whole))["status"] == kind.ends
            boundaries = [f"{when} {n + 1}" for n in range(commits(stack, whole)) for when in ("before", "after")]
            for worker in workers:
                worker.kill()  # so that nobody begins before its death is planned
            orders = {point: await submit(front, kind, point.replace(" ", "-")) for point in boundaries}
            for point, one in orders.items():
                fatal.plan(deaths, one, point)
            for worker in workers:
                worker.spawn()
            async with revived(workers):
                for point, one in orders.items():
                    document = await front.end(one)
                    assert document["status"] == kind.ends, (point, document)
                    # the bank's word may come before it is waited for: then there is one commit less
                    fewer = int(point.split()[1]) > commits(stack, one)
                    assert fatal.died(deaths, one) or fewer, f"nobody died {point}"
                    check_order(outside, point.replace(" ", "-"), document)
            check_books(outside)


async def mortal(stack: Stack, outside: OutsideServices, deaths: Path, lease_s: float = 1.2) -> list[Part]:
    """Workers with one slot each: a death takes one mission along, the one that it was meant for."""
    slots = {"DUALLOOP_SLOTS": "1", "DUALLOOP_URGENT_SLOTS": "0", "DUALLOOP_LEASE_S": str(lease_s)}
    own = {"DUALLOOP_OUTSIDE_URL": outside.url, fatal.VARIABLE: str(deaths)}
    workers = [stack.worker(**slots, **own) for _ in range(WORKERS)]
    for worker in workers:
        worker.module = "tests.processes.fatal"
    await stack.start(workers)
    return workers
