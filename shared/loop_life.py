"""The life of a loop: what it is, how it does, and when it counts as stuck. No I/O, no clock of its own."""

import math
import traceback
from dataclasses import asdict, dataclass
from typing import Any, Literal

from shared import logs

Trigger = Literal["woken", "timed", "outside"]
Scale = Literal["every process", "one leader", "sharded"]
State = Literal["running", "paused", "following", "failing", "stopped"]

SAY_AGAIN_S = 60.0  # how often a loop that keeps failing says so
FAILING_TOO_LONG_S = 60.0  # a vital loop that has failed for so long makes its process not ready

_BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
_log = logs.get("loop")


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a loop says of itself; see ``Loop`` for the meaning of each."""

    name: str
    describe: str
    trigger: Trigger
    interval_s: float | None
    patience_s: float
    output: str
    on_failure: str
    scale: Scale
    vital: bool

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ValueError: the interval does not fit the trigger, or would spin.
        """
        if (self.interval_s is None) != (self.trigger == "outside"):
            raise ValueError(f"loop {self.name}: woken and timed loops need an interval_s, outside ones have none")
        if self.interval_s is not None and not self.interval_s > 0:
            raise ValueError(f"loop {self.name}: an interval of {self.interval_s} s would spin; give seconds above 0")


@dataclass(frozen=True, slots=True)
class Snapshot(Declaration):
    """What a loop is and how it does, as plain values. Names ending in ``_s`` are seconds, other times epoch ms."""

    state: State
    iterations: int
    errors: int
    failures: int  # in a row, up to now
    last_success: int | None
    last_error: str | None
    duration_s: float | None  # of the last finished iteration
    heartbeat: int | None
    stuck: str | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Life:
    """Counts and times of one loop; written by its runner, read by anybody, also from another thread."""

    def __init__(self, of: Declaration) -> None:
        self._of = of
        self.alive = self.paused = self.stopping = False
        self.follows = False  # another process leads
        self.due = -math.inf  # when the next iteration should begin, monotonic
        self.begun: float | None = None  # when the one under way did
        self.iterations = self.errors = self.failures = 0
        self._beaten = self._failing_since = self._said = -math.inf
        self._last_success: int | None = None
        self._last_error: str | None = None
        self._failed_by: type[BaseException] = BaseException
        self._duration_s: float | None = None
        self._heartbeat: int | None = None

    def beat(self, now: float, epoch_ms: int) -> None:
        """Note a sign of life."""
        self._beaten, self._heartbeat = now, epoch_ms

    def begin(self, now: float, epoch_ms: int) -> None:
        """Note that an iteration begins."""
        self.iterations += 1
        self.begun = now
        self.beat(now, epoch_ms)

    def end(self, now: float, epoch_ms: int) -> None:
        """Note that the iteration is over, well or not."""
        if self.begun is not None:
            self._duration_s = now - self.begun
        self.begun = None
        self.beat(now, epoch_ms)

    def succeed(self, epoch_ms: int) -> None:
        """Note a success, and say so if it ends a row of failures."""
        if self.failures:
            _log.info("recover", loop=self._of.name, failures=self.failures)
        self.failures = 0
        self._last_success = epoch_ms

    def fail(self, error: BaseException, now: float, pause_s: float) -> None:
        """Note a failure; say it at the first of a row, then once in a while."""
        self.errors += 1
        self.failures += 1
        first = self.failures == 1
        if first:
            self._failing_since = now
        leaf = _leaf(error)
        self._failed_by = type(leaf)
        self._last_error = logs.redact(f"{type(leaf).__name__}: {leaf}" if str(leaf) else type(leaf).__name__)
        if first or now - self._said >= SAY_AGAIN_S:
            self._said = now
            _log.warning(
                "fail",
                loop=self._of.name,
                error=self._last_error,
                where=_line(leaf),
                failures=self.failures,
                retry_s=round(pause_s, 3),
                # A bug shows where it is, once; weather (Redis away, a time-out) is a plain line.
                exc_info=error if first and isinstance(leaf, _BUGS) else None,
            )

    def resume(self, now: float) -> None:
        """Forget the time spent paused: it is neither a delay nor a failure."""
        self.due = max(self.due, now)
        self._failing_since = now

    def follow(self, now: float, *, follows: bool) -> None:
        """Note whether another process leads; the time spent following is no delay, and old failures are forgotten."""
        if self.follows and not follows:
            self.failures = 0
            self.resume(now)
        self.follows = follows

    def stuck(self, now: float) -> str | None:
        """A sentence if it is stuck at this monotonic time, else None."""
        name, patience = self._of.name, self._of.patience_s
        begun = self.begun
        if begun is not None and (silent := now - max(begun, self._beaten)) > patience:
            return f"loop {name} has shown no sign of life for {silent:.1f} s"
        if not self.alive or self.paused or self.follows or self.stopping:
            return None
        if begun is None and now - self.due > patience:
            return f"loop {name} is due for {now - self.due:.1f} s and has not begun: the event loop is blocked"
        if self.failures and now - self._failing_since > FAILING_TOO_LONG_S:
            return f"loop {name} fails for {now - self._failing_since:.0f} s, last with {self._last_error}"
        return None

    def wedged(self, now: float, weather: tuple[type[BaseException], ...]) -> str | None:
        """As `stuck`, but None while it fails by such errors, which are not its own and which no restart would end."""
        sentence = self.stuck(now)
        return None if self.begun is None and self.failures and issubclass(self._failed_by, weather) else sentence

    def snapshot(self, now: float) -> Snapshot:
        """What the loop is and how it does, at this monotonic time."""
        state: State = "failing" if self.failures else "running"
        if not self.alive:
            state = "stopped"
        elif self.paused:
            state = "paused"
        elif self.follows:
            state = "following"
        return Snapshot(
            **asdict(self._of),
            state=state,
            iterations=self.iterations,
            errors=self.errors,
            failures=self.failures,
            last_success=self._last_success,
            last_error=self._last_error,
            duration_s=self._duration_s,
            heartbeat=self._heartbeat,
            stuck=self.stuck(now),
        )


def _leaf(error: BaseException) -> BaseException:
    """The error that tells the story: a task group wraps it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _line(error: BaseException) -> str | None:
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    return f"{frames[0].filename}:{frames[0].lineno}" if frames else None
