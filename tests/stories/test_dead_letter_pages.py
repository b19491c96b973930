"""Pages of dead letters over several shards, from keys as the scripts leave them: order, ties, what comes and goes."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis

from frontend_loop.bodies import Fitting
from frontend_loop.dead_letters import DeadLetters
from shared import keys
from shared.errors import Problem
from shared.fleet import Fleet
from shared.redis import Link

SHARDS, T0 = 3, 1_790_000_000_000
ALL = Fitting()


class Morgue:
    """Dead letters made up, and a walk over them."""

    def __init__(self, server: redis.Redis, fleet: Fleet, link: Link) -> None:
        self.server, self.fleet, self.letters = server, fleet, DeadLetters(link, fleet)

    def bury(self, shard: int, at: int, code: str = "permanent") -> str:
        task_id = self.fleet.ids.new(shard, at)
        fields = {"type": "test.noop", "version": 1, "status": "FAILED", "state": "FAILED", "place": "ended"}
        more = {"lane": "normal:default:default", "created_at": at - 9, "deadline": at + 9, "failed_in": "WORKING"}
        self.server.hset(keys.mission(shard, task_id), mapping=fields | more)
        last = f'{{"seq":1,"at":"","status":"FAILED","state":"FAILED","data":{{"code":"{code}"}}}}'
        self.server.rpush(keys.log(shard, task_id), last)
        self.server.zadd(keys.dead_letters(shard), {task_id: at})
        return task_id

    async def walk(self, limit: int, fitting: Fitting = ALL) -> list[str]:
        told: list[str] = []
        cursor: str | None = None
        while True:
            page = await self.letters.page(fitting, cursor, limit)
            told += [row["task_id"] for row in page.rows]
            assert len(page.rows) <= limit
            if (cursor := page.cursor) is None:
                return told


@pytest.fixture
async def morgue(redis_url: str) -> AsyncIterator[Morgue]:
    link, fleet = Link(redis_url, timeout_s=30), Fleet(SHARDS)
    await link.open(wait_s=30)
    await fleet.join(link)
    with redis.Redis.from_url(redis_url) as server:
        yield Morgue(server, fleet, link)
    await link.close()


async def test_all_are_told_once_the_newest_first(morgue: Morgue) -> None:
    chance = random.Random(1)
    buried = {morgue.bury(chance.randrange(SHARDS), at): at for at in (T0 + chance.randrange(100) for _ in range(230))}
    order = sorted(buried, key=lambda task_id: (buried[task_id], task_id), reverse=True)
    for limit in (1, 33, 200):
        assert await morgue.walk(limit) == order, limit


async def test_more_may_end_in_one_millisecond_than_a_page_has(morgue: Morgue) -> None:
    buried = {morgue.bury(n % SHARDS, T0) for n in range(1_000)}
    told = await morgue.walk(150)
    assert (len(told), set(told)) == (1_000, buried)


async def test_a_call_looks_at_so_many_and_goes_on_by_its_cursor(morgue: Morgue) -> None:
    for n in range(2_500):
        morgue.bury(n % SHARDS, T0 + n)
    rare = morgue.bury(0, T0 - 1, code="timeout")
    fitting = Fitting.model_validate({"code": "timeout"})
    first = await morgue.letters.page(fitting, None, 50)
    assert (first.rows, first.cursor is None) == ([], False)
    assert await morgue.walk(50, fitting) == [rare]


async def test_what_is_replayed_or_comes_anew_meanwhile_disturbs_no_walk(morgue: Morgue) -> None:
    buried = [morgue.bury(n % SHARDS, T0 + n) for n in range(60)][::-1]
    first = await morgue.letters.page(ALL, None, 20)
    told = [row["task_id"] for row in first.rows]
    for task_id in told:  # as a bulk does between two pages
        shard = morgue.fleet.ids.read(task_id)
        assert shard is not None
        morgue.server.zrem(keys.dead_letters(shard.shard), task_id)
    morgue.bury(1, T0 + 500)  # one of them has failed again
    cursor = first.cursor
    while cursor is not None:
        page = await morgue.letters.page(ALL, cursor, 20)
        told += [row["task_id"] for row in page.rows]
        cursor = page.cursor
    assert told == buried


async def test_damaged_keys_are_passed_over(morgue: Morgue) -> None:
    good = morgue.bury(0, T0)
    bad = [morgue.bury(0, T0 + n + 1) for n in range(4)]
    morgue.server.zadd(keys.dead_letters(0), {"no id of ours" * 9: T0 + 9, "x": "+inf"})
    morgue.server.zadd(keys.dead_letters(0), {b"\xff": T0 + 10})
    morgue.server.delete(keys.mission(0, bad[0]), keys.log(0, bad[1]))
    morgue.server.hset(keys.mission(0, bad[2]), mapping={"created_at": "soon", "version": "nan", "run": "1e999"})
    morgue.server.delete(keys.mission(0, bad[3]))
    morgue.server.rpush(keys.mission(0, bad[3]), "no record")
    assert await morgue.walk(2) == [bad[2], bad[1], good]


@pytest.mark.parametrize("cursor", ["", "x", "é", "AAAA", "W10", "WzEsMl0", "WyJhIiwiYiJd", "WzFlOTk5LCAiYiJd"])
async def test_a_cursor_that_is_none_is_refused(morgue: Morgue, cursor: str) -> None:
    with pytest.raises(Problem) as refused:
        await morgue.letters.page(ALL, cursor, 10)
    shown: dict[str, Any] = refused.value.document()
    assert shown["errors"][0]["pointer"] == "/cursor"
