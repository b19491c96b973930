"""P8, B49: who kills its worker is run alone, and buried if it kills again; neighbours and healthy ones are not."""

import os
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from shared import keys
from tests.processes.commands import Front, events, tally
from tests.processes.proc import gone
from tests.redis.scripts_client import Verbs
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LEASE_S = 1.5


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_MISSIONS="tests.missions.plain,tests.missions.heavy,tests.missions.unborn",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_DRAIN_S="100",
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

    return await eventually(pids, what=f"{task_id} has begun {times} times")


async def suspect(stack: Stack, front: Front, gate: Path, **env: str) -> tuple[str, int]:
    """A healthy mission that two workers were killed with from outside, and the process in which it now runs alone.

    `env` is that of the worker which has it then.
    """
    one = await front.send("test.poison", payload={"how": "gate", "mark": str(gate)})
    for times in (1, 2):
        await begun_in(stack, one, times)
        stack.workers[0].kill()
        await stack.workers[0].start(**env)
    child = (await begun_in(stack, one, 3))[2]
    assert child != stack.workers[0].running.pid
    return one, child


def counted(stack: Stack, task_id: str, deaths: int) -> bool:
    """Whether so many owners that carried nothing else were lost with it."""
    return record(stack, task_id).get("solo_deaths") == str(deaths)


async def survive(stack: Stack) -> None:
    """Start the worker again whenever it has died."""
    worker = stack.workers[0]
    await eventually(lambda: worker.running.poll() is not None, what="the worker dies")
    await worker.start()


@pytest.mark.parametrize("how", ["kill", "segfault", "exit", "memory"])
async def test_b06_b49_who_kills_three_processes_is_buried_and_its_neighbour_lives(
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


async def test_p8_a_healthy_suspect_ends_as_any_other_and_hears_what_is_said_to_it(
    stack: Stack, front: Front, tmp_path: Path
) -> None:
    one, child = await suspect(stack, front, tmp_path / "gate")
    (tmp_path / "gate").touch()
    document = await front.result(one)
    assert (document["status"], document["result"]) == ("SUCCEEDED", {"pid": child})
    await eventually(lambda: gone(child))

    other, child = await suspect(stack, front, tmp_path / "never")
    await front.cancel(other)
    document = await front.result(other)
    assert (document["status"], document["reason"]) == ("CANCELLED", "requested")
    await eventually(lambda: gone(child))
    assert b'"event":"reclaimed","deaths":3' not in b"\n".join(events(stack, one) + events(stack, other))


async def test_p8_a_drain_drains_the_child_too_and_convicts_nobody(stack: Stack, front: Front, tmp_path: Path) -> None:
    one, child = await suspect(stack, front, tmp_path / "gate", DUALLOOP_DRAIN_S="3")
    assert await stack.workers[0].stop() == 0
    await eventually(partial(gone, child))  # the kernel ends at the latest with its worker what took too long
    after = record(stack, one)
    assert (after["place"], after["deaths"], after.get("solo_deaths", "0")) == ("lane", "2", "0")
    await stack.workers[0].start(DUALLOOP_DRAIN_S="100")
    again = (await begun_in(stack, one, 4))[3]  # alone again: nothing was committed since
    assert again != stack.workers[0].running.pid
    said = stack.workers[0].tail(10**6).count("drain")
    stack.workers[0].running.terminate()
    await eventually(lambda: stack.workers[0].tail(10**6).count("drain") > said)
    (tmp_path / "gate").touch()  # now it can finish what it has begun
    assert (await front.result(one))["status"] == "SUCCEEDED"
    await eventually(lambda: stack.workers[0].running.poll() is not None)
    assert stack.workers[0].running.returncode == 0


async def test_p8_a_child_that_dies_in_a_drain_is_not_convicted(stack: Stack, front: Front, tmp_path: Path) -> None:
    one, child = await suspect(stack, front, tmp_path / "gate")
    stack.workers[0].running.terminate()
    await eventually(lambda: "drain" in stack.workers[0].tail(10**6))
    os.kill(child, signal.SIGKILL)
    await eventually(lambda: stack.workers[0].running.poll() is not None)
    assert record(stack, one)["place"] == "lane"


async def test_p8_suspects_are_bounded_and_who_waits_is_not_lost(stack: Stack, front: Front, tmp_path: Path) -> None:
    worker, gate = stack.workers[0], tmp_path / "gate"
    await worker.restart(DUALLOOP_PROCESSES="1")
    both = [await front.send("test.poison", payload={"how": "gate", "mark": str(gate)}) for _ in range(2)]
    for times in (1, 2):
        for one in both:
            await begun_in(stack, one, times)
        worker.kill()
        await worker.start()
    begun = await eventually(lambda: [line for line in tally(stack) if line[0].startswith("begin-")][4:])
    last = both[both.index(begun[0][1]) - 1]
    assert record(stack, last)["owner"] != record(stack, begun[0][1])["owner"]  # it waits under the worker's own lease
    gate.touch()
    for one in both:
        assert (await front.result(one))["status"] == "SUCCEEDED"
    pids = [line[0] for line in tally(stack) if line[0].startswith("begin-")][4:]
    assert len(set(pids)) == 2
    assert worker.tail(10**6).count('"event":"suspect"') == 2


async def test_b49_who_kills_by_being_read_is_read_by_its_own_process_only(stack: Stack, front: Front) -> None:
    one = await front.send("test.unreadable", payload={"dose": 1})
    await survive(stack)
    await survive(stack)
    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "worker_lost")
    assert "SIGKILL" in document["error"]["message"]
    assert stack.workers[0].running.poll() is None


