"""When something was so, on our own clock, as told by a bridge whose clock is another one. Pure.

How far the two are apart is not known, but the lag from what a report tells to its arrival is: the way, and the
difference of the clocks. The smallest lag of late was that of a report that came at once; who lags more is that late.
"""

from typing import Final

WINDOW_MS: Final = 120_000
"""A lag counts for one to two of these: a bridge whose clock was set back would else seem late for ever."""


class BridgeClock:
    """What is known of one bridge's clock."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._since = 0
        self._now: int | None = None
        self._before: int | None = None

    def ours(self, told_at: int, arrived_at: int) -> int:
        """When it was so on our clock, never later than it arrived; both in epoch milliseconds."""
        lag = arrived_at - told_at
        if arrived_at - self._since >= WINDOW_MS:
            stale = arrived_at - self._since >= 2 * WINDOW_MS
            self._since, self._before, self._now = arrived_at, None if stale else self._now, None
        self._now = lag if self._now is None else min(self._now, lag)
        least = self._now if self._before is None else min(self._now, self._before)
        return told_at + least
