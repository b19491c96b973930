"""How far a mission is, how fast it goes and how long it will take, in words, from what it told. Pure."""

from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from frontend_loop.progress import Progress, amount, of
from frontend_loop.why import lasting, one_line

APART_S: Final = 1.0
MOST: Final = 60
"""The pace is that of so many values, each told so much later than the one before it."""

UNITS: Final = ((1, "s"), (60, "min"), (3600, "h"), (86_400, "d"))

LONGEST_S: Final = 30 * 86_400.0
"""What will take longer is not foretold."""


class Told(NamedTuple):
    """A value, and when it was told, epoch seconds."""

    at: float
    done: float


class Pace:
    """Takes the frames of one mission; knows the newest progress and its pace.

    Attributes:
        newest: None before the first one.
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.newest: Progress | None = None
        self._told: deque[Told] = deque(maxlen=MOST)
        self._last: Told | None = None
        self._state = ""

    def take(self, frame: Mapping[str, Any]) -> Progress | None:
        """The progress that a frame tells, if it is legible; another state, or a step back, begins anew."""
        if (progress := of(frame.get("progress"))) is None:
            return None
        self.newest = progress
        if frame["state"] != self._state or (self._last is not None and progress.done < self._last.done):
            self._told.clear()
            self._last, self._state = None, frame["state"]
        if (at := _seconds(frame.get("at"))) is None:
            return progress
        self._last = Told(at, progress.done)
        if not self._told or at - self._told[-1].at >= APART_S:
            self._told.append(self._last)
        return progress

    @property
    def rate(self) -> float | None:
        """So much is done in a second; None: that cannot be told."""
        if self._last is None or self._last.at <= self._told[0].at:
            return None
        return (self._last.done - self._told[0].done) / (self._last.at - self._told[0].at) or None

    @property
    def left_s(self) -> float | None:
        """Seconds until all is done, if it goes on like this; None: that cannot be told."""
        if self.newest is None or self.newest.total is None or self.rate is None:
            return None
        left = (self.newest.total - self.newest.done) / self.rate
        return left if 0 < left < LONGEST_S else None

    def words(self) -> str:
        """``850/s, 1 min 43 s left``; empty where nothing can be told."""
        left = "" if self.left_s is None else f"{span(max(1, round(self.left_s)))} left"
        return ", ".join(part for part in (_speed(self.rate), left) if part)


def line(progress: Progress, pace: str = "") -> str:
    """``12,000 of 100,000 (12 %), 850/s, 1 min 43 s left: cleaning rows``."""
    figures = ", ".join(part for part in (progress.figures(), pace) if part)
    return ": ".join(part for part in (figures, one_line(progress.message)) if part)


def short(progress: Progress | None) -> str:
    """For a column: ``12 %``, without a total ``12,000``."""
    return "" if progress is None or not progress.figures() else progress.percent or amount(progress.done)


def span(seconds: int) -> str:
    """Whole seconds as one would say them."""
    return f"{seconds} s" if seconds < 10 else lasting(1000 * seconds)


def _speed(rate: float | None) -> str:
    if rate is None:
        return ""
    seconds, unit = next((unit for unit in UNITS if rate * unit[0] >= 1), UNITS[-1])
    return f"{amount(rate * seconds)}/{unit}"


def _seconds(at: Any) -> float | None:
    try:
        return datetime.fromisoformat(at).timestamp()
    except (TypeError, ValueError):
        return None
