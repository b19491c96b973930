"""A schedule's instant is run exactly once, whatever is killed at that very moment, which Redis' own MONITOR tells."""

import json
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from shared import keys
from shared.clock import rfc3339
from shared.scripts import SCRIPTS
from tests.missions.tally import VARIABLE
from tests.processes.commands import tally
from tests.processes.restartable import Restartable
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

LEASE_S = 1.5
DUES = keys.SCHEDULES.replace("schedules", "schedule_dues")
NOOP = {"type": "test.noop", "payload": {"n": 1}}


@pytest.fixture
async def stack(server: Restartable, tmp_path: Path) -> AsyncIterator[Stack]:
    env: dict[str, Any] = {"DUALLOOP_LEASE_S": str(LEASE_S), "DUALLOOP_REDIS_TIMEOUT_S": "0.5"}
    env[VARIABLE] = str(tmp_path / "tally")
    async with running(server.url, tmp_path, workers=2, **env) as stack:
        yield stack


async def add(stack: Stack, *names: str, **more: Any) -> None:
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False) as client:
        for name in names:
            body = {"name": name, "cron": "0 0 1 1 *", "command": NOOP} | more
            answer = await client.post("/v1/schedules", json=body)
            assert answer.status_code == 201, answer.text


async def look(stack: Stack, name: str) -> dict[str, Any]:
    """Its document, once the front answers: it may have to find its Redis again first."""
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False) as client:

        async def asked() -> httpx.Response | None:
            answer = await client.get(f"/v1/schedules/{name}")
            return answer if answer.status_code == 200 else None

        answer = await eventually(asked)
        assert answer is not None
        return dict(answer.json())


def set_due(server: Restartable, *names: str, in_s: float) -> int:
    """The instant that they wait for is so far ahead; epoch ms."""
    with server.client() as client:
        now: Any = client.time()
        instant: int = now[0] * 1000 + now[1] // 1000 + round(in_s * 1000)
        for name in names:
            client.hset(keys.schedule(name), mapping={"next": instant, "due": instant})
            client.zadd(DUES, {name: instant})
    return instant


def told(part: Part, word: str) -> list[dict[str, Any]]:
    said = (json.loads(line) for line in part.log.read_text().splitlines() if line.startswith("{"))
    return [line for line in said if line["event"] == word]


def leader(stack: Stack) -> Part | None:
    """Who leads in the schedules, as Redis and that process say."""
    with redis.Redis.from_url(stack.redis_url) as client:
        term = client.hget(f"{keys.prefix(0)}term:schedules", "term")
    terms = {
        line["term"]: part for part in stack.workers for line in told(part, "lead") if line["office"] == "schedules"
    }
    return terms.get(int(term)) if term is not None else None


async def fired(server: Restartable, *names: str) -> None:
    """Until each has been fired once."""

    def all_of_them() -> bool:
        with server.client() as client:
            return all(client.hget(keys.schedule(name), "fired") == b"1" for name in names)

    await eventually(all_of_them, 30)


async def ran_once(stack: Stack, server: Restartable, *names: str) -> None:
    """Each has sent one mission, which was run, and there is no other."""
    await fired(server, *names)
    with server.client() as client:
        tasks = {name: (client.hget(keys.schedule(name), "last_task") or b"").decode() for name in names}

        def all_ended() -> bool:
            places = [client.hget(keys.mission(0, task), "status") for task in tasks.values()]
            return places == [b"SUCCEEDED"] * len(names)

        await eventually(all_ended, 30)
        assert len(set(tasks.values())) == len(names)
        assert {
            key.decode() for key in client.keys(f"{keys.mission(0, '*').replace('{', '[{]').replace('}', '[}]')}")
        } == {keys.mission(0, task) for task in tasks.values()}, "no other mission was ever there"
    # a handler that had begun where the leader was killed begins again: what is had once is the mission
    assert {line[1] for line in tally(stack)} == set(tasks.values())


class Moment(threading.Thread):
    """Kills a process the moment Redis has run one command of it: MONITOR tells it."""

    def __init__(self, client: redis.Redis, verb: str, word: str, act: Any) -> None:
        super().__init__(daemon=True)
        self._sha, self._word, self._act = SCRIPTS[verb].sha, word, act
        watched: Any = client
        self._monitor = watched.monitor()
        self._monitor.__enter__()

    def run(self) -> None:
        try:
            for command in self._monitor.listen():
                text = command["command"]
                if self._sha in text and self._word in text:
                    self._act()
                    return
        except (redis.RedisError, OSError, ValueError, AttributeError):  # its connection was closed under it
            return


