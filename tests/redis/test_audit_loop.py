"""The audit as its leader runs it, step by step on a real Redis: passes, recounts, refusals, and broken keys."""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest
import redis

from backend_loop.loops.audit import KEYS_A_STEP, ShardAudit
from backend_loop.loops.recount import Recount
from shared.loop import Idle, NoTermError
from shared.redis import Link
from shared.settings import Settings
from tests.redis.audit import faults, read
from tests.redis.auditing import call
from tests.redis.scripts_client import FAR, New, Verbs
from tests.waiting import eventually

if TYPE_CHECKING:
    from shared.leader import Leader

TERM = 7


class Chair:
    """A leader whose term the test decides; only what the audit asks of one."""

    def __init__(self) -> None:
        self.now: int | None = TERM
        self.refused: list[int] = []

    def term(self) -> int | None:
        return self.now

    def tell(self, begun: Callable[[], None]) -> None:
        """Of no use here."""

    def refuse(self, term: int) -> None:
        self.refused.append(term)
        self.now = None


@pytest.fixture
def shard(redis_url: str) -> Iterator[Verbs]:
    with redis.Redis.from_url(redis_url) as client:
        yield Verbs(client)


@asynccontextmanager
async def auditing(url: str, chair: Chair | None = None) -> AsyncIterator[ShardAudit]:
    link = await Link(url).open(wait_s=30)
    settings = Settings(audit_s=0.001)
    try:
        yield ShardAudit(link, 0, cast("Leader", chair or Chair()), settings)
    finally:
        await link.close()


async def steps(audit: ShardAudit, until: Callable[[], object]) -> None:
    """Step after step, each as the loop makes it, until something has come to pass."""

    async def stepped() -> bool:
        assert await audit._step(TERM) == Idle()
        return bool(until())

    await eventually(stepped, within=30)


