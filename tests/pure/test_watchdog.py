"""When a loop that is stuck ends its process, and when it does not."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from shared.errors import RedisAwayError
from shared.loop import Answer, Loop
from shared.loops import Loops
from shared.redis import ReplyError
from shared.watchdog import WEATHER, Watchdog
from tests.pure.test_loop import HandClock, Script, running, woken
from tests.waiting import until

STUCK_S = 0.08


class Told(Loops):
    """Says of its loops what the test says; counts how often it is asked."""

    def __init__(self, *answers: dict[str, str]) -> None:
        super().__init__()
        self.answers, self.asked = list(answers), 0

    def wedged(self, now: float, weather: tuple[type[BaseException], ...]) -> dict[str, str]:  # noqa: ARG002  as there
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def watching(loops: Told, *, there: Callable[[], bool] = lambda: True) -> tuple[Watchdog, threading.Event]:
    stopped = threading.Event()
    dog = Watchdog(loops, there, STUCK_S, stopped.set, grace_s=60)
    dog.start()
    return dog, stopped


def test_a_loop_that_is_stuck_for_so_long_ends_its_process() -> None:
    loops = Told({"claim": "loop claim is stuck"})
    dog, stopped = watching(loops)
    assert stopped.wait(60)
    assert (dog.fault, loops.asked) == ("loop claim is stuck", 4)
    dog.end()
    dog.join(60)
    assert not dog.is_alive()


def test_one_that_recovers_begins_anew_and_two_are_not_one() -> None:
    claim, sweep = {"claim": "stuck"}, {"sweep": "stuck"}
    loops = Told(claim, claim, claim, {}, claim, claim, claim, sweep, sweep, sweep, {})
    dog, stopped = watching(loops)
    until(lambda: loops.asked > 12)
    dog.end()
    dog.join(60)
    assert (stopped.is_set(), dog.fault) == (False, None)


def test_nobody_is_stuck_while_redis_is_away() -> None:
    asked = []

    def there() -> bool:
        asked.append(1)
        return False

    dog, stopped = watching(Told({"claim": "stuck"}), there=there)
    until(lambda: len(asked) > 8)
    dog.end()
    dog.join(60)
    assert not stopped.is_set()


async def _wedged_after(error: Exception, seconds: float) -> tuple[str | None, str | None]:
    """What it says as a sentence for health, and for the watchdog."""
    clock = HandClock()
    loop: Loop = woken(clock, Script(*(error for _ in range(40))))
    async with running(loop):
        while clock.now < 1000 + seconds:
            clock.move(await clock.nap())
        await clock.nap()
        return loop.stuck(clock.now), loop.wedged(clock.now, WEATHER)


async def test_a_loop_that_fails_for_long_by_a_fault_of_its_own_is_wedged() -> None:
    stuck, wedged = await _wedged_after(KeyError("bug"), 62)
    assert stuck is not None
    assert wedged == stuck


async def test_a_loop_that_redis_refuses_is_not_ready_and_not_wedged() -> None:
    for error in (RedisAwayError("OOM"), ReplyError("WRONGTYPE")):
        stuck, wedged = await _wedged_after(error, 62)
        assert stuck is not None
        assert wedged is None


@pytest.mark.parametrize("vital", [True, False])
async def test_only_vital_loops_end_a_process(*, vital: bool) -> None:
    clock, loops, begun = HandClock(), Loops(), asyncio.Event()

    async def hangs() -> Answer:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    loop = loops.add(Loop("tidy", hangs, trigger="timed", interval_s=1, vital=vital, clock=clock))
    async with running(loop):
        await asyncio.wait_for(begun.wait(), 60)
        assert loops.wedged(clock.now + 9, WEATHER) == {}
        assert set(loops.wedged(clock.now + 11, WEATHER)) == ({"tidy"} if vital else set())
