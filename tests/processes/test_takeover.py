"""A worker is lost in the middle of a state: another one goes on within two leases, and it is recorded once."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from functools import partial
from pathlib import Path
from time import time
from typing import cast

import pytest
import redis

from shared import keys
from shared.scripts import SCRIPTS
from tests.processes.commands import Front, acting, events, tally
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

LEASE_S = 2.0
SLACK_S = 10.0  # what a slow machine adds


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        workers=2,
        DUALLOOP_MISSIONS="tests.missions.plain,tests.missions.lost",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_SLOTS="20",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


async def test_b01_b02_kill_9_in_a_state_is_taken_over_within_two_leases_and_ends_once(
    stack: Stack, front: Front
) -> None:
    ids = await in_midst(stack, front, 10)
    held = [one for one in ids if one in held_by(stack, stack.workers[0])]
    stack.workers[0].kill()
    killed_at = time()
    assert held
    await eventually(lambda: all(map(partial(reclaimed_at, stack), held)), what="all that it had is taken over")
    assert max(map(partial(reclaimed_at, stack), held)) - killed_at < 2 * LEASE_S + SLACK_S
    (stack.folder / "gate").touch()
    for one in ids:
        document = await front.result(one)
        assert (document["status"], document["run"]) == ("SUCCEEDED", 1)
        assert bool(reclaimed_at(stack, one)) == (one in held), "and nobody's who lives"
    ends = [line[1] for line in tally(stack) if line[0] == "run"]
    assert sorted(ends) == sorted(ids)  # the state behind the lost one ran once each
    for one in ids:
        log = events(stack, one)
        assert [f'"seq":{n},'.encode() in line for n, line in enumerate(log, 1)] == [True] * len(log)


async def in_midst(stack: Stack, front: Front, many: int) -> list[str]:
    """So many missions in the middle of a state, which ends once the gate is open."""
    gate = {"gate": str(stack.folder / "gate")}
    ids = [await front.send("test.slow", payload=gate) for _ in range(many)]
    for one in ids:
        await eventually(partial(acting, front, one))
    return ids


def held_by(stack: Stack, worker: Part) -> set[str]:
    """What is leased to a process, by Redis' word."""
    told = [json.loads(line) for line in worker.log.read_text().splitlines() if '"event":"lease held"' in line]
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        return cast("set[str]", client.smembers(keys.held(0, told[-1]["owner"])))


def reclaimed_at(stack: Stack, task_id: str) -> float:
    """When it was taken over, in seconds of the epoch; 0: it was not."""
    told = [json.loads(line) for line in events(stack, task_id) if b'"event":"reclaimed"' in line]
    return datetime.fromisoformat(told[0]["at"]).timestamp() if told else 0.0


async def test_b16_b20_a_long_handler_of_a_living_worker_is_never_taken_over(stack: Stack, front: Front) -> None:
    one = await front.send("test.slow", payload={"seconds": 3 * LEASE_S})
    assert (await front.result(one))["status"] == "SUCCEEDED"
    assert [line[0] for line in tally(stack) if line[1] == one] == ["begin", "end", "run"]


async def test_b17_a_worker_that_thaws_after_its_takeover_records_nothing(stack: Stack, front: Front) -> None:
    ids = await in_midst(stack, front, 6)
    for worker in stack.workers:
        worker.freeze()
    (stack.folder / "gate").touch()
    spare = stack.worker()
    await stack.start([spare])
    for one in ids:
        assert (await front.result(one))["status"] == "SUCCEEDED"
    for worker in stack.workers[:2]:
        worker.thaw()
    await eventually(lambda: all("lease lost" in part.tail(10**6) for part in stack.workers[:2]))
    for one in ids:
        document = await front.result(one)
        assert (document["status"], document["seq"]) == ("SUCCEEDED", 4)  # started, reclaimed, CHECKING, the end
    again = await front.send("test.noop")  # and they work on, under new leases
    assert (await front.result(again))["status"] == "SUCCEEDED"


