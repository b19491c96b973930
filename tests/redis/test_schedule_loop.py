"""Schedules as their leader fires them, step by step on a real Redis: terms, what is sent, and what never spins."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
import redis

from backend_loop.loops import schedules
from backend_loop.loops.schedules import Schedules
from shared import keys
from shared.catalogue import Row
from shared.errors import RedisAwayError
from shared.fleet import Fleet
from shared.loop import After, NoTermError
from shared.redis import Link
from shared.schedules import Plan
from shared.settings import Settings
from tests.redis.scripts_client import HOUR_MS, Verbs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shared.leader import Leader

TERM = 7
ROW = Row(type="t", version=1, payload_schema={}, initial="START", states={"START": {}}, transitions=[])


class Chair:
    """A leader whose term the test decides; only what the loop asks of one."""

    def __init__(self) -> None:
        self.asked, self.until = 0, 10_000
        self.refused: list[int] = []

    def term(self) -> int | None:
        self.asked += 1
        return TERM if self.asked <= self.until else None

    def tell(self, begun: Callable[[], None]) -> None:
        """Of no use here."""

    def refuse(self, term: int) -> None:
        self.refused.append(term)


@pytest.fixture
def shard(redis_url: str) -> "Iterator[Verbs]":
    with redis.Redis.from_url(redis_url) as client:
        yield Verbs(client)


@asynccontextmanager
async def firing(url: str, chair: Chair | None = None, shards: int = 1) -> AsyncIterator[Schedules]:
    link, fleet = await Link(url).open(wait_s=30), Fleet(shards)
    try:
        await fleet.join(link)
        yield Schedules(link, fleet, cast("Leader", chair or Chair()), Settings(shards=shards))
    finally:
        await link.close()


def add(shard: Verbs, *names: str, **more: Any) -> int:
    """Schedules whose instant has just come; the instant."""
    shard.announce(HOUR_MS, {"t@1": ROW.model_dump_json()})
    instant = shard.now()
    for name in names:
        plan = Plan(**({"cron": "0 0 1 1 *", "command": {"type": "t", "payload_version": 1}} | more))
        shard.run("schedule", name, "", plan.model_dump_json(), "", instant, instant, 1_000)
    return instant


def record(shard: Verbs, name: str = "s") -> dict[str, str]:
    return {field.decode(): value.decode() for field, value in shard.redis.hgetall(keys.schedule(name)).items()}


async def test_it_fires_and_then_waits(shard: Verbs, redis_url: str) -> None:
    add(shard, "s")
    async with firing(redis_url) as loop:
        assert await loop._step(TERM) == After(0)
        answer = await loop._step(TERM)
    assert isinstance(answer, After)
    assert answer.seconds > 0
    assert record(shard)["fired"] == "1"
    assert len(shard.redis.keys("*mission:*")) == 1


async def test_more_than_a_batch_goes_on_at_once(shard: Verbs, redis_url: str) -> None:
    names = [f"s{n}" for n in range(schedules.AT_A_TIME + 5)]
    add(shard, *names)
    async with firing(redis_url) as loop:
        assert await loop._step(TERM) == After(0)
        assert await loop._step(TERM) == After(0)
    assert {record(shard, name)["fired"] for name in names} == {"1"}


async def test_what_was_sent_comes_exactly(shard: Verbs, redis_url: str) -> None:
    payload = {"n": 10**30, "text": "客\x00\u202e🙂", "deep": [{"a": None}]}
    command = {"type": "t", "payload": payload, "payload_version": 1, "snapshot": {"n": 2**70}, "mine": [1]}
    add(shard, "s", command=command)
    async with firing(redis_url) as loop:
        await loop._step(TERM)
    mission = shard.record(record(shard)["last_task"])
    envelope = json.loads(mission["envelope"])
    assert (envelope["payload"], envelope["snapshot"], envelope["mine"]) == (payload, {"n": 2**70}, [1])
    assert (envelope["task_id"], envelope["correlation_id"]) == (record(shard)["last_task"],) * 2
    assert mission["lane"] == "normal:default:default"


async def test_the_shard_follows_from_the_target(shard: Verbs, redis_url: str) -> None:
    for n in range(8):
        add(shard, f"s{n}", command={"type": "t", "payload_version": 1, "target": f"light.{n}"})
    async with firing(redis_url, shards=4) as loop:
        await loop._step(TERM)
    for n in range(8):
        task = record(shard, f"s{n}")["last_task"]
        held = [number for number in range(4) if shard.redis.exists(keys.mission(number, task))]
        assert [shard.redis.get(keys.target(number, f"default:light.{n}")) for number in held] == [task.encode()]
    assert len({key[:8] for key in shard.redis.keys("*mission:*")}) > 1


async def test_what_fell_out_of_the_dues_is_fired_nevertheless(shard: Verbs, redis_url: str) -> None:
    names = [f"s{n}" for n in range(schedules.AT_A_TIME + 5)]
    add(shard, *names)
    shard.redis.delete(shard.key("schedule_dues"))
    async with firing(redis_url) as loop:
        await loop._step(TERM)
        await loop._step(TERM)
    assert {record(shard, name)["fired"] for name in names} == {"1"}


async def test_b38_a_refused_term_is_given_back(shard: Verbs, redis_url: str) -> None:
    add(shard, "s")
    shard.run("fire", TERM + 1, "due", 1)
    chair = Chair()
    async with firing(redis_url, chair) as loop:
        with pytest.raises(NoTermError):
            await loop._step(TERM)
    assert chair.refused == [TERM]


@pytest.mark.parametrize("asked", range(4))
async def test_b38_nothing_is_sent_once_the_term_is_over(shard: Verbs, redis_url: str, asked: int) -> None:
    """A process that thaws is in the middle of a step, and asks before each call: due, begin, accept, done."""
    add(shard, "s")
    chair = Chair()
    chair.until = 1 + asked  # after it has mended
    async with firing(redis_url, chair) as loop:
        with pytest.raises(NoTermError):
            await loop._step(TERM)
    assert ("firing" in record(shard)) == (asked in {2, 3})
    assert len(shard.redis.keys("*mission:*")) == (asked == 3)
    async with firing(redis_url) as loop:
        await loop._step(TERM)
    assert record(shard)["fired"] == "1"
    assert len(shard.redis.keys("*mission:*")) == 1


async def begun(shard: Verbs, url: str, misfire: str, calls: int) -> None:
    """A run that its leader has begun, and died after so many calls; nobody came for longer than it may be late."""
    add(shard, "s", misfire=misfire)
    chair = Chair()
    chair.until = 1 + calls
    async with firing(url, chair) as loop:
        with pytest.raises(NoTermError):
            await loop._step(TERM)
    assert "firing" in record(shard)
    late = Plan.model_validate_json(record(shard)["plan"]).model_copy(update={"late_s": 0.000_001})
    shard.redis.hset(keys.schedule("s"), "plan", late.model_dump_json())


async def test_b42_what_was_begun_and_comes_too_late_is_not_sent_any_more(shard: Verbs, redis_url: str) -> None:
    await begun(shard, redis_url, "skip", 2)
    following = record(shard)["next"]
    async with firing(redis_url) as loop:
        assert await loop._step(TERM) == After(0)
        answer = await loop._step(TERM)
    after = record(shard)
    assert not {"firing", "firing_task", "fired", "last"} & after.keys()
    assert after["next"] == following
    assert shard.score("schedule_dues", "s") == float(following)
    assert shard.redis.keys("*mission:*") == []
    assert isinstance(answer, After)
    assert answer.seconds > 0


@pytest.mark.parametrize(("misfire", "calls"), [("skip", 3), ("once", 2), ("all", 2)])
async def test_b42_but_what_was_sent_is_done_and_what_is_made_up_for_is_sent(
    shard: Verbs, redis_url: str, misfire: str, calls: int
) -> None:
    await begun(shard, redis_url, misfire, calls)
    async with firing(redis_url) as loop:
        await loop._step(TERM)
    assert record(shard)["fired"] == "1"
    assert len(shard.redis.keys("*mission:*")) == 1


async def test_what_was_begun_is_whole_whatever_has_become_of_its_schedule(shard: Verbs, redis_url: str) -> None:
    await begun(shard, redis_url, "skip", 2)
    shard.redis.hset(keys.schedule("s"), "plan", "no JSON")
    async with firing(redis_url) as loop:
        await loop._step(TERM)
    assert record(shard)["fired"] == "1"


async def test_what_does_not_get_on_makes_nobody_spin(shard: Verbs, redis_url: str) -> None:
    add(shard, "s", "t")
    shard.redis.hset(keys.schedule("s"), "next", f" {record(shard)['next']}")
    async with firing(redis_url) as loop:
        assert await loop._step(TERM) == After(0), "the other one got on"
        answer = await loop._step(TERM)
    assert isinstance(answer, After)
    assert answer.seconds > 0.5


async def test_what_does_not_fit_any_more_waits_and_is_sent_once_it_does(shard: Verbs, redis_url: str) -> None:
    add(shard, "s")
    strict = ROW.model_copy(update={"payload_schema": {"required": ["n"]}})
    shard.announce(HOUR_MS, {"t@1": strict.model_dump_json()})
    async with firing(redis_url) as loop:
        await loop._step(TERM)
        assert "does not fit t@1 any more" in record(shard)["trouble"]
        assert "firing" not in record(shard)
        shard.announce(HOUR_MS, {"t@1": ROW.model_dump_json()})
        shard.set_score("schedule_dues", "s", 1)
        await loop._step(TERM)
    assert record(shard)["fired"] == "1"
    assert "trouble" not in record(shard)


async def test_what_a_full_redis_does_not_take_is_sent_later(shard: Verbs, redis_url: str) -> None:
    add(shard, "s")
    async with firing(redis_url) as loop:
        await loop._catalogue.refresh(loop._link)
        shard.redis.config_set("maxmemory", 1)
        try:
            with pytest.raises(RedisAwayError):
                await loop._step(TERM)
        finally:
            shard.redis.config_set("maxmemory", 0)
        assert "firing" in record(shard)
        await loop._step(TERM)
    assert record(shard)["fired"] == "1"
    assert len(shard.redis.keys("*mission:*")) == 1
