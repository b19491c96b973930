"""The runner of loops, on a clock that only the test moves."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest

from shared.loop import After, Answer, Done, Idle, Loop, SystemClock
from shared.loops import Loops
from tests.waiting import eventually

PATIENCE_S = 60.0  # a deadline for what happens at once


class HandClock:
    """Time stands until the test moves it; each sleep of the loop is told to the test."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.naps: asyncio.Queue[float] = asyncio.Queue()
        self._moved = asyncio.Event()

    def monotonic(self) -> float:
        return self.now

    def epoch_ms(self) -> int:
        return int(self.now * 1000)

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        until = self.now + seconds
        self.naps.put_nowait(seconds)
        while not event.is_set() and self.now < until:
            waits = {asyncio.create_task(event.wait()), asyncio.create_task(self._moved.wait())}
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

    async def nap(self) -> float:
        """How long the loop wants to sleep, once it does."""
        return await asyncio.wait_for(self.naps.get(), PATIENCE_S)

    def move(self, seconds: float) -> None:
        self.now += seconds
        self._moved.set()
        self._moved = asyncio.Event()


class Script:
    """Answers in order, errors raised; ``Idle`` when there are no more."""

    def __init__(self, *answers: Answer | BaseException | Callable[[], Awaitable[Answer]]) -> None:
        self.answers = list(answers)
        self.calls = 0

    async def __call__(self) -> Answer:
        self.calls += 1
        answer = self.answers.pop(0) if self.answers else Idle()
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, After | Idle | Done):
            return answer
        return await answer()


@contextlib.asynccontextmanager
async def running(loop: Loop) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(loop.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE_S)
        assert task.done()


async def eventually_ended(loop: Loop) -> None:
    async def ended() -> bool:
        return not loop.alive

    await eventually(ended)


def woken(clock: HandClock, once: Callable[[], Awaitable[Answer]], dice: float = 1.0, interval_s: float = 1.0) -> Loop:
    return Loop("claim", once, trigger="woken", interval_s=interval_s, clock=clock, dice=lambda: dice)


async def test_an_idle_loop_sleeps_until_woken_and_polls_slowly() -> None:
    clock, once = HandClock(), Script()
    loop = woken(clock, once)
    async with running(loop):
        assert await clock.nap() == 1.0
        loop.wake()
        assert await clock.nap() == 1.0
        assert once.calls == 2
        clock.move(1.0)
        await clock.nap()
        assert once.calls == 3


async def test_after_is_counted_from_the_end_of_an_iteration_and_idle_from_its_beginning() -> None:
    clock = HandClock()

    def taking(seconds: float, answer: Answer) -> Callable[[], Awaitable[Answer]]:
        async def once() -> Answer:
            clock.move(seconds)
            return answer

        return once

    loop = woken(clock, Script(taking(0.25, After(0.5)), taking(0.25, Idle())))
    async with running(loop):
        assert await clock.nap() == 0.5
        assert loop.state().duration_s == 0.25
        clock.move(0.5)
        assert await clock.nap() == 0.75


async def test_a_woken_loop_never_sleeps_past_its_slow_poll() -> None:
    clock = HandClock()
    async with running(woken(clock, Script(After(500)))):
        assert await clock.nap() == 1.0


async def test_a_timed_loop_may_sleep_as_long_as_it_says() -> None:
    clock = HandClock()
    async with running(Loop("sweep", Script(After(500)), trigger="timed", interval_s=1, clock=clock)):
        assert await clock.nap() == 500


async def test_a_late_timed_loop_goes_once_not_once_per_missed_period() -> None:
    clock = HandClock()

    async def slow() -> Answer:
        clock.move(35)
        return Idle()

    once = Script(slow)
    async with running(Loop("sweep", once, trigger="timed", interval_s=10, clock=clock)):
        assert await clock.nap() == 10
        assert once.calls == 2


async def test_a_wake_during_an_iteration_is_not_lost() -> None:
    clock = HandClock()
    loop: Loop

    async def wakes_itself() -> Answer:
        loop.wake()
        loop.wake()
        return Idle()

    once = Script(wakes_itself)
    loop = woken(clock, once)
    async with running(loop):
        await clock.nap()
        assert once.calls == 2, "one more iteration for any number of wakes"


async def test_a_loop_with_always_more_to_do_gives_way_to_others() -> None:
    turns = 0

    async def more() -> Answer:
        nonlocal turns
        turns += 1
        return After(0)

    async with running(woken(HandClock(), more)):
        for _ in range(50):
            await asyncio.sleep(0)
    assert 10 < turns <= 51, "it goes at most once per turn of the event loop"


async def test_no_exception_ends_it_and_pauses_grow_with_full_jitter_to_a_cap() -> None:
    clock = HandClock()
    once = Script(*(OSError("away") for _ in range(12)))
    loop = woken(clock, once, dice=0.5)
    naps = []
    async with running(loop):
        for _ in range(12):
            naps.append(await clock.nap())
            assert loop.state().state == "failing"
            clock.move(naps[-1])
        assert await clock.nap() == 1.0
    assert naps == pytest.approx([0.5 * min(30, 0.1 * 2**n) for n in range(12)])
    assert (loop.state().errors, loop.state().failures) == (12, 0)
    assert loop.state().last_error == "OSError: away"


