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
from tests.waiting import eventually

LEASE_S = "1.2"
ENDS = {"SUCCEEDED", "FAILED", "CANCELLED"}
STATES = ["RESERVING", "CHARGING", "SHIPPING"]
KINDS: list[tuple[str, dict[str, Any]]] = [
    ("test.noop", {}),
    ("test.five", {}),
    ("test.slow", {"seconds": 0.15}),
    ("test.slow", {"seconds": 1.5}),
    ("test.slow", {"seconds": 0.1, "entity": "lamp.one"}),
    ("test.slow", {"seconds": 0.1, "entity": "lamp.two"}),
    ("test.flaky", {"failures": 2}),
    ("test.patient", {"sleep_s": 0.3, "wait_s": 0.3}),
    ("test.patient", {"sleep_s": 0.1, "wait_s": 600}),
    ("test.errand", {"ship": "fails"}),
    ("test.setting", {"entity": "heating", "what": "on"}),
    ("test.setting", {"entity": "heating", "what": "off"}),
]
VERBS: list[tuple[str, dict[str, Any] | None]] = [
    ("cancel", None),
    ("pause", {"by": "chaos"}),
    ("resume", {"by": "chaos"}),
    ("resume", None),
    ("events", {"event": "KNOCK", "data": {"n": 1}, "id": "knock"}),
    ("events", {"event": "KNOCK", "data": {"n": 2}}),
    ("priority", {"priority": "urgent"}),
    ("priority", {"priority": "bulk"}),
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


class Meddler:
    """Says this and that to missions under way, over HTTP, in whatever place they are."""

    def __init__(self, front: Front, ids: list[str], dice: random.Random) -> None:
        self.front, self.ids, self.dice = front, ids, dice
        self.asked: dict[str, set[str]] = {}
        """Verbs that may have been taken, by mission: a 503 leaves it open."""

        self.said, self.ended = Counter[str](), set[str]()
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        while not self.stopping.is_set():
            await _pass(self.dice.uniform(0, 0.06))
            if under_way := [one for one in self.ids if one not in self.ended]:
                verb, body = self.dice.choice(VERBS)
                await self.say(self.dice.choice(under_way), verb, body)

    async def say(self, one: str, verb: str, body: dict[str, Any] | None) -> None:
        self.asked.setdefault(one, set()).add(verb)
        path = f"/v1/missions/{one}/priority" if verb == "priority" else f"/v1/commands/{one}/{verb}"
        try:
            answer = await self.front.client.post(path, json=body)
        except httpx.HTTPError:
            self.said[f"{verb} ?"] += 1
            return
        assert answer.status_code in {202, 409, 429, 503}, answer.text
        told = answer.json()
        if told.get("code") == "ended":
            self.ended.add(one)
        self.said[f"{verb} {told['status'] if answer.status_code == 202 else told['code']}"] += 1

    async def let_go(self, one: str) -> None:
        """What holds it up is over: pauses, and events that nobody would send else."""
        document = await self.front.result(one, wait=0)
        if document["status"] not in ENDS:
            await self.say(one, "resume", None)
            if document["type"] == "test.patient":
                await self.say(one, "events", {"event": "KNOCK", "data": {"n": 3}, "id": "last"})


async def _submit(front: Front, dice: random.Random, count: int, ids: list[str]) -> int:
    """So many commands, each sent with its key until it is acknowledged; how many tries were refused or doubtful."""
    refused = 0
    for n in range(count):
        type_, payload = dice.choice(KINDS)
        command: dict[str, Any] = {"type": type_, "payload": payload, "idempotency_key": f"chaos-{n}"}
        command["priority"] = dice.choice(["urgent", "normal", "bulk"])
        if dice.random() < 0.15:
            command["deadline_s"] = dice.choice([0.01, 0.3, 1.0, 3.0])
        while (one := await _try(front, command)) is None:
            refused += 1
            await _pass(0.05)
        ids.append(one)
        await _pass(dice.uniform(0, 0.08))
    return refused


async def _try(front: Front, command: dict[str, Any]) -> str | None:
    try:
        answer = await front.client.post("/v1/commands", json=command)
    except httpx.HTTPError:
        return None
    if answer.status_code == 202:
        return str(answer.json()["correlation_id"])
    assert answer.status_code == 503, answer.text
    assert answer.headers["retry-after"]
    return None


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.timeout(400)
async def test_b02_promise_1_nothing_accepted_is_lost_and_nothing_is_recorded_twice(
    start_redis: StartRedis, tmp_path: Path, count: int
) -> None:
    seed = int(os.environ.get("DUALLOOP_TEST_SEED", "0")) or random.randrange(10**6)
    print(f"DUALLOOP_TEST_SEED={seed}")  # noqa: T201  to run it again
    dice = random.Random(seed)
    # with everysec an answer may come before its write, while an older write is being forced to the disk
    server = Restartable(start_redis("--appendonly", "yes", "--appendfsync", "always"))
    async with running(
        server.url,
        tmp_path,
        workers=3,
        DUALLOOP_MISSIONS="tests.missions.plain,tests.missions.errand",
        DUALLOOP_LEASE_S=LEASE_S,
        DUALLOOP_SLOTS="10",
        DUALLOOP_DEADLINE_S="600",
        DUALLOOP_REDIS_TIMEOUT_S="0.5",
    ) as stack:
        front, killer = Front(stack.foregrounds[0]), Killer(stack, server, dice)
        meddler = Meddler(front, [], dice)
        try:
            async with asyncio.TaskGroup() as group:
                killing, meddling = group.create_task(killer.run()), group.create_task(meddler.run())
                refused = await _submit(front, dice, count, meddler.ids)
                killer.stopping.set()
                meddler.stopping.set()
                await asyncio.gather(killing, meddling)
            ends = await _check_all(server, meddler)
            print(dict(killer.kills), "refused", refused, dict(ends), dict(meddler.said))  # noqa: T201  shown by -s
            assert sum(killer.kills.values()) > 0
            _nothing_left(server.url, count)
        finally:
            await front.client.aclose()
            server.kill()


async def _check_all(server: Restartable, meddler: Meddler) -> Counter[str]:
    """Every mission ends, for a reason that somebody gave it, with a log that tells so."""
    ends = Counter[str]()
    for one in meddler.ids:

        async def ended(one: str = one) -> bool:
            await meddler.let_go(one)
            return (await meddler.front.result(one, wait=1))["status"] in ENDS

        await eventually(ended, within=60, what=f"{one} ends")
        document = await meddler.front.end(one)
        asked = meddler.asked.get(one, set())
        match document["reason"]:
            case "requested":
                assert "cancel" in asked, document
            case "superseded":
                assert document["type"] == "test.setting", document
            case reason:
                assert reason in {None, "expired"}, document
        code = (document["error"] or {}).get("code")
        ends[f"{document['type']} {document['reason'] or code or document['status']}"] += 1
        log = _check_log(server.url, one, document)
        said = Counter((event["data"] or {}).get("event") for event in log)
        assert said["paused"] == 0 or "pause" in asked, document
        assert said["resumed"] <= said["paused"], document
        _check_undone(document, log)
    return ends


def _check_undone(document: dict[str, Any], log: list[dict[str, Any]]) -> None:
    """What was done is undone, last first, each once: whatever killed whom meanwhile."""
    if document["type"] != "test.errand":
        return
    undone = (document["result"] or {}).get("undone", [])
    begun = [event["state"] for event in log if event["status"] == "RUNNING"]
    assert undone == sorted(undone, key=STATES.index, reverse=True), document
    assert len(undone) == len(set(undone)), document
    left = [state for state in dict.fromkeys(begun) if state != begun[-1]] if begun else []
    assert set(left) <= set(undone), (document, log)


def _check_log(url: str, task_id: str, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The log has every seq once, in order, and ends as the result does."""
    with redis.Redis.from_url(url) as client:
        log = [json.loads(line) for line in cast("list[bytes]", client.lrange(keys.log(0, task_id), 0, -1))]
    assert [event["seq"] for event in log] == list(range(1, document["seq"] + 1))
    assert [event["status"] for event in log if event["status"] in {"SUCCEEDED", "FAILED", "CANCELLED"}] == [
        document["status"]
    ]
    return log


def _nothing_left(url: str, missions: int) -> None:
    """No index row outlives the work: lanes, timers, targets, waiters, leases and inboxes are empty."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        found = cast("list[str]", client.keys("*"))
        prefix = keys.prefix(0)
        kept: tuple[str, ...] = ("mission:", "log:", "result:", "retire", "counts", "owners", "tick", "order", "fence")
        kept += ("fleet", "catal", "dead_letters", "intents:default:heating:power", "term", "recount", "idem:")
        assert [key for key in found if not key.removeprefix(prefix).startswith((*kept, "looks"))] == []
        records = [key for key in found if key.startswith(prefix + "mission:")]
        counted = cast("dict[str, str]", client.hgetall(prefix + "counts"))
        assert sum(map(int, counted.values())) == len(records) == missions
        places = Counter(client.hget(key, "place") for key in records)
        assert places == {"ended": len(records)}
