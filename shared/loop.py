"""Loops as things of their own: whatever repeats, in either process, is ``once()`` plus the runner below.

A loop answers with values: ``After(seconds)``, ``Idle()`` or ``Done()``. Whoever writes one gets for free that it can
be paused, woken and stopped, that its life is visible, that no exception ends it, and that it never spins.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from shared import logs, telemetry
from shared.clock import now_ms
from shared.loop_life import Declaration, Life, Scale, Snapshot, Trigger

BACKOFF_S = 0.1  # the first pause after a failure is drawn from 0 to this, and doubles
BACKOFF_CAP_S = 30.0


@dataclass(frozen=True, slots=True)
class After:
    """Go again so many seconds from now, sooner if woken. 0: at once, others first."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to do: sleep until woken, at most the loop's interval, counted from where this iteration began."""


@dataclass(frozen=True, slots=True)
class Done:
    """The loop has done all that it was for, and ends."""


Answer = After | Idle | Done


class NoTermError(Exception):
    """Nothing may be done under a term: there is none, or it has ended."""


class Office(Protocol):
    """Who may lead, as a loop sees it: see `shared.leader`."""

    def term(self) -> int | None:
        """The term under which this process leads now; None: it does not."""

    def tell(self, begun: Callable[[], None]) -> None:
        """Call this whenever a term of this process begins."""

    async def hold(self, work: Callable[[int], Awaitable[Answer]]) -> Answer:
        """Do this under the present term, cancelled where it ends; raises `NoTermError` then, and where is none."""


@dataclass(frozen=True, slots=True)
class Led:
    """``once(term)`` of a loop that runs in one process of the fleet: the one that leads in this office."""

    office: Office
    once: Callable[[int], Awaitable[Answer]]


class Clock(Protocol):
    """The time a loop lives by: real, or a test's."""

    def monotonic(self) -> float:
        """Seconds that only rise."""

    def epoch_ms(self) -> int:
        """Wall-clock milliseconds, to be shown."""

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Return when the event is set or the seconds (may be infinite) have passed."""


class SystemClock:
    """The clock of this machine."""

    monotonic = staticmethod(time.monotonic)
    epoch_ms = staticmethod(now_ms)

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Return when the event is set or the seconds (may be infinite) have passed."""
        try:
            async with asyncio.timeout(None if math.isinf(seconds) else seconds):
                await event.wait()
        except TimeoutError:
            pass


def _scale(name: str, once: object, scale: Scale) -> Scale:
    if isinstance(once, Led):
        return "one leader"
    if scale == "one leader":
        raise ValueError(f"loop {name}: one leader needs an office to lead in, so give once as Led(office, once)")
    return scale