def repairs(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    said = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    return [(line["index"], line["task_id"]) for line in said if line["event"] == "repair" and "index" in line]


async def test_a_pass_finds_each_kind_of_damage_and_says_so(
    shard: Verbs, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    shard.accept(New("one"), New("two", target="a:lamp"), New("three", target="a:lamp"))
    shard.redis.zrem(shard.key("lane:normal:default:a"), "one")
    shard.redis.zadd(shard.key("timers"), {"gone": FAR})
    shard.redis.set(shard.key("target:a:fan"), "gone")
    shard.redis.hset(shard.key("counts"), "t|PENDING|START", 99)
    async with auditing(redis_url) as audit:
        await steps(audit, lambda: faults(read(shard.redis)) == [])
    assert set(repairs(caplog)) == {
        ("lane:normal:default:a", "one"),
        ("timers", "gone"),
        ("target:a:fan", "gone"),
        ("counts", "t|PENDING|START"),
    }
    levels = {record.levelname for record in caplog.records if "repair" in str(record.msg)}
    assert levels >= {"WARNING"}


async def test_it_goes_over_more_than_a_step_takes(shard: Verbs, redis_url: str) -> None:
    names = [f"m{n}" for n in range(2 * KEYS_A_STEP)]
    for start in range(0, len(names), 50):
        shard.accept(*(New(name) for name in names[start : start + 50]))
    shard.redis.delete(shard.key("lane:normal:default:a"))
    shard.redis.zadd(shard.key("deadlines"), {f"gone{n}": FAR for n in range(300)})
    async with auditing(redis_url) as audit:
        await audit._step(TERM)
        assert 0 < shard.redis.zcard(shard.key("lane:normal:default:a")) < len(names), "a step is bounded"
        await steps(audit, lambda: faults(read(shard.redis)) == [])


async def test_a_count_is_put_right_while_others_move(shard: Verbs, redis_url: str) -> None:
    """Missions come and go in every step: what moves is never touched, what stands still is put right."""
    for start in range(0, 600, 50):  # so many that a pass takes more than two steps, however keys are spread
        shard.accept(*(New(f"m{start + n}", "quiet") for n in range(50)))
    shard.redis.hset(shard.key("counts"), "quiet|PENDING|START", 3)
    wrong: list[dict[str, int]] = []
    turn = 0

    def churn() -> bool:
        nonlocal turn
        turn += 1
        shard.accept(New(f"busy{turn}"))
        for one in shard.take(slots=2).values():
            if one.type == "t":
                shard.commit("w1", one.write("leave" if turn % 2 else "end", wake_at=1 if turn % 2 else None))
        told = {name: int(number) for name, number in read(shard.redis).get("counts").items()}
        wrong.append(told)
        return told["quiet|PENDING|START"] == 600

    async with auditing(redis_url) as audit:
        await steps(audit, churn)
    assert faults(read(shard.redis)) == []
    assert len(wrong) > 4, "it took two passes"


async def test_a_refused_term_is_given_back(shard: Verbs, redis_url: str) -> None:
    call(shard, "records", term=TERM + 1)
    chair = Chair()
    async with auditing(redis_url, chair) as audit:
        with pytest.raises(NoTermError):
            await eventually(lambda: audit._step(TERM))
        assert chair.refused == [TERM]


async def test_nothing_is_sent_once_the_term_is_over(shard: Verbs, redis_url: str) -> None:
    """A process that thaws is in the middle of a step, and asks before each call."""
    shard.accept(New("one"))
    shard.redis.zrem(shard.key("lane:normal:default:a"), "one")
    chair = Chair()
    chair.now = None
    async with auditing(redis_url, chair) as audit:
        with pytest.raises(NoTermError):
            await audit._step(TERM)
    assert shard.redis.zcard(shard.key("lane:normal:default:a")) == 0
    assert shard.redis.exists(shard.key("terms")) == 0


async def test_what_is_no_index_is_said_once_and_stops_nothing(
    shard: Verbs, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    shard.accept(New("one"))
    shard.redis.set(shard.key("paused"), "no sorted set")
    shard.redis.set(shard.key("mission:absurd"), "no hash")
    shard.redis.zadd(shard.key("timers"), {"gone": FAR})
    shard.redis.zrem(shard.key("lane:normal:default:a"), "one")
    async with auditing(redis_url) as audit:
        for _ in range(2):
            await steps(
                audit, lambda: shard.score("timers", "gone") is None and shard.score("lane:normal:default:a", "one")
            )
            shard.redis.zadd(shard.key("timers"), {"gone": FAR})
    said: list[Any] = [record.msg for record in caplog.records if record.levelno == logging.ERROR]
    assert sorted(line["what"] for line in said) == ["absurd", "paused"]


async def test_a_pass_that_redis_left_begins_anew(shard: Verbs, redis_url: str) -> None:
    """Another server may have other places for its keys: what was counted on the first one means nothing there."""
    for start in range(0, 2 * KEYS_A_STEP, 50):
        shard.accept(*(New(f"m{start + n}") for n in range(50)))
    async with auditing(redis_url) as audit:
        await audit._step(TERM)
        assert audit._recount.missions > 0
        link, ups = audit._link, audit._link.ups
        assert link._transport is not None
        link._transport.abort()
        await eventually(lambda: link.ups > ups)
        counted = audit._recount
        await steps(audit, lambda: audit._recount is not counted)


def test_a_recount_suspects_what_differs_and_counts_it_once() -> None:
    recount = Recount()
    recount.add([("a", "k"), ("b", "k"), ("c", "l")])
    recount.end({"k": 3, "l": 1, "gone": 2})
    assert recount.suspects == {"k", "gone"}
    recount.add([("a", "k"), ("b", "k"), ("a", "k"), ("c", "l")])  # a scan may name a key twice
    assert dict(recount.pairs()) == {"k": 2, "gone": 0}
    recount.end({"k": 2, "l": 1})
    assert recount.suspects == frozenset()