async def test_p8_a_worker_that_is_killed_takes_its_child_along_and_three_of_those_convict(
    stack: Stack, front: Front, tmp_path: Path
) -> None:
    one, child = await suspect(stack, front, tmp_path / "gate")
    for deaths in (1, 2, 3):
        stack.workers[0].kill()
        await eventually(partial(gone, child))
        await stack.workers[0].start()
        await eventually(partial(counted, stack, one, deaths))
        if deaths < 3:
            child = (await begun_in(stack, one, 3 + deaths))[-1]
    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "worker_lost")


async def test_p8_three_outside_kills_can_convict_a_healthy_one_which_can_be_replayed(
    stack: Stack, front: Front, tmp_path: Path
) -> None:
    one, child = await suspect(stack, front, tmp_path / "gate")
    os.kill(child, signal.SIGKILL)
    document = await front.result(one)
    assert document["error"]["code"] == "worker_lost"
    assert "was ended by SIGKILL" in document["error"]["message"]
    (tmp_path / "gate").touch()
    with redis.Redis.from_url(stack.redis_url) as client:
        assert Verbs(client).replay(one, "failed_state", deadline_ms=60_000) == ("OK", 2)
    document = await front.end(one)
    assert (document["status"], document["run"]) == ("SUCCEEDED", 2)
    assert document["result"] == {"pid": stack.workers[0].running.pid}  # in the worker again, as any other


async def test_p8_who_survives_its_own_process_goes_on_as_any_other(stack: Stack, front: Front) -> None:
    """What it does next is another handler's doing: it takes two workers and a process of its own again."""
    one = await front.send("test.poison_late")
    for _ in range(4):
        await survive(stack)
    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "worker_lost")
    assert document["error"]["state"] == "TWO"
    begun = [(line[2], line[0]) for line in tally(stack) if line[1] == one]
    assert [state for state, _ in begun] == ["ONE"] * 3 + ["TWO"] * 3
    assert len({pid for _, pid in begun}) == 6
    assert record(stack, one)["failed_in"] == "TWO"


async def test_p8_p11_what_is_asked_before_the_act_is_no_reprieve(stack: Stack, front: Front) -> None:
    one = await front.send("test.poison_newest", payload={"lamp": "light.kitchen"})
    await survive(stack)
    await survive(stack)
    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "worker_lost")
    assert "was ended by SIGKILL" in document["error"]["message"]
    assert int(record(stack, one)["rev"]) >= 3  # it had committed, each time
    assert len(await begun_in(stack, one, 3)) == 3


async def test_p8_a_suspect_that_is_cancelled_does_not_wait_for_its_place(
    stack: Stack, front: Front, tmp_path: Path
) -> None:
    worker, gate = stack.workers[0], tmp_path / "gate"
    await worker.restart(DUALLOOP_PROCESSES="1")
    both = [await front.send("test.poison", payload={"how": "gate", "mark": str(gate)}) for _ in range(2)]
    for times in (1, 2):
        for one in both:
            await begun_in(stack, one, times)
        worker.kill()
        await worker.start()
    begun = await eventually(lambda: [line for line in tally(stack) if line[0].startswith("begin-")][4:])
    waits = both[both.index(begun[0][1]) - 1]
    await front.cancel(waits)
    assert (await front.result(waits))["status"] == "CANCELLED"
    assert len(await begun_in(stack, waits, 2)) == 2  # its handler has not begun again
    assert (await front.state(begun[0][1]))[0] == "RUNNING"


@pytest.mark.long
@pytest.mark.parametrize("by", ["cancel", "deadline"])
async def test_p8_a_suspect_whose_process_never_starts_ends_when_that_is_wanted(
    stack: Stack, front: Front, by: str
) -> None:
    one = await front.send("test.unborn", deadline_s=30 if by == "deadline" else 600)
    await survive(stack)
    await survive(stack)
    await eventually(lambda: "a suspect was not begun" in stack.workers[0].tail(10**6))
    if by == "cancel":
        await front.cancel(one)
    document = await front.end(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "worker_lost")
    assert "could never be started" in document["error"]["message"]
