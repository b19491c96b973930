"""Time that is skipped: an event loop whose clock jumps to the next timer as soon as everything waits for it.

While a handler has a thread at work, or a socket open, nothing is skipped: time flows then as it does outside.
"""

import asyncio
import ctypes
import random
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, Final

from shared.clock import ROUNDING, instead, parse_rfc3339

BEGIN: Final = "2026-01-01T00:00:00.000Z"
"""When a bench's time begins, unless it is told otherwise: a test is to say the same every day."""

PATIENCE: Final = 10_000
"""Turns of the loop in which no time passes: whoever spins longer is given `TURN_S` a turn, so that it is cut."""
TURN_S: Final = 0.001

SEED: Final = 7
"""Of the chance that spreads retries: what a test sees is the same every time."""


class TooLongError(Exception):
    """More time has passed than may."""


class Time:
    """How late it is; stands still unless somebody moves it.

    Args:
        begin: RFC 3339.
        longest_s: how far it may be moved in all.
    """

    def __init__(self, begin: str, longest_s: float) -> None:
        """It is `begin`."""
        self._begin_s, self._longest_s = parse_rfc3339(begin) / 1000, longest_s
        self.passed_s = 0.0

    def epoch_s(self) -> float:
        """Seconds since 1970."""
        return self._begin_s + self.passed_s

    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return int(self.epoch_s() * 1000 + ROUNDING)

    def until(self, ms: int) -> float:
        """Seconds from now to epoch milliseconds; 0 if they have passed."""
        return max(0.0, ms / 1000 - self.epoch_s())

    def pass_(self, seconds: float) -> None:
        """Let so many pass.

        Raises:
            TooLongError: more have passed than may.
        """
        self.passed_s += seconds
        if self.passed_s > self._longest_s:
            raise TooLongError(f"{self.passed_s / 86_400:.0f} days have passed")


class _Selector(selectors.DefaultSelector):
    """Waits by moving the time."""

    def __init__(self, time_: Time, handling: Callable[[], bool]) -> None:
        super().__init__()
        self._time, self._handling, self._turns = time_, handling, 0
        self._working = 0
        self._seen: float | None = None
        """While time flows: up to when it has been counted, on the real clock."""
        self.end: BaseException | None = None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Something goes on beside the loop: time flows, from now on and not only once the loop has come to wait."""
        if not self._working:
            self._seen = time.monotonic()
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.end is not None:
            raise self.end
        if timeout is not None and timeout <= 0:
            self._turns += 1
            if self._turns > PATIENCE:
                self._time.pass_(TURN_S)
            return super().select(0)
        self._turns = 0
        # one of them is that by which the loop wakes itself; the others may be a handler's, kept open
        if self._working or (len(self.get_map()) > 1 and self._handling()):
            return self._really(timeout)
        self._seen = None
        if not (ready := super().select(0)):
            if timeout is None:
                raise AssertionError("everything waits, and nothing is due")
            self._time.pass_(timeout)
        return ready

    def _really(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        seen = time.monotonic() if self._seen is None else self._seen
        ready = super().select(timeout)
        self._seen = time.monotonic()
        self._time.pass_(self._seen - seen)
        return ready


class SkippingLoop(asyncio.SelectorEventLoop):
    """One process' event loop, on time that is skipped."""

    def __init__(self, time_: Time, handling: Callable[[], bool]) -> None:
        """Nothing runs yet; `handling` says whether a handler does."""
        self._skips, self._time = _Selector(time_, handling), time_
        super().__init__(self._skips)

    def time(self) -> float:
        """Seconds since the time began."""
        return self._time.passed_s

    def end(self, why: BaseException) -> None:
        """Run no further than this turn; `why` is raised by `spin`."""
        self._skips.end = self._skips.end or why

    @contextmanager
    def working(self) -> Iterator[None]:
        """Within the block something goes on beside the loop: time flows."""
        with self._skips.working():
            yield

    def run_in_executor(  # type: ignore[override]  # the base's own types differ between releases
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """As ever; time flows while it is at work."""
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        working = self.working()
        working.__enter__()
        future.add_done_callback(lambda _: working.__exit__(None, None, None))
        return future


def spin(loop: SkippingLoop, work: Coroutine[Any, Any, None]) -> None:
    """Run this work in a loop of its own, to its end or that of the loop; the chance in it is always the same.

    Where the loop was ended it is as after a kill -9: nothing of it runs any more, not even to tidy up.

    Args:
        loop: fresh; closed afterwards.
        work: what the process does.

    Raises:
        BaseException: what the work raised, or the loop was ended with.
    """
    chance = random.getstate()
    random.seed(SEED)
    main = loop.create_task(work)
    try:
        with instead(loop._time.epoch_s):  # noqa: SLF001  of this module
            loop.run_until_complete(main)
            _tidied(loop)
    except BaseException:
        for task in asyncio.all_tasks(loop):
            _keep(task)
        raise
    finally:
        random.setstate(chance)
        loop.close()


def _keep(task: asyncio.Task[Any]) -> None:
    """Not even a ``finally`` of it is to run, so it is never collected, nor at the end of this process."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  it is meant to be
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(task))


def _tidied(loop: SkippingLoop) -> None:
    """As `asyncio.run` does at its end."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    with loop.working():
        loop.run_until_complete(loop.shutdown_default_executor())