class Loop:
    """One loop: its declaration, its controls and its life.

    The controls act within this process, at once, and belong to its event loop; from another thread:
    ``event_loop.call_soon_threadsafe(loop.wake)``.
    """

    def __init__(  # noqa: PLR0913  a declaration: each is named where it is given
        self,
        name: str,
        once: Callable[[], Awaitable[Answer]] | Led,
        *,
        trigger: Trigger,
        interval_s: float | None = None,
        patience_s: float = 10.0,
        vital: bool = True,
        describe: str = "",
        output: str = "",
        on_failure: str = "tried again after a pause that grows from 0.1 s to 30 s",
        scale: Scale = "every process",
        backoff_cap_s: float = BACKOFF_CAP_S,
        clock: Clock | None = None,
        dice: Callable[[], float] = random.random,
    ) -> None:
        """Declare a loop; nothing runs yet.

        Args:
            name: what it is called everywhere, a word or two with a hyphen.
            once: one iteration. Whatever it raises is a failure of this iteration, never of the loop. `Led`: it runs
                only while this process leads, and stops at once where it does not any more.
            trigger: ``woken`` sleeps until ``wake()`` and never longer than the interval, which covers a lost hint;
                ``timed`` goes every interval; ``outside`` waits inside ``once`` for the world, and goes again at once.
            interval_s: the slow poll of ``woken``, the period of ``timed``; ``outside`` has none.
            patience_s: an iteration without a ``beat()`` for longer, or one due for longer, means that it is stuck.
                An ``outside`` loop bounds its own wait below this.
            vital: whether its being stuck, or failing for a minute, makes the process not ready.
            describe: one sentence on what it does.
            output: what it writes, and where to.
            on_failure: what becomes of the work when an iteration fails.
            scale: how many of it run in a fleet; of one that is `Led`, one does.
            backoff_cap_s: longest pause after a failure.
            clock: the time it lives by.
            dice: a number from 0 to 1, for the jitter of pauses after failures.

        Raises:
            ValueError: the interval does not fit the trigger, or would spin; or one leader is wanted and none is named.
        """
        scale = _scale(name, once, scale)
        self._of = Declaration(name, describe, trigger, interval_s, patience_s, output, on_failure, scale, vital)
        self._once, self._clock, self._dice = once, clock or SystemClock(), dice
        self._backoff_cap_s = backoff_cap_s
        self._life = Life(self._of)
        self._nudge = asyncio.Event()  # look again: a control was used
        self._woken = self._done = self._cancelled = False
        if isinstance(once, Led):
            once.office.tell(self._lead)

    @property
    def name(self) -> str:
        """What it is called everywhere."""
        return self._of.name

    @property
    def vital(self) -> bool:
        """Whether its being stuck makes the process not ready."""
        return self._of.vital

    @property
    def alive(self) -> bool:
        """Whether ``run()`` is under way, paused or not."""
        return self._life.alive

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._life.stopping

    def wake(self) -> None:
        """Go at once; during an iteration: once more right after it. A failing loop finishes its pause first."""
        self._woken = True
        self._nudge.set()

    def pause(self) -> None:
        """Begin no further iteration; the one under way ends as it would."""
        self._life.paused = True
        self._nudge.set()

    def resume(self) -> None:
        """Undo ``pause``; what became due meanwhile goes at once."""
        if self._life.paused:
            self._life.paused = False
            self._life.resume(self._clock.monotonic())
            self._nudge.set()

    def stop(self) -> None:
        """End ``run()`` after the iteration under way, if any."""
        self._life.stopping = True
        self._nudge.set()

    def start(self) -> None:
        """Take back a ``stop`` that has not yet ended ``run()``; to run an ended loop again, see ``Loops``."""
        self._life.stopping = False

    def beat(self) -> None:
        """Say from within a long iteration that it is alive."""
        self._life.beat(self._clock.monotonic(), self._clock.epoch_ms())

    def stuck(self, now: float) -> str | None:
        """A sentence if it is stuck at this monotonic time, else None. May be asked from another thread."""
        return self._life.stuck(now)

    def wedged(self, now: float, weather: tuple[type[BaseException], ...]) -> str | None:
        """As `stuck`, but None while it fails by such errors. May be asked from another thread."""
        return self._life.wedged(now, weather)

    def state(self) -> Snapshot:
        """What it is and how it does, now."""
        self._look()
        return self._life.snapshot(self._clock.monotonic())

    async def run(self) -> None:
        """Iterate until done, stopped or cancelled.

        Raises:
            RuntimeError: it runs already.
        """
        if self._life.alive:
            raise RuntimeError(f"loop {self.name} runs already")
        self._life.alive, self._life.stopping, self._done, self._cancelled = True, False, False, False
        self._life.due = self._clock.monotonic()
        runner = asyncio.create_task(self._run(), name=f"loop {self.name} runner")
        try:
            while not runner.done():
                try:
                    await asyncio.wait({runner})
                except asyncio.CancelledError:
                    self._cancelled = True
                    runner.cancel()
            runner.result()
            if self._cancelled:
                raise asyncio.CancelledError
        finally:
            self._life.alive = False

    async def _run(self) -> None:
        """Iterate, in a task of its own: only so can its own cancelling be told from that of what it waits for.

        ``Task.cancelling()`` does not tell: Python 3.11's task groups leave it raised when a child has failed.
        """
        while await self._next():
            await self._iterate()
            self._forget_cancelling()

    async def _next(self) -> bool:
        """Wait for the next iteration; false if there is none. Gives way to others once, whatever was answered."""
        await asyncio.sleep(0)
        while not (self._done or self._life.stopping or self._cancelled):
            left = self._left()
            if left <= 0:
                return True
            self._nudge.clear()
            await self._clock.wait(self._nudge, left)
        return False

    def _lead(self) -> None:
        """A term of this process begins: what became due while it followed goes at once."""
        self._look()
        self._nudge.set()

    def _look(self) -> None:
        """Note whether another process leads."""
        if isinstance(self._once, Led):
            self._life.follow(self._clock.monotonic(), follows=self._once.office.term() is None)

    def _left(self) -> float:
        """Seconds to the next iteration as things stand."""
        self._look()
        if self._life.paused or self._life.follows:
            return math.inf
        if self._woken and not self._life.failures:
            return 0.0
        return self._life.due - self._clock.monotonic()

    async def _iterate(self) -> None:
        self._woken = False
        begun = self._clock.monotonic()
        self._life.begin(begun, self._clock.epoch_ms())
        try:
            count = self._life.iterations
            with logs.bound(loop=self.name, iteration=count), telemetry.loop_span(self.name, count) as span:
                try:
                    answer = await self._call()
                except NoTermError:
                    span.drop()
                    return  # neither a success nor a failure: another process goes on
                if isinstance(answer, Idle):
                    span.drop()
                self._plan(answer, begun)
        except asyncio.CancelledError as stray:
            if self._cancelled:
                raise
            self._fail(stray)  # something it waited for was cancelled, not the loop
        except Exception as error:  # noqa: BLE001  that no exception ends a loop is what this class is for
            self._fail(error)
        else:
            self._life.succeed(self._clock.epoch_ms())
        finally:
            self._life.end(self._clock.monotonic(), self._clock.epoch_ms())

    async def _call(self) -> Answer:
        if isinstance(self._once, Led):
            return await self._once.office.hold(self._once.once)
        return await self._once()

    def _plan(self, answer: Answer, begun: float) -> None:
        match answer:
            case After(seconds):
                limit = self._of.interval_s if self._of.trigger == "woken" and self._of.interval_s else math.inf
                self._life.due = self._clock.monotonic() + max(0.0, min(seconds, limit))
            case Idle():
                self._life.due = begun + (self._of.interval_s or 0.0)
            case Done():
                self._done = True
            case _:
                raise TypeError(f"once() answered {answer!r}; it must say After(seconds), Idle() or Done()")

    def _fail(self, error: BaseException) -> None:
        now = self._clock.monotonic()
        pause_s = self._dice() * min(self._backoff_cap_s, BACKOFF_S * 2.0 ** min(self._life.failures, 20))
        self._life.due = now + pause_s
        self._life.fail(error, now, pause_s)

    def _forget_cancelling(self) -> None:
        """Take back what an iteration left raised, else the next one looks as if it were being cancelled."""
        task = asyncio.current_task()
        while task is not None and task.cancelling() and not self._cancelled:
            task.uncancel()
