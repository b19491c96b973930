"""A rolling deploy, forward and back, under load and with kills: nothing is lost, and nothing run by half.

Releases share the type ``test.order``: names of states, payload and context change from each to the next.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from shared import keys
from tests.processes.commands import Front, events, tally
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

LEASE_S: Final = 2.0
FIRST, SECOND, THIRD = (f"tests.missions.versions.{release}" for release in ("first", "second", "third"))
VERSION: Final = {FIRST: 1, SECOND: 2, THIRD: 3}
PAYLOADS: Final[dict[int, dict[str, Any]]] = {
    1: {"item": "lamp", "cents": 1999},
    2: {"item": "lamp", "price": {"cents": 1999, "currency": "EUR"}},
    3: {"items": ["lamp"], "price": {"cents": 1999, "currency": "EUR"}},
}
ASKED: Final = 5
"""Orders of the first release that wait for a word through the whole deploy forward."""

NEWEST_NAME: Final = {"WRAPPING": "PACKING", "PICKING": "COLLECTING"}
WAY: Final = ["COLLECTING", "PACKING", "CHECKING", "SENDING"]


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        workers=2,
        DUALLOOP_MISSIONS=FIRST,
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_SLOTS="10",
        DUALLOOP_DRAIN_S="20",
        DUALLOOP_DEADLINE_S="600",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


class Load:
    """Sends orders of every version that the front takes, until told to stop."""

    def __init__(self, front: Front) -> None:
        self.front, self.ids, self.stopping = front, dict[str, int](), asyncio.Event()
        self.asked: list[str] = []
        self.pauses = 0

    async def run(self) -> None:
        while not self.stopping.is_set():
            for version in await self.versions():
                ask = len(self.ids) % 5 == 0
                payload = PAYLOADS[version] | {"seconds": 0.05, "ask": ask}
                one = await self.front.send("test.order", payload=payload, payload_version=version)
                self.ids[one] = version
                if ask and len(self.asked) < ASKED:
                    self.asked.append(one)  # answered when the newest release is everywhere
                elif ask:
                    await self.agree(one)  # early, late or just now
            try:
                async with asyncio.timeout(0.05):
                    await self.stopping.wait()
            except TimeoutError:
                self.pauses += 1

    async def agree(self, one: str) -> None:
        """The event that it waits for, or will."""
        answer = await self.front.client.post(f"/v1/commands/{one}/events", json={"event": "AGREED"})
        assert answer.status_code == 202, answer.text

    async def versions(self) -> list[int]:
        return list((await self.front.client.get("/v1/mission-types/test.order")).json()["versions"])

    async def more(self, version: int) -> None:
        """Wait until some of this version have been sent from now on."""
        before = Counter(self.ids.values())[version]
        await eventually(lambda: Counter(self.ids.values())[version] > before + 5, within=60)


async def _waits(front: Front, one: str) -> bool:
    return (await front.state(one))[0] == "WAITING"


async def _upcast(front: Front, one: str) -> bool:
    return bool((await front.client.get(f"/v1/missions/{one}")).json()["version"] == VERSION[THIRD])


async def replace(worker: Part, release: str, *, kill: bool) -> None:
    """Let a worker be of another release."""
    if kill:
        worker.kill()
    await worker.restart(DUALLOOP_MISSIONS=release)


def check(stack: Stack, document: dict[str, Any]) -> list[str]:
    """It has gone the whole way once, under each name it then had, and never back to an older release."""
    assert document["status"] == "SUCCEEDED", document
    log: list[str] = document["result"]["log"]
    states, releases = zip(*(line.split("@") for line in log), strict=True)
    way = [NEWEST_NAME.get(state, state) for state in states]
    assert list(releases) == sorted(releases), log
    # the first release has no check, and packs into the sending: from there a later one goes on to send
    assert way == (WAY if "CHECKING" in way else [state for state in WAY if state != "CHECKING"]), log
    assert ("CHECKING" in way) == (releases[way.index("PACKING")] != "1"), log
    told = [line for line in events(stack, document["task_id"]) if b'"event":"reclaimed"' not in line]
    assert len(told) == len(set(told))
    return log


def ran_once_each(stack: Stack, task_id: str) -> bool:
    return max(Counter(line[2] for line in tally(stack) if line[1] == task_id and "end@" in line[0]).values()) == 1


@pytest.mark.parametrize(
    ("kill", "releases"),
    [
        pytest.param(False, (THIRD,), id="drained"),
        pytest.param(True, (THIRD,), id="killed"),
        pytest.param(False, (SECOND, THIRD), id="three drained", marks=pytest.mark.long),
        pytest.param(True, (SECOND, THIRD), id="three killed", marks=pytest.mark.long),
    ],
)
async def test_b52_workers_are_replaced_one_by_one_forward_and_back_and_nothing_is_lost(
    stack: Stack, front: Front, kill: bool, releases: tuple[str, ...]
) -> None:
    load = Load(front)
    async with asyncio.TaskGroup() as group:
        loading = group.create_task(load.run())
        await load.more(1)
        await eventually(lambda: len(load.asked) == ASKED, within=60)
        for one in load.asked:
            await eventually(partial(_waits, front, one), within=60)  # begun by the oldest release
        first, second = stack.workers
        for release in releases:
            await replace(first, release, kill=kill)
            await load.more(VERSION[release])  # sent while a worker that does not know it is there too
            await replace(second, release, kill=kill)
            await load.more(VERSION[release])
        for one in load.asked:
            await load.agree(one)
        for one in load.asked:
            await eventually(partial(_upcast, front, one), within=60)  # from here on no older release may have it
        for release in (*releases[-2::-1], FIRST):
            await replace(first, release, kill=kill)
            await load.more(3)
        # the last one that knows the newer versions goes, and comes back: what it had begun waits for that
        await replace(second, FIRST, kill=kill)
        await load.more(3)
        assert "parked" in await _left(stack, load)
        await replace(second, THIRD, kill=kill)
        await load.more(1)
        load.stopping.set()
        await loading
    logs = {one: check(stack, await front.end(one)) for one in load.ids}
    ran = {one: [line.partition("@")[2] for line in log] for one, log in logs.items()}
    assert {(ran[one][0], ran[one][-1]) for one in load.asked} == {("1", "3")}, "begun by one release, ended by another"
    assert all(int(by[0]) >= load.ids[one] for one, by in ran.items()), "a newer version never runs on an older worker"
    assert set(load.ids.values()) == {1} | {VERSION[release] for release in releases} | {2}
    if not kill:
        assert all(ran_once_each(stack, one) for one in load.ids), "a drain finishes what is under way, once"
        assert not [one for one in load.ids if any(b"reclaimed" in line for line in events(stack, one))]


async def _left(stack: Stack, load: Load) -> set[str]:
    """Places of the orders that have not ended."""
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        await eventually(lambda: client.exists(keys.parked(0, "test.order@3")), what="a newer version is parked")
        return {str(client.hget(keys.mission(0, one), "place")) for one in load.ids}


async def test_a_mission_in_the_middle_of_a_state_is_upcast_by_whoever_takes_it_over(
    stack: Stack, front: Front
) -> None:
    for seconds in (1.0, 4.0, 16.0):  # more on a slow machine, where it may be over before they are killed
        one = await front.send("test.order", payload=PAYLOADS[1] | {"seconds": seconds}, payload_version=1)
        await eventually(partial(_was_said, stack, "begin@1", one, "WRAPPING"))
        for worker in stack.workers:
            worker.kill()
        if not _was_said(stack, "end@1", one, "WRAPPING"):
            break
        await stack.start(stack.workers)
    await stack.workers[0].start(DUALLOOP_MISSIONS=THIRD)
    document = await front.end(one)
    assert document["result"] == {
        "log": ["PICKING@1", "PACKING@3", "CHECKING@3", "SENDING@3"],
        "items": ["lamp"],
    }
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        assert client.hget(keys.mission(0, one), "version") == "3", "what it is now is what its document is written in"
    mission = (await front.client.get(f"/v1/missions/{one}")).json()
    assert mission["envelope"]["payload_version"] == 1, "and the envelope stays as it was sent"
    states = [event["state"] for event in mission["history"]]
    assert states[:3] == ["PICKING", "WRAPPING", "WRAPPING"]
    assert states[3:] == ["CHECKING", "SENDING", "SUCCEEDED"]


def _was_said(stack: Stack, *words: str) -> bool:
    return list(words) in [line[:3] for line in tally(stack)]


async def test_what_waits_is_upcast_when_its_event_comes(stack: Stack, front: Front) -> None:
    one = await front.send("test.order", payload=PAYLOADS[1] | {"ask": True}, payload_version=1)
    await eventually(lambda: _is(front, one, ("WAITING", "ASKING")))
    for worker in stack.workers:
        await replace(worker, SECOND, kill=False)
    answer = await front.client.post(f"/v1/commands/{one}/events", json={"event": "AGREED"})
    assert answer.status_code == 202, answer.text
    assert (await front.end(one))["result"]["log"] == ["PICKING@1", "PACKING@2", "CHECKING@2", "SENDING@2"]


async def test_b21_b52_what_nobody_here_knows_waits_untouched_for_who_does(stack: Stack, front: Front) -> None:
    newer = stack.worker(DUALLOOP_MISSIONS=SECOND)
    await stack.start([newer])
    await eventually(lambda: _known(front, "test.gift"))
    await newer.stop()
    gift = await front.send("test.gift")
    order = await front.send("test.order", payload=PAYLOADS[2], payload_version=2)
    old = await front.send("test.order", payload=PAYLOADS[1], payload_version=1)
    assert (await front.end(old))["status"] == "SUCCEEDED"
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        for one in (gift, order):
            await eventually(lambda one=one: client.hget(keys.mission(0, one), "place") == "parked")  # type: ignore[misc]
    for one in (gift, order):
        document = await front.result(one, wait=0)
        assert (document["status"], document["waiting_for"]) == ("PENDING", "worker")
    assert not [line for line in tally(stack) if line[1] in {gift, order}]
    await newer.start()
    for one in (gift, order):
        assert (await front.end(one))["status"] == "SUCCEEDED"
        assert {line[0][-2:] for line in tally(stack) if line[1] == one} == {"@2"}


async def test_b52_after_the_limit_they_are_dead_letters_that_say_so_and_can_be_replayed(
    redis_url: str, tmp_path: Path
) -> None:
    tallied = str(tmp_path / "tally")
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_MISSIONS=SECOND,
        DUALLOOP_LEASE_S="0.6",
        DUALLOOP_PARK_LIMIT_S="1.5",
        DUALLOOP_TEST_TALLY=tallied,
    ) as stack:
        front = Front(stack.foregrounds[0])
        await replace(stack.workers[0], FIRST, kill=False)
        gift = await front.send("test.gift")
        order = await front.send("test.order", payload=PAYLOADS[2], payload_version=2)
        for one, code in ((gift, "unknown_type"), (order, "future_version")):
            document = await front.end(one)
            assert (document["status"], document["error"]["code"]) == ("FAILED", code)
            assert "no worker has known" in document["error"]["message"]
            letter = await front.client.get(f"/v1/dead-letters/{one}")
            assert letter.status_code == 200, letter.text
        listed = (await front.client.get("/v1/dead-letters")).json()
        assert {gift, order} <= {
            letter["task_id"] for letter in next(iter(v for v in listed.values() if isinstance(v, list)))
        }
        assert not tally(stack), "neither was run, not even by half"
        await replace(stack.workers[0], SECOND, kill=False)
        for one in (gift, order):
            answer = await front.client.post(f"/v1/dead-letters/{one}/replay", json={"from": "start"})
            assert answer.status_code in {200, 202}, answer.text
            await eventually(lambda one=one: _is_status(front, one, "SUCCEEDED"))  # type: ignore[misc]
        await front.client.aclose()


async def _is(front: Front, correlation_id: str, expected: tuple[str, str]) -> bool:
    return await front.state(correlation_id) == expected


async def _is_status(front: Front, correlation_id: str, status: str) -> bool:
    return (await front.state(correlation_id))[0] == status


async def _known(front: Front, type_: str) -> bool:
    return (await front.client.get(f"/v1/mission-types/{type_}")).status_code == 200
