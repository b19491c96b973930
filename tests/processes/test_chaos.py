"""Everything is killed at random while commands run: none is lost, none is recorded twice.

`make test` runs a sample, `make chaos` the full length. The seed is printed; set DUALLOOP_TEST_SEED to run it again.
"""

import asyncio
import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import redis

from shared import keys
from tests.conftest import StartRedis
from tests.processes.commands import Front
from tests.processes.restartable import Restartable
from tests.stories.stack import Stack, running

LEASE_S = "1.2"
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("test.noop", {}),
    ("test.five", {}),
    ("test.slow", {"seconds": 0.15}),
    ("test.slow", {"seconds": 0.1, "entity": "lamp.one"}),
    ("test.slow", {"seconds": 0.1, "entity": "lamp.two"}),
    ("test.flaky", {"failures": 2}),
    ("test.patient", {"sleep_s": 0.3, "wait_s": 0.3}),
]


class Killer:
    """Kills one part after another, and starts it again, until told to stop."""

    def __init__(self, stack: Stack, server: Restartable, dice: random.Random) -> None:
        self.stack, self.server, self.dice = stack, server, dice
        self.kills: Counter[str] = Counter()
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        while not self.stopping.is_set():
            try:
                async with asyncio.timeout(self.dice.uniform(0.2, 1.0)):
                    await self.stopping.wait()
            except TimeoutError:
                await self.strike()

    async def strike(self) -> None:
        match self.dice.choice(["worker", "worker", "freeze", "redis", "redis-freeze"]):
            case "worker":
                part = self.dice.choice(self.stack.workers)
                part.kill()
                part.spawn()
                self.kills["worker"] += 1
            case "freeze":
                part = self.dice.choice(self.stack.workers)
                part.freeze()
                await _pass(2 * float(LEASE_S))
                part.thaw()
                self.kills["worker frozen"] += 1
            case "redis":
                self.server.kill()
                self.server.start()
                self.kills["redis"] += 1
            case "redis-freeze":
                self.server.freeze()
                await _pass(self.dice.uniform(0.2, 2.5))
                self.server.thaw()
                self.kills["redis frozen"] += 1


async def _pass(seconds: float) -> None:
    """Faults have a length; nothing is waited *for* here."""
    try:
        async with asyncio.timeout(seconds):
            await asyncio.Event().wait()
    except TimeoutError:
        pass


async def _submit(front: Front, dice: random.Random, count: int) -> tuple[list[str], int]:
    """So many acks; how many tries were refused meanwhile. A try whose answer is doubtful counts as refused."""
    ids: list[str] = []
    refused = 0
    while len(ids) < count:
        type_, payload = dice.choice(KINDS)
        priority = dice.choice(["urgent", "normal", "bulk"])
        command = {"type": type_, "payload": payload, "priority": priority}
        try:
            answer = await front.client.post("/v1/commands", json=command)
        except httpx.HTTPError:
            refused += 1
            continue
        if answer.status_code == 202:
            ids.append(answer.json()["correlation_id"])
        else:
            assert answer.status_code == 503, answer.text
            assert answer.headers["retry-after"]
            refused += 1
            await _pass(0.05)
        await _pass(dice.uniform(0, 0.08))
    return ids, refused


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.timeout(400)
async def test_b02_promise_1_nothing_accepted_is_lost_and_nothing_is_recorded_twice(
    start_redis: StartRedis, tmp_path: Path, count: int
) -> None:
    seed = int(os.environ.get("DUALLOOP_TEST_SEED", "0")) or random.randrange(10**6)
    print(f"DUALLOOP_TEST_SEED={seed}")  # noqa: T201  to run it again
    dice = random.Random(seed)
    server = Restartable(start_redis("--appendonly", "yes", "--appendfsync", "everysec"))
    async with running(
        server.url,
        tmp_path,
        workers=3,
        DUALLOOP_LEASE_S=LEASE_S,
        DUALLOOP_SLOTS="10",
        DUALLOOP_DEADLINE_S="600",
        DUALLOOP_REDIS_TIMEOUT_S="0.5",
    ) as stack:
        front, killer = Front(stack.foregrounds[0]), Killer(stack, server, dice)
        try:
            async with asyncio.TaskGroup() as group:
                killing = group.create_task(killer.run())
                ids, refused = await _submit(front, dice, count)
                killer.stopping.set()
                await killing
            ends = Counter[str]()
            for one in ids:
                document = await front.end(one)
                assert document["status"] in {"SUCCEEDED", "FAILED", "CANCELLED"}, document
                ends[f"{document['type']} {document['status']}"] += 1
                _check_log(server.url, one, document)
            print(dict(killer.kills), "refused", refused, dict(ends))  # noqa: T201  the run's tale, shown by -s
            assert sum(killer.kills.values()) > 0
            _nothing_left(server.url)
        finally:
            await front.client.aclose()
            server.kill()


def _check_log(url: str, task_id: str, document: dict[str, Any]) -> None:
    """The log has every seq once, in order, and ends as the result does."""
    with redis.Redis.from_url(url) as client:
        log = [json.loads(line) for line in cast("list[bytes]", client.lrange(keys.log(0, task_id), 0, -1))]
    assert [event["seq"] for event in log] == list(range(1, document["seq"] + 1))
    assert [event["status"] for event in log if event["status"] in {"SUCCEEDED", "FAILED", "CANCELLED"}] == [
        document["status"]
    ]


def _nothing_left(url: str) -> None:
    """No index row outlives the work: lanes, timers, targets, waiters, leases and inboxes are empty."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        found = cast("list[str]", client.keys("*"))
        prefix = keys.prefix(0)
        kept = ("mission:", "log:", "result:", "retire", "counts", "owners", "tick", "order", "fence", "fleet", "catal")
        assert [key for key in found if not key.removeprefix(prefix).startswith((*kept, "looks"))] == []
        records = [key for key in found if key.startswith(prefix + "mission:")]
        counted = cast("dict[str, str]", client.hgetall(prefix + "counts"))
        assert sum(map(int, counted.values())) == len(records)
        places = Counter(client.hget(key, "place") for key in records)
        assert places == {"ended": len(records)}
