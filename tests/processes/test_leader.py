"""One process of a fleet leads in the audit, whatever becomes of it; Redis' own MONITOR says who acted when."""

import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.scripts import SCRIPTS
from tests.processes.commands import Front
from tests.processes.restartable import Restartable
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

LEASE_S = 1.5
SLACK_S = 10.0  # what a slow machine adds
RECORD = "dl:{s0}:term:audit"
ENV: dict[str, Any] = {"DUALLOOP_LEASE_S": str(LEASE_S), "DUALLOOP_AUDIT_S": "0.05", "DUALLOOP_REDIS_TIMEOUT_S": "0.5"}


@pytest.fixture
async def stack(server: Restartable, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(server.url, tmp_path, foregrounds=0, workers=3, **ENV) as stack:
        yield stack


class Acts(threading.Thread):
    """The terms under which the audit was called, in the order in which Redis saw it; until its connection is cut."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__(daemon=True)
        self.terms: list[int] = []
        watched: Any = client
        self._monitor = watched.monitor()
        self._monitor.__enter__()

    def run(self) -> None:
        try:
            for command in self._monitor.listen():
                words = command["command"].split(" ", 5)
                if words[0].upper() == "EVALSHA" and words[1] == SCRIPTS["audit"].sha:
                    self.terms.append(int(words[4]))
        except (redis.RedisError, OSError, ValueError, AttributeError):  # its connection was closed under it
            return


@contextmanager
def acts(server: Restartable) -> Iterator[list[int]]:
    with server.client() as client:
        thread = Acts(client)
        thread.start()
        yield thread.terms


def lines(part: Part, word: str) -> list[dict[str, Any]]:
    """What a process has said of the audit's office, in order; there are others."""
    said = (json.loads(line) for line in part.log.read_text().splitlines() if line.startswith("{"))
    return [line for line in said if line["event"] == word and line.get("office", "audit") == "audit"]


def led(part: Part) -> list[int]:
    """The terms that a process has had."""
    return [line["term"] for line in lines(part, "lead")]


def leader(stack: Stack, but: tuple[Part, ...] = (), after: int = 0) -> Part | None:
    """Whose term Redis says it is, a later one than that, once that process has heard of it too."""
    with redis.Redis.from_url(stack.redis_url) as client:
        raw: Any = client.hmget(RECORD, "term", "until")
        seconds, micros = client.time()
    if raw[0] is None or int(raw[0]) <= after or int(raw[1]) < seconds * 1000 + micros // 1000:
        return None
    found = [part for part in stack.workers if part not in but and int(raw[0]) in led(part)]
    return found[0] if found else None


async def follows(stack: Stack, *old: Part) -> Part:
    """Who leads after these."""
    found = await eventually(lambda: leader(stack, old))
    assert found is not None
    return found


def until(stack: Stack) -> float:
    """When the term that Redis knows of is over, in seconds of the epoch."""
    with redis.Redis.from_url(stack.redis_url) as client:
        return float(client.hget(RECORD, "until") or 0) / 1000


def one_at_a_time(stack: Stack, seen: list[int]) -> None:
    """No term is had by two, and what was done under one came before all that was done under the next."""
    had = [term for part in stack.workers for term in led(part)]
    assert len(had) == len(set(had)), "two processes had the same term"
    assert seen == sorted(seen), "one acted after its successor had"
    assert set(seen) <= set(had)
    assert len(set(seen)) > 1


async def acted(seen: list[int], part: Part) -> None:
    """Wait until a process has acted under its latest term."""
    await eventually(lambda: led(part)[-1] in seen)


async def test_kill_9_of_the_leader_is_followed_within_a_term(server: Restartable, stack: Stack) -> None:
    first = await eventually(lambda: leader(stack))
    assert first is not None
    with acts(server) as seen:
        await acted(seen, first)
        ends = until(stack)
        first.kill()
        second = await follows(stack, first)
        came = _seconds(lines(second, "lead")[-1]["at"])
        assert came - ends < SLACK_S, "once the term of the dead one was over"
        await acted(seen, second)
        one_at_a_time(stack, seen)


async def test_a_leader_that_thaws_after_its_successor_came_does_nothing(server: Restartable, stack: Stack) -> None:
    first = await eventually(lambda: leader(stack))
    assert first is not None
    with acts(server) as seen:
        await acted(seen, first)
        first.freeze()
        second = await follows(stack, first)
        await acted(seen, second)
        first.thaw()
        await eventually(lambda: lines(first, "lead no more"))
        second.kill()  # and whoever comes now comes under a new term
        third = await follows(stack, second)
        await acted(seen, third)
        one_at_a_time(stack, seen)


async def test_while_redis_is_away_nobody_leads_and_then_one_does(server: Restartable, stack: Stack) -> None:
    first = await eventually(lambda: leader(stack))
    assert first is not None
    term = led(first)[-1]
    server.kill()
    await eventually(lambda: lines(first, "lead no more"))
    server.start()
    assert await eventually(lambda: leader(stack, after=term))
    had = [one for part in stack.workers for one in led(part)]
    assert len(had) == len(set(had))


async def test_a_frozen_redis_ends_a_term_before_another_may_begin(server: Restartable, stack: Stack) -> None:
    first = await eventually(lambda: leader(stack))
    assert first is not None
    term = led(first)[-1]
    server.freeze()
    await eventually(lambda: lines(first, "lead no more"))
    server.thaw()
    assert await eventually(lambda: leader(stack, after=term))
    had = [one for part in stack.workers for one in led(part)]
    assert len(had) == len(set(had))


async def test_a_clean_stop_hands_the_office_on_at_once(server: Restartable, tmp_path: Path) -> None:
    long_s = 600.0  # a third of it lies between two campaigns, and a slow machine must not come near that
    env = ENV | {"DUALLOOP_LEASE_S": str(long_s)}
    async with running(server.url, tmp_path, foregrounds=0, workers=2, **env) as stack:
        first = await eventually(lambda: leader(stack))
        assert first is not None
        with acts(server) as seen:
            await acted(seen, first)
            assert await first.stop() == 0
            second = await follows(stack, first)
            await acted(seen, second)
            one_at_a_time(stack, seen)
    gave, took = lines(first, "lead no more")[-1], lines(second, "lead")[-1]
    assert gave["why"] == "resigned"
    assert took["term"] > led(first)[-1]
    left, came = (line["at"] for line in (gave, took))
    assert _seconds(came) - _seconds(left) < long_s / 30, "it was told, and did not wait for its next campaign"


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


async def test_b03_p1_a_mission_that_fell_out_of_its_lane_still_ends(server: Restartable, tmp_path: Path) -> None:
    async with running(server.url, tmp_path, **ENV) as stack:
        front = Front(stack.foregrounds[0])
        with server.client() as client:
            await stack.workers[0].stop()
            one, two = [await front.send("test.noop") for _ in range(2)]
            assert client.zrem("dl:{s0}:lane:normal:default:default", one) == 1
            await stack.workers[0].start()
            assert (await front.end(two))["status"] == "SUCCEEDED"
            assert (await front.end(one))["status"] == "SUCCEEDED"
        said = lines(stack.workers[0], "repair")
        assert [(line["level"], line["task_id"], line["done"]) for line in said] == [("warning", one, "put back")]
        await front.client.aclose()


async def test_b08_what_fails_in_the_audit_is_tried_again(server: Restartable, tmp_path: Path) -> None:
    """Redis goes in the middle of it, and comes back: the pass begins anew, and the repair is made."""
    async with running(server.url, tmp_path, **ENV) as stack:
        front = Front(stack.foregrounds[0])
        slow = await front.send("test.patient", payload={"sleep_s": 3600})
        with server.client() as client:
            timers = "dl:{s0}:timers"
            await eventually(lambda: client.zscore(timers, slow))
            server.kill()
            server.start()
            client.zrem(timers, slow)
            await eventually(lambda: client.zscore(timers, slow))
        await front.client.aclose()
