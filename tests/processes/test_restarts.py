"""Everything is killed at once, Redis too, and started again: what was accepted, sleeps, or was said is still there."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from shared import keys
from tests.conftest import StartRedis
from tests.processes.commands import Front, acting, bring_near, events, tally
from tests.processes.restartable import Restartable
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LEASE_S: Final = 1.0
DAY_S: Final = 86_400
MONTH_S: Final = 30 * DAY_S


class Everything:
    """The whole product, to be killed as by a power cut; Redis keeps what it has confirmed."""

    def __init__(self, stack: Stack, server: Restartable, front: Front) -> None:
        self.stack, self.server, self.front = stack, server, front

    async def restart(self) -> None:
        self.cut()
        await self.start()

    def cut(self) -> None:
        for part in (*self.stack.workers, *self.stack.foregrounds):
            part.kill()
        self.server.kill()

    async def start(self) -> None:
        self.server.start()
        await self.stack.start((*self.stack.foregrounds, *self.stack.workers))

    def timers(self) -> dict[bytes, float]:
        with self.server.client() as client:
            found: Any = client.zrange(keys.prefix(0) + "timers", 0, -1, withscores=True)
        return dict(found)

    def place(self, task_id: str) -> str:
        with self.server.client() as client:
            return str(client.hget(keys.mission(0, task_id), "place"))[2:-1]

    def bring_near(self, task_id: str, seconds: float) -> None:
        bring_near(self.server.url, task_id, seconds)

    async def sleeps(self, task_id: str, state: str) -> None:
        async def asleep() -> bool:
            return await self.front.state(task_id) == ("WAITING", state) and self.place(task_id) == "waiting"

        await eventually(asleep, within=60, what=f"{task_id} waits in {state}")

    async def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.front.client.post(path, json=body)
        assert answer.status_code == 202, answer.text
        return dict(answer.json())


@pytest.fixture
async def everything(start_redis: StartRedis, tmp_path: Path) -> AsyncIterator[Everything]:
    # always: with everysec an answer may come before its write, while an older one is being forced to the disk
    server = Restartable(start_redis("--appendonly", "yes", "--appendfsync", "always"))
    tallied = str(tmp_path / "tally")
    async with running(
        server.url, tmp_path, workers=2, DUALLOOP_LEASE_S=str(LEASE_S), DUALLOOP_TEST_TALLY=tallied
    ) as stack:
        front = Front(stack.foregrounds[0])
        yield Everything(stack, server, front)
        await front.client.aclose()
    server.kill()


async def patient(everything: Everything, sleep_s: float, wait_s: float = 5 * DAY_S) -> str:
    payload = {"sleep_s": sleep_s, "wait_s": wait_s}
    return await everything.front.send("test.patient", payload=payload, deadline_s=MONTH_S)


async def test_b10_timers_of_days_outlast_restarts_of_everything(everything: Everything) -> None:
    front = everything.front
    days = {await patient(everything, n * DAY_S): n for n in (1, 2, 3, 20)}
    for one in days:
        await everything.sleeps(one, "SLEEPING")
    before = everything.timers()
    assert sorted(before) == sorted(one.encode() for one in days), "one entry for each"
    for _ in range(2):
        await everything.restart()
        assert everything.timers() == before, "the times are stored, never counted anew"
    first, second, third, last = days
    everything.bring_near(first, -1)  # it came due while all was away
    everything.bring_near(second, 0.3)
    for one in (first, second):
        await everything.sleeps(one, "LISTENING")
    runs = [line[1] for line in tally(everything.stack)]
    assert {one: runs.count(one) for one in days} == {first: 2, second: 2, third: 1, last: 1}, "nobody is woken early"
    await everything.restart()
    listening = everything.timers()
    assert listening[first.encode()] == before[first.encode()] or len(listening) == len(days)
    everything.bring_near(third, 0.2)
    await everything.sleeps(third, "LISTENING")
    everything.bring_near(first, 0.2)  # no KNOCK has come: its time is over
    document = await front.end(first)
    assert (document["status"], document["state"]) == ("FAILED", "FAILED")
    for one in (second, third):
        await everything.post(f"/v1/commands/{one}/events", {"event": "KNOCK", "data": {"after": "days"}})
        assert (await front.end(one))["result"] == {"received": {"after": "days"}}
    assert everything.timers() == {last.encode(): before[last.encode()]}
    assert not [one for one in days if any(b"reclaimed" in line for line in events(everything.stack, one))]


async def test_b11_what_was_accepted_is_found_though_everything_died_before_its_first_step(
    everything: Everything,
) -> None:
    front = everything.front
    for worker in everything.stack.workers:
        worker.kill()
    ids = [await front.send("test.five") for _ in range(20)]
    lamp = [await front.send("test.slow", payload={"seconds": 0.01, "entity": "lamp"}) for _ in range(3)]
    await everything.restart()
    for one in (*ids, *lamp):
        assert (await front.end(one))["status"] == "SUCCEEDED"
    ran = [line[1] for line in tally(everything.stack) if line[2] in {"ONE", "CHECKING"}]
    assert sorted(ran) == sorted((*ids, *lamp))


async def test_b11_what_was_claimed_and_had_not_begun_to_be_written_is_run_again(everything: Everything) -> None:
    front = everything.front
    gate = everything.stack.folder / "gate"
    one = await front.send("test.slow", payload={"gate": str(gate)})

    async def begun() -> bool:
        return await acting(front, one)

    await eventually(begun)
    await everything.restart()
    gate.touch()
    assert (await front.end(one))["status"] == "SUCCEEDED"
    assert [line[0] for line in tally(everything.stack)] == ["begin", "begin", "end", "run"]
    assert b'"event":"reclaimed","deaths":1' in b"".join(events(everything.stack, one))


async def test_b15_what_is_not_due_is_claimed_by_nobody_and_stands_once_among_the_timers(
    everything: Everything,
) -> None:
    """Its sleep is longer than any lease, with two workers that look for work all the time."""
    front = everything.front
    ids = [await patient(everything, DAY_S) for _ in range(20)]
    for one in ids:
        await everything.sleeps(one, "SLEEPING")
    timers = everything.timers()
    assert len(timers) == len(ids)
    with everything.server.client() as client:

        def fences() -> list[Any]:
            return [client.hget(keys.mission(0, one), "fence") for one in ids]

        def now() -> float:
            seconds: Any = client.time()
            return float(seconds[0])

        before, began = fences(), now()
        while now() < began + 3 * LEASE_S:
            await front.end(await front.send("test.noop"))  # somebody has looked for work, and taken this
        assert (fences(), everything.timers()) == (before, timers)
    for one in ids:
        everything.bring_near(one, 0)
    for one in ids:
        await everything.sleeps(one, "LISTENING")
    runs = [line[1] for line in tally(everything.stack) if line[2] == "SLEEPING"]
    assert sorted(runs) == sorted(2 * ids), "once before its sleep, and once after it"


async def test_events_may_be_early_late_and_doubled_over_restarts_of_everything(everything: Everything) -> None:
    front, client = everything.front, everything.front.client
    early, late, both = [await patient(everything, DAY_S) for _ in range(3)]
    for one in (early, late, both):
        await everything.sleeps(one, "SLEEPING")
    knock = {"event": "KNOCK", "data": {"n": 1}, "id": "knock"}
    for one in (early, both):
        assert (await everything.post(f"/v1/commands/{one}/events", knock))["duplicate"] is False
    await everything.restart()
    for one in (early, both):
        await everything.sleeps(one, "SLEEPING")  # what is early wakes nobody for good
        assert (await everything.post(f"/v1/commands/{one}/events", knock))["duplicate"] is True
    other = await everything.post(f"/v1/commands/{both}/events", knock | {"data": {"n": 2}, "id": "other"})
    assert other["duplicate"] is False
    await everything.restart()
    for one in (early, both):
        await everything.sleeps(one, "SLEEPING")  # what was said has been taken in, whoever died over it
        everything.bring_near(one, 0)
    assert (await front.end(early))["result"] == {"received": {"n": 1}}
    assert (await front.end(both))["result"]["received"]["n"] in {1, 2}
    everything.bring_near(late, 0)
    await everything.sleeps(late, "LISTENING")
    await everything.restart()
    await everything.sleeps(late, "LISTENING")
    assert (await everything.post(f"/v1/commands/{late}/events", knock))["duplicate"] is False
    assert (await front.end(late))["result"] == {"received": {"n": 1}}
    await everything.restart()
    for one in (early, late, both):
        answer = await client.post(f"/v1/commands/{one}/events", json=knock)
        assert (answer.status_code, answer.json()["code"]) == (409, "ended")


async def test_b24_what_was_said_to_a_mission_outlasts_restarts_of_everything(everything: Everything) -> None:
    """Pause, resume and cancel are in Redis as soon as they are answered, whoever is there to hear them."""
    front = everything.front
    paused, resumed, cancelled, waiting = [await patient(everything, DAY_S) for _ in range(4)]
    for one in (paused, resumed, cancelled, waiting):
        await everything.sleeps(one, "SLEEPING")
    for worker in everything.stack.workers:
        worker.kill()
    for one in (paused, resumed):
        assert (await everything.post(f"/v1/commands/{one}/pause"))["status"] == "PAUSED"
    await everything.post(f"/v1/commands/{cancelled}/cancel")  # it has begun, so a worker has to end it
    never = await front.send("test.noop")
    assert (await everything.post(f"/v1/commands/{never}/cancel"))["status"] == "CANCELLED"
    fresh = await front.send("test.noop")
    await everything.post(f"/v1/commands/{fresh}/pause")
    await everything.restart()
    for one in (cancelled, never):
        document = await front.end(one)
        assert (document["status"], document["reason"]) == ("CANCELLED", "requested")
    assert [everything.place(one) for one in (paused, resumed, fresh)] == ["paused"] * 3
    assert (await everything.post(f"/v1/commands/{resumed}/resume"))["status"] == "WAITING"
    await everything.restart()
    assert [everything.place(one) for one in (paused, resumed, waiting)] == ["paused", "waiting", "waiting"]
    everything.bring_near(resumed, 0)
    everything.bring_near(paused, 0)
    await everything.sleeps(resumed, "LISTENING")
    assert everything.place(paused) == "paused", "whose time has come stays paused"
    for one in (paused, fresh):
        await everything.post(f"/v1/commands/{one}/resume")
    await everything.sleeps(paused, "LISTENING")
    assert (await front.end(fresh))["status"] == "SUCCEEDED"
    with redis.Redis.from_url(everything.server.url) as client:
        assert client.zcard(keys.prefix(0) + "paused") == 0
