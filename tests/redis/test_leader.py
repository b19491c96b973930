"""Candidates for an office on a real Redis, in one event loop; `tests/processes/test_leader.py` kills processes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis

from shared.clock import boottime
from shared.leader import MARGIN, Leader
from shared.loop import After, Answer, Led, Loop, NoTermError
from shared.redis import Link
from tests.toxic import Toxic
from tests.waiting import eventually, until

TERM_S = 1.5
LONG_S = 600.0
"""A term that no slow machine sees the end of."""


@asynccontextmanager
async def candidate(url: str, term_s: float = TERM_S) -> AsyncIterator[Leader]:
    link = await Link(url, timeout_s=10).open(wait_s=30)
    leader = Leader(link, "audit", term_s)
    campaign = asyncio.create_task(leader.loop.run())
    try:
        yield leader
    finally:
        campaign.cancel()
        await asyncio.wait({campaign})
        await link.close()


def leads(leader: Leader) -> Callable[[], int | None]:
    return leader.term


def record(url: str) -> dict[str, str]:
    with redis.Redis.from_url(url) as client:
        raw: Any = client.hgetall("dl:{s0}:term:audit")
        return {name.decode(): value.decode() for name, value in raw.items()}


async def test_one_of_two_leads_and_keeps_its_term(redis_url: str) -> None:
    async with candidate(redis_url) as a:
        term = await eventually(leads(a))
        async with candidate(redis_url) as b:
            until = boottime() + 2 * TERM_S
            await eventually(lambda: boottime() > until or b.term())
            assert (a.term(), b.term()) == (term, None)
            assert record(redis_url)["holder"] == a.holder


async def test_a_resignation_is_followed_sooner_than_the_term_would_have_ended(redis_url: str) -> None:
    async with candidate(redis_url, LONG_S) as a, candidate(redis_url, LONG_S) as b:
        await eventually(lambda: a.term() or b.term())
        first, second = (a, b) if a.term() else (b, a)
        term = first.term()
        await first.resign()
        assert first.term() is None
        second.loop.wake()  # as the hint of the resignation does
        follows = await eventually(leads(second), within=LONG_S / 10)
        assert term is not None
        assert follows is not None
        assert follows > term
        assert not first.loop.alive or first.loop.stopping, "who resigned campaigns no more"


async def test_who_hears_nothing_leads_no_more_before_another_may(redis_url: str) -> None:
    """Its way to Redis is cut from one moment to the next: its trust ends a margin before its term does."""
    async with Toxic(redis_url) as toxic, candidate(toxic.url) as a:
        await eventually(leads(a))
        toxic.hold()
        until = int(record(redis_url)["until"])
        with redis.Redis.from_url(redis_url) as client:
            seconds, micros = client.time()
        trusted_s, left_s = a._trusted_until - boottime(), until / 1000 - seconds - micros / 1e6
        assert left_s - trusted_s > TERM_S * MARGIN * 0.9
        await eventually(lambda: a.term() is None)
        async with candidate(redis_url) as b:
            await eventually(leads(b))
            assert a.term() is None
        toxic.release()


async def test_who_was_frozen_knows_it_before_its_timers_do(redis_url: str) -> None:
    async def once(_term: int) -> Answer:
        raise AssertionError

    async with candidate(redis_url) as a:
        await eventually(leads(a))
        ends = boottime() + TERM_S
        until(lambda: boottime() > ends)  # the event loop stands still meanwhile, as that of a process that is frozen
        assert a.term() is None
        with pytest.raises(NoTermError):
            await a.hold(once)


async def test_an_answer_that_is_late_is_trusted_from_when_it_was_asked_for(redis_url: str) -> None:
    async with Toxic(redis_url) as toxic, candidate(toxic.url) as a:
        term = await eventually(leads(a))
        asked = boottime()
        toxic.hold()
        a.loop.wake()  # asks, and the question is on its way for longer than a term
        await eventually(lambda: boottime() > asked + TERM_S)
        granted, released = int(record(redis_url)["until"]), boottime()
        toxic.release()
        await eventually(lambda: int(record(redis_url)["until"]) > granted)
        follows = await eventually(leads(a))
        led_from = a._trusted_until - TERM_S * (1 - MARGIN)
        assert led_from > released, "it leads by what it asked for later, not by the late answer"
        assert follows is not None
        assert term is not None
        assert follows > term


async def test_what_runs_under_a_term_is_cut_when_it_ends(redis_url: str) -> None:
    begun, cut = asyncio.Event(), asyncio.Event()

    async def once(_term: int) -> Answer:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()
        return After(0)

    async with Toxic(redis_url) as toxic, candidate(toxic.url) as a:
        loop = Loop("work", Led(a, once), trigger="timed", interval_s=1)
        running = asyncio.create_task(loop.run())
        await asyncio.wait_for(begun.wait(), 60)
        toxic.hold()
        await asyncio.wait_for(cut.wait(), 60)
        assert a.term() is None
        assert loop.state().state == "following"
        with pytest.raises(NoTermError):
            await a.hold(once)
        toxic.release()
        begun.clear()
        await asyncio.wait_for(begun.wait(), 60)  # and it leads again, and works again
        running.cancel()
        await asyncio.wait({running})


async def test_a_refused_term_is_given_up_and_the_next_one_is_new(redis_url: str) -> None:
    async with candidate(redis_url, LONG_S) as a:
        term = await eventually(leads(a))
        assert term is not None
        a.refuse(term - 1)
        assert a.term() == term, "an old refusal is no news"
        a.refuse(term)
        assert a.term() is None
        follows = await eventually(leads(a))
        assert follows is not None
        assert follows > term


async def test_another_process_s_resignation_frees_nothing(redis_url: str) -> None:
    async with candidate(redis_url, LONG_S) as a, candidate(redis_url, LONG_S) as b:
        await eventually(lambda: a.term() or b.term())
        first, second = (a, b) if a.term() else (b, a)
        await second.resign()
        assert record(redis_url)["holder"] == first.holder
        assert first.term() is not None
