"""Five hundred gadgets, services that flap, a worker that is killed: each is flashed once, and each is told of."""

import random
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
import redis

from dualloop.outside.gadgets import BRICKED, OFFLINE
from shared import keys
from tests.gadgets import Gadgets
from tests.processes.commands import Front
from tests.services import OutsideServices
from tests.stories.stack import running
from tests.waiting import eventually

COUNT = 500
NAMES = [f"gadget.{n:04}" for n in range(1, COUNT + 1)]
LOST = (BRICKED | OFFLINE).intersection(NAMES)
FLAPPING = 0.2


@pytest.mark.timeout(600)
async def test_a_rollout_outlives_a_worker_and_flapping_services(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, workers=0) as stack:
        with OutsideServices(tmp_path, stack.url) as outside:
            lease = {"DUALLOOP_LEASE_S": "1.2", "DUALLOOP_OUTSIDE_URL": outside.url}
            await stack.start([stack.worker(**lease) for _ in range(3)])
            outside.faults("gadgets", flapping=FLAPPING)
            front = Front(stack.foregrounds[0])
            field = Gadgets(front, outside, tmp_path)
            where = {"prefix": "gadget.", "count": COUNT}
            root = await field.roll_out("2.0.0", where, at_once=60, budget={"count": len(LOST)}, patience_s=1)
            await eventually(lambda: field.done(root, COUNT // 3), within=300, what="a third is flashed")
            outside.faults("gadgets", flapping=FLAPPING, slow_s=1)
            await eventually(lambda: _all_busy(redis_url, len(stack.workers)), within=60, what="each worker is busy")
            random.choice(stack.workers).kill()
            outside.faults("gadgets", flapping=FLAPPING)
            await eventually(lambda: _ended(field, root), within=300, what="the rollout ends")
            outside.faults("gadgets")
            document = await field.end(root)
            assert document["status"] == "SUCCEEDED", "nobody fails but those that cannot be flashed"
            assert _taken_over(redis_url) > 0, "the kill met somebody"
            assert document["result"]["not_begun"] == 0
            updates = await field.updates(root)
            assert Counter(updates) == {"SUCCEEDED": COUNT - len(LOST), "FAILED": len(LOST)}
            assert Counter(line["said"] for line in field.report(document)) == document["result"]["ended"]
            assert {line["gadget"] for line in document["result"]["failures"]} == LOST
            wanted = {gadget: [] if gadget in LOST else ["flash"] for gadget in NAMES}
            assert {gadget: [one["verb"] for one in field.flashes(gadget)] for gadget in NAMES} == wanted
            assert outside.books()["firmware"] == {"1.0.0": 600 - COUNT + len(LOST), "2.0.0": COUNT - len(LOST)}
            await front.client.aclose()


async def _ended(field: Gadgets, root: str) -> bool:
    return (await field.front.result(root, wait=5))["finished_at"] is not None


def _all_busy(redis_url: str, workers: int) -> bool:
    """Whether each of them holds something."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        owners = cast("list[str]", client.zrange(keys.owners(0), 0, -1))
        return len(owners) == workers and all(client.exists(keys.held(0, owner)) for owner in owners)


def _taken_over(redis_url: str) -> int:
    """How many missions lost their worker."""
    with redis.Redis.from_url(redis_url) as client:
        logs = [cast("list[bytes]", client.lrange(key, 0, -1)) for key in client.scan_iter("dl:*:log:*")]
    return sum(b'"reclaimed"' in line for log in logs for line in log)