@pytest.mark.parametrize(
    ("verb", "word"),
    [("fire", " begin s0 "), ("accept", '"schedule"'), ("fire", " done s0 ")],
    ids=lambda text: text.split()[0],
)
async def test_b37_the_leader_is_killed_at_the_minute(server: Restartable, stack: Stack, verb: str, word: str) -> None:
    """After the beginning, after the accept, after the end of one of three runs."""
    names = ("s0", "s1", "s2")
    await add(stack, *names)
    first = await eventually(lambda: leader(stack))
    assert first is not None
    with server.client() as client:
        killer = Moment(client, verb, word, first.kill)
        killer.start()
        instant = set_due(server, *names, in_s=0.3)
        await eventually(lambda: first.running.poll() is not None)
        await ran_once(stack, server, *names)
    assert {(await look(stack, name))["last_fired"]["instant"] for name in names} == {rfc3339(instant)}


async def test_b37_a_restart_within_the_minute_fires_nothing_twice(server: Restartable, stack: Stack) -> None:
    await add(stack, "s")
    await eventually(lambda: leader(stack))
    set_due(server, "s", in_s=0.2)
    await fired(server, "s")
    for worker in stack.workers:
        worker.kill()
    for worker in stack.workers:
        await worker.start()
    await add(stack, "later")
    set_due(server, "later", in_s=0)
    await ran_once(stack, server, "s", "later")


async def test_b38_an_old_leader_that_thaws_fires_nothing(server: Restartable, stack: Stack) -> None:
    await add(stack, "s")
    first = await eventually(lambda: leader(stack))
    assert first is not None
    first.freeze()
    set_due(server, "s", in_s=0)
    await fired(server, "s")
    assert leader(stack) is not first
    first.thaw()
    await eventually(lambda: [line for line in told(first, "lead no more") if line["office"] == "schedules"])
    await ran_once(stack, server, "s")
    assert told(first, "schedule fired") == []


async def test_b38_the_same_instant_from_two_leaders_is_one_mission(server: Restartable, stack: Stack) -> None:
    """The record forgets its run, as if two had read it at once: the id follows from name and instant."""
    await add(stack, "s")
    instant = set_due(server, "s", in_s=0)
    await fired(server, "s")
    with server.client() as client:
        client.hset(keys.schedule("s"), mapping={"next": instant, "due": instant})
        client.hdel(keys.schedule("s"), "fired")
        client.zadd(DUES, {"s": instant})
    await ran_once(stack, server, "s")

    def known() -> list[Any]:
        return [line for part in stack.workers for line in told(part, "schedule fired") if line["known"]]

    [again] = await eventually(known)  # it is said after it was done
    assert again["instant"] == rfc3339(instant)


async def test_b37_a_retired_mission_is_not_run_again(server: Restartable, tmp_path: Path) -> None:
    env: dict[str, Any] = {"DUALLOOP_RETENTION_S": "0.2", VARIABLE: str(tmp_path / "tally")}
    async with running(server.url, tmp_path, **env) as stack:
        await add(stack, "s")
        instant = set_due(server, "s", in_s=0)
        await fired(server, "s")
        task_id = (await look(stack, "s"))["last_fired"]["task_id"]
        with server.client() as client:
            await eventually(lambda: client.exists(keys.used(0, task_id)))
            assert client.pttl(keys.used(0, task_id)) > 6 * 86_400_000, "for days"
            assert not client.exists(keys.mission(0, task_id))
            client.hset(keys.schedule("s"), mapping={"next": instant, "due": instant, "fired": 0})
            client.zadd(DUES, {"s": instant})
        await fired(server, "s")
        assert len(tally(stack)) == 1


async def test_b39_b42_redis_is_away_over_the_instant(server: Restartable, stack: Stack) -> None:
    await add(stack, "s")
    await eventually(lambda: leader(stack))
    instant = set_due(server, "s", in_s=1.0)
    server.kill()
    await eventually(lambda: time.time_ns() // 1_000_000 > instant)
    server.start()
    await ran_once(stack, server, "s")
    assert (await look(stack, "s"))["last_fired"]["instant"] == rfc3339(instant)


async def test_b42_nobody_was_up_for_days_and_a_month_passes_between_instants(
    server: Restartable, stack: Stack
) -> None:
    await add(stack, "monthly", cron="0 0 1 * *")
    for worker in stack.workers:
        worker.kill()
    set_due(server, "monthly", in_s=-40 * 86_400)
    await stack.workers[0].start()
    await ran_once(stack, server, "monthly")
    document = await look(stack, "monthly")
    assert document["last_fired"]["instant"][8:19] == "01T00:00:00", "the newest of those that were missed"
    [missed] = told(stack.workers[0], "schedule missed")
    assert missed["misfire"] == "once"


async def test_many_at_the_same_instant_are_all_sent(server: Restartable, stack: Stack) -> None:
    names = [f"s{n}" for n in range(120)]
    await add(stack, *names)
    set_due(server, *names, in_s=0.2)
    await ran_once(stack, server, *names)