async def test_a_failing_loop_is_not_woken_out_of_its_pause_but_goes_twice_after_it() -> None:
    clock, once = HandClock(), Script(OSError("away"))
    loop = woken(clock, once)
    async with running(loop):
        assert await clock.nap() == pytest.approx(0.1)
        loop.wake()
        assert await clock.nap() == pytest.approx(0.1)
        assert once.calls == 1
        clock.move(0.2)
        await clock.nap()
        assert once.calls == 2, "the wake is served by the try that was due"


async def test_a_failure_is_said_once_then_once_a_minute_and_so_is_the_recovery(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = HandClock()
    loop = woken(clock, Script(*(OSError("away") for _ in range(40))))

    def said() -> list[str]:
        return [record.msg["event"] for record in caplog.records if isinstance(record.msg, dict)]

    async with running(loop):
        while clock.now < 1059:
            clock.move(await clock.nap())
        assert said() == ["fail"]
        while loop.state().failures:
            clock.move(await clock.nap())
    assert 0 < said()[1:].count("fail") < 40
    assert said()[-1] == "recover"


async def test_only_a_bug_shows_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    async with running(woken(clock, Script(OSError("weather"), KeyError("bug")))):
        clock.move(await clock.nap())
        await clock.nap()
    async with running(woken(clock, Script(KeyError("bug")))):
        await clock.nap()
    lines = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert [bool(line["exc_info"]) for line in lines] == [False, True]


async def test_the_error_of_a_task_group_is_told_by_its_cause() -> None:
    clock = HandClock()

    async def grouped() -> Answer:
        async def refuse() -> None:
            raise OSError("refused by redis://:hunter2@db")

        async with asyncio.TaskGroup() as group:
            group.create_task(refuse())
        return Idle()

    once = Script(grouped, grouped)
    loop = woken(clock, once)
    async with running(loop):
        for _ in range(2):  # what Python 3.11 leaves behind after the first must not turn the second into a cancel
            clock.move(await clock.nap())
        assert await clock.nap() == 1.0
    assert once.calls == 3
    assert loop.state().last_error == "OSError: refused by redis://***@db"


async def test_what_a_failed_task_group_leaves_behind_does_not_reach_the_next_iteration() -> None:
    """Python 3.11 leaves ``cancelling()`` raised, by which libraries tell whether they are being cancelled."""
    clock, seen = HandClock(), list[int]()

    async def grouped() -> Answer:
        task = asyncio.current_task()
        assert task is not None
        seen.append(task.cancelling())

        async def refuse() -> None:
            raise OSError("refused")

        async with asyncio.TaskGroup() as group:
            group.create_task(refuse())
        return Idle()

    async with running(woken(clock, Script(grouped, grouped))):
        clock.move(await clock.nap())
        await clock.nap()
    assert seen == [0, 0]


async def test_a_wrong_answer_is_a_failure_that_says_what_to_answer() -> None:
    clock = HandClock()

    async def none() -> None:
        return None

    loop = woken(clock, cast("Any", none))  # that a caller's mistake is told is the point
    async with running(loop):
        await clock.nap()
    assert "must say After(seconds), Idle() or Done()" in str(loop.state().last_error)


async def test_cancelling_ends_it_even_if_the_iteration_turns_it_into_another_error() -> None:
    clock, begun = HandClock(), asyncio.Event()

    async def stubborn() -> Answer:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as cancelled:
            raise OSError("cleaning up failed") from cancelled
        return Idle()

    loop = woken(clock, Script(stubborn))
    async with running(loop) as task:
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE_S)
        assert task.cancelled()
    assert loop.state().state == "stopped"


async def test_the_cancelling_of_something_it_waited_for_is_a_failure_like_any() -> None:
    clock = HandClock()

    async def waits_for_the_cancelled() -> Answer:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future
        return Idle()

    loop = woken(clock, Script(waits_for_the_cancelled))
    async with running(loop):
        clock.move(await clock.nap())
        assert await clock.nap() == 1.0
    assert loop.state().errors == 1


async def test_pause_begins_nothing_and_resume_goes_at_once_with_what_came_due() -> None:
    clock, once = HandClock(), Script()
    loop = woken(clock, once)
    async with running(loop):
        assert await clock.nap() == 1.0
        loop.pause()
        assert await clock.nap() == float("inf")
        assert loop.state().state == "paused"
        loop.wake()
        clock.move(3600)
        assert await clock.nap() == float("inf")
        assert once.calls == 1
        assert loop.stuck(clock.now) is None
        loop.resume()
        assert loop.stuck(clock.now) is None
        assert await clock.nap() == 1.0
        assert once.calls == 2


async def test_stop_ends_it_after_its_iteration_and_done_ends_it_by_itself() -> None:
    clock, once = HandClock(), Script()
    loop = woken(clock, once)
    async with running(loop) as task:
        await clock.nap()
        loop.stop()
        await asyncio.wait_for(task, PATIENCE_S)
    assert (once.calls, loop.state().state) == (1, "stopped")
    last = woken(clock, Script(Done()))
    await asyncio.wait_for(last.run(), PATIENCE_S)
    assert last.state().iterations == 1