async def test_b01_p8_a_takeover_counts_a_death_and_no_attempt(stack: Stack, front: Front) -> None:
    [one] = await in_midst(stack, front, 1)
    for worker in stack.workers:
        worker.kill()
    (stack.folder / "gate").touch()
    await stack.workers[0].restart()
    assert (await front.result(one))["status"] == "SUCCEEDED"
    begun = [line for line in tally(stack) if line[0] == "begin" and line[1] == one]
    assert [line[3] for line in begun] == ["1", "1"]
    assert int(begun[0][4]) < int(begun[1][4])  # the fence rose
    assert b'"event":"reclaimed","deaths":1' in b"\n".join(events(stack, one))


async def test_b06_b22_a_lost_worker_costs_no_try_and_every_try_carries_one_key(stack: Stack, front: Front) -> None:
    """Its third try of three is the one that hangs: the takeover runs that one again, instead of failing it."""
    one = await front.send("test.worn")

    def tries() -> list[list[str]]:
        return [line for line in tally(stack) if line[1] == one]

    await eventually(lambda: len(tries()) == 3)
    for worker in stack.workers:
        worker.kill()
    await stack.workers[1].restart()
    document = await front.result(one)
    assert (document["status"], document["result"]) == ("SUCCEEDED", {"attempt": 3})
    first, rest, second = tries()[:4], tries()[4:5], tries()[5:]
    assert [line[3] for line in first] == ["1", "2", "3", "3"]
    assert [line[3] for line in second] == ["1", "2", "3"]
    fences = [int(line[4]) for line in tries()]
    assert fences == sorted(fences), "it only rises"
    assert fences[2] < fences[3], "and it does with each claim, so whoever is acted on can tell an old worker"
    keys_of = [{line[0] for line in lines} for lines in (first, rest, second)]
    assert [len(found) for found in keys_of] == [1, 1, 1], (
        "what is done by a state is done under one key, however often"
    )
    assert len(set.union(*keys_of)) == 3, "and another visit is another one"
    assert keys_of[0] == {f"{one}:1:TRYING:1"}


async def test_b25_a_cancel_arrives_although_its_message_is_lost(stack: Stack, front: Front) -> None:
    """Nobody is subscribed when it is published: the next renewal, or the reading after the reconnect, brings it."""
    ids = [await front.send("test.slow", payload={"seconds": 600}) for _ in range(6)]
    for one in ids:
        await eventually(partial(acting, front, one))
    with redis.Redis.from_url(stack.redis_url) as client, client.pipeline(transaction=True) as pipe:
        entry = '{"entry":"cancel","reason":"requested"}'
        pipe.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        for one in ids:
            args = (one, "cancel", "cancel", entry, "requested", 60_000, "null")
            pipe.eval(SCRIPTS["control"].text, 1, keys.prefix(0), *args)
        answers = pipe.execute()
        assert client.pubsub_numsub(keys.wake(0, "default"))[0][1] <= len(stack.workers)
    assert [answer[0] for answer in answers[1:]] == [b"OK"] * len(ids)
    for one in ids:
        document = await front.result(one)
        assert (document["status"], document["reason"]) == ("CANCELLED", "requested")
    assert [line[0] for line in tally(stack)] == ["begin"] * len(ids), "none has run to its end"


async def test_b17_b21_b23_whoever_was_overtaken_by_an_end_stops_and_writes_nothing(stack: Stack, front: Front) -> None:
    """The mission is cancelled and ended by another worker while its first one is frozen in the middle of it."""
    [one] = await in_midst(stack, front, 1)
    for worker in stack.workers:
        worker.freeze()
    (stack.folder / "gate").touch()
    spare = stack.worker()
    await stack.start([spare])
    assert (await front.cancel(one)).status_code == 202
    ended = await front.result(one)
    assert (ended["status"], ended["reason"]) == ("CANCELLED", "requested")
    log = events(stack, one)
    for worker in stack.workers[:2]:
        worker.thaw()
    await eventually(lambda: any(f'"task_id":"{one}"' in line for line in _rejected(stack)))
    assert await front.result(one, wait=0) == ended
    assert events(stack, one) == log
    assert [line[0] for line in tally(stack) if line[1] == one] in (["begin"], ["begin", "end"], ["begin", "begin"])
    assert "CHECKING" not in {line[2] for line in tally(stack) if line[1] == one}, "nothing follows on what was refused"


def _rejected(stack: Stack) -> list[str]:
    lines = [line for part in stack.workers for line in part.tail(10**6).splitlines()]
    return [line for line in lines if '"event":"stale_writes_rejected"' in line]
