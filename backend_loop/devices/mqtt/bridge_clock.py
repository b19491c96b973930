"""When something was so, on our own clock, as told by a bridge whose clock is another one. Pure.

How far the two are apart is not known, but the lag from what a report tells to its arrival is: the way, and the
difference of the clocks. The smallest lag of late was that of a report that came at once; who lags more is that late.
"""

from typing import Final

WINDOW_MS: Final = 120_000
"""A lag counts for one to two of these: a bridge whose clock was set back would else seem late for ever."""

TICKS_MS: Final = 1_500
"""What two reports have to be apart to show that a clock runs: one that tells whole seconds is no better than that."""

TICK_MS: Final = 1_005
"""How far their distance may be off, here and there."""


class BridgeClock:
    """What is known of one bridge's clock."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._since = 0
        self._now: int | None = None
        self._before: int | None = None
        self.turns = 0
        """How often it was set back: what it told before is not later than what it tells since."""

    def set_back(self) -> None:
        """It goes on from an earlier time: nothing is known of it any more."""
        self._now = self._before = None
        self.turns += 1

    def ours(self, told_at: int, arrived_at: int) -> int:
        """When it was so on our clock, never later than it arrived; both in epoch milliseconds."""
        lag = arrived_at - told_at
        if arrived_at - self._since >= WINDOW_MS:
            stale = arrived_at - self._since >= 2 * WINDOW_MS
            self._since, self._before, self._now = arrived_at, None if stale else self._now, None
        self._now = lag if self._now is None else min(self._now, lag)
        least = self._now if self._before is None else min(self._now, self._before)
        return told_at + least


class Succession:
    """The order in which one device tells things, by its bridge's clock."""

    def __init__(self, clock: BridgeClock) -> None:
        """It has told nothing yet."""
        self._clock, self._turn = clock, 0
        self.last: int | None = None
        """What it has told so far, by that clock."""
        self._late: tuple[int, int] | None = None

    def overtaken(self, told_at: int, arrived_at: int) -> bool:
        """Whether it has told something later before: then this has come late, or the clock was set back.

        What is late stays so, or comes all at once; only a clock that runs goes on as ours does.
        """
        if self.last is None or self._turn != self._clock.turns or told_at >= self.last:
            self._turn, self.last, self._late = self._clock.turns, told_at, None
            return False
        before, self._late = self._late, (told_at, arrived_at)
        if before is None:
            return True
        passed = arrived_at - before[1]
        if passed < TICKS_MS:
            self._late = before
            return True
        if abs(told_at - before[0] - passed) > TICK_MS:
            return True
        self._clock.set_back()
        self._turn, self.last, self._late = self._clock.turns, told_at, None
        return False
