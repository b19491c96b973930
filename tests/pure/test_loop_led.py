"""A loop of which one runs in a fleet: only under a term, and not a moment longer."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from shared.loop import After, Answer, Idle, Led, Loop, NoTermError
from tests.pure.test_loop import PATIENCE_S, HandClock, Script, running


class Chair:
    """An office whose terms the test gives and takes."""

    def __init__(self) -> None:
        self.now: int | None = None
        self._told: list[Callable[[], None]] = []
        self._task: asyncio.Task[Answer] | None = None

    def term(self) -> int | None:
        return self.now

    def tell(self, begun: Callable[[], None]) -> None:
        self._told.append(begun)

    def give(self, term: int) -> None:
        self.now = term
        for begun in self._told:
            begun()

    def take(self) -> None:
        self.now = None
        if self._task is not None:
            self._task.cancel()

    async def hold(self, work: Callable[[int], Awaitable[Answer]]) -> Answer:
        if self.now is None:
            raise NoTermError
        term = self.now

        async def awaited() -> Answer:
            return await work(term)

        self._task = asyncio.create_task(awaited())
        try:
            return await self._task
        except asyncio.CancelledError:
            raise NoTermError from None


class Once:
    """Notes the terms it runs under; may be told to hang."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.terms: list[int] = []
        self.begun, self.cut, self.hangs = asyncio.Event(), asyncio.Event(), hangs

    async def __call__(self, term: int) -> Answer:
        self.terms.append(term)
        self.begun.set()
        if self.hangs:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cut.set()
                raise
        return Idle()


def led(clock: HandClock, chair: Chair, once: Once) -> Loop:
    return Loop("audit", Led(chair, once), trigger="timed", interval_s=1, clock=clock, dice=lambda: 1.0)


async def test_it_follows_until_a_term_begins_and_then_goes_at_once_under_it() -> None:
    clock, chair, once = HandClock(), Chair(), Once()
    loop = led(clock, chair, once)
    async with running(loop):
        assert await clock.nap() == float("inf")
        clock.move(3600)
        loop.wake()
        assert await clock.nap() == float("inf")
        assert (once.terms, loop.state().state, loop.state().scale) == ([], "following", "one leader")
        assert loop.stuck(clock.now + 1000) is None
        chair.give(7)
        assert await clock.nap() == 1
        assert (once.terms, loop.state().state) == ([7], "running")
        assert loop.stuck(clock.now) is None


async def test_it_begins_nothing_once_the_term_has_ended() -> None:
    clock, chair, once = HandClock(), Chair(), Once()
    loop = led(clock, chair, once)
    chair.give(7)
    async with running(loop):
        assert await clock.nap() == 1
        chair.take()
        assert loop.state().state == "following"
        clock.move(1)
        assert await clock.nap() == float("inf")
        assert once.terms == [7]
        chair.give(9)
        await clock.nap()
        assert once.terms == [7, 9]


async def test_an_iteration_under_way_is_cut_and_is_neither_a_success_nor_a_failure() -> None:
    clock, chair, once = HandClock(), Chair(), Once(hangs=True)
    loop = led(clock, chair, once)
    chair.give(7)
    async with running(loop):
        await asyncio.wait_for(once.begun.wait(), PATIENCE_S)
        chair.take()
        assert await clock.nap() == float("inf")
        told = loop.state()
    assert once.cut.is_set()
    assert (told.errors, told.last_success, told.iterations, told.state) == (0, None, 1, "following")


async def test_failures_of_an_earlier_term_are_forgotten() -> None:
    clock, chair = HandClock(), Chair()
    script = Script(OSError("away"))

    async def once(_term: int) -> Answer:
        return await script()

    loop = Loop("audit", Led(chair, once), trigger="timed", interval_s=1, clock=clock, dice=lambda: 1.0)
    chair.give(7)
    async with running(loop):
        assert await clock.nap() == pytest.approx(0.1)
        assert loop.state().state == "failing"
        chair.take()
        clock.move(3600)
        assert await clock.nap() == float("inf")
        assert loop.stuck(clock.now) is None
        chair.give(8)
        assert loop.stuck(clock.now) is None
        assert await clock.nap() == 1
        assert loop.state().state == "running"


async def test_a_wrong_answer_under_a_term_is_a_failure_like_any() -> None:
    clock, chair = HandClock(), Chair()

    async def once(_term: int) -> Answer:
        raise OSError("away")

    loop = Loop("audit", Led(chair, once), trigger="timed", interval_s=1, clock=clock, dice=lambda: 1.0)
    chair.give(7)
    async with running(loop):
        await clock.nap()
        assert loop.state().errors == 1


def test_one_leader_needs_an_office() -> None:
    async def once() -> Answer:
        return After(1)

    with pytest.raises(ValueError, match=r"give once as Led\(office, once\)"):
        Loop("audit", once, trigger="timed", interval_s=1, scale="one leader")