async def test_one_loop_runs_once() -> None:
    clock = HandClock()
    loop = woken(clock, Script())
    async with running(loop):
        await clock.nap()
        with pytest.raises(RuntimeError, match="runs already"):
            await loop.run()


async def test_an_iteration_without_sign_of_life_is_stuck_and_a_beat_is_one() -> None:
    clock, begun = HandClock(), asyncio.Event()

    async def hangs() -> Answer:
        begun.set()
        await asyncio.Event().wait()
        return Idle()

    loop = woken(clock, hangs)
    async with running(loop):
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
        assert loop.stuck(clock.now + 10) is None
        assert "no sign of life for 11.0 s" in str(loop.stuck(clock.now + 11))
        clock.move(9)
        loop.beat()
        assert loop.stuck(clock.now + 10) is None
    assert loop.stuck(clock.now + 1000) is None, "an ended loop is not stuck"


async def test_a_due_iteration_that_does_not_begin_is_stuck() -> None:
    clock = HandClock()
    loop = woken(clock, Script())
    async with running(loop):
        await clock.nap()
        assert loop.stuck(clock.now + 11) is None
        assert "the event loop is blocked" in str(loop.stuck(clock.now + 11.5))


async def test_a_loop_that_fails_for_a_minute_counts_as_stuck() -> None:
    clock = HandClock()
    loop = woken(clock, Script(*(OSError("away") for _ in range(40))))
    async with running(loop):
        while clock.now < 1059:
            clock.move(await clock.nap())
            assert loop.stuck(clock.now) is None or clock.now > 1060
        while clock.now < 1062:
            clock.move(await clock.nap())
        await clock.nap()
        assert "last with OSError: away" in str(loop.stuck(clock.now))


async def test_a_snapshot_is_plain_and_tells_the_declaration_too() -> None:
    clock = HandClock()
    loop = Loop(
        "sweep", Script(), trigger="timed", interval_s=2, describe="Ends what is past its deadline.", clock=clock
    )
    async with running(loop):
        await clock.nap()
        told = loop.state().as_dict()
    assert told["describe"] == "Ends what is past its deadline."
    assert (told["trigger"], told["interval_s"], told["scale"]) == ("timed", 2, "every process")
    assert (told["state"], told["iterations"], told["last_success"]) == ("running", 1, 1_000_000)
    assert (told["heartbeat"], told["errors"], told["stuck"]) == (1_000_000, 0, None)


@pytest.mark.parametrize(
    ("trigger", "interval_s"), [("woken", None), ("timed", None), ("timed", 0), ("outside", 1), ("woken", float("nan"))]
)
def test_an_interval_must_fit_the_trigger(trigger: str, interval_s: float | None) -> None:
    with pytest.raises(ValueError, match="loop x"):
        Loop("x", Script(), trigger=cast("Any", trigger), interval_s=interval_s)


async def test_an_outside_loop_goes_again_at_once() -> None:
    once = Script(Idle(), Idle(), Done())
    await asyncio.wait_for(Loop("listen", once, trigger="outside").run(), PATIENCE_S)
    assert once.calls == 3


async def test_the_clock_of_this_machine_wakes_by_event_and_by_time() -> None:
    clock, event = SystemClock(), asyncio.Event()
    begun = clock.monotonic()
    await clock.wait(event, 0.01)
    assert clock.monotonic() - begun >= 0.009
    event.set()
    await asyncio.wait_for(clock.wait(event, float("inf")), PATIENCE_S)


async def test_loops_of_a_process_start_stop_and_start_again_by_name() -> None:
    clock, loops = HandClock(), Loops()
    first = loops.add(woken(clock, Script()))
    with pytest.raises(ValueError, match="two loops are called claim"):
        loops.add(woken(clock, Script()))
    with pytest.raises(RuntimeError, match="cannot be started before"):
        loops.start_one("claim")
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        loops.start(group)
        await clock.nap()
        late = loops.add(Loop("sweep", Script(), trigger="timed", interval_s=7, clock=clock))
        assert await clock.nap() == 7
        assert [told.name for told in loops.snapshot()] == ["claim", "sweep"]
        loops["claim"].stop()
        await eventually_ended(first)
        assert late.alive
        loops.start_one("claim")
        assert await clock.nap() == 1.0
        assert first.state().iterations == 2
        loops.stop()
    assert {told.state for told in loops.snapshot()} == {"stopped"}


async def test_only_vital_loops_make_a_process_stuck() -> None:
    clock, loops = HandClock(), Loops()
    loops.add(woken(clock, Script()))
    loops.add(Loop("tidy", Script(), trigger="timed", interval_s=1, vital=False, clock=clock))
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        loops.start(group)
        await clock.nap()
        await clock.nap()
        assert loops.stuck(clock.now) == []
        [sentence] = loops.stuck(clock.now + 60)
        assert sentence.startswith("loop claim is due for")
        loops.stop()
