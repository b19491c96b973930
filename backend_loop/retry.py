"""How long to wait before the next try, and when there is none. Pure: the dice and the time are handed in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """Retry policy of a state: tries in all, exponential backoff with full jitter between them, and a time for all.

    Args:
        tries: runs of the handler in all, the first included.
        base_s: longest pause after the first failure, seconds; doubles with each further one.
        cap_s: longest pause at all, seconds.
        max_elapsed_s: no try begins later than this after the first one of the visit, seconds; None: any time.
    """

    tries: int = 5
    base_s: float = 0.2
    cap_s: float = 30.0
    max_elapsed_s: float | None = None

    def pause_ms(self, attempt: int, chance: float) -> int:
        """Milliseconds to wait after failed `attempt` (from 1); `chance` in [0, 1) spreads who failed together."""
        longest = min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, 62))
        return round(longest * chance * 1000)

    def spent(self, attempt: int, elapsed_ms: int) -> str | None:
        """Why `attempt` was the last one; None: one more may begin, `elapsed_ms` after the first one did."""
        if attempt >= self.tries:
            return f"try {attempt} of {self.tries}"
        if self.max_elapsed_s is not None and elapsed_ms > self.max_elapsed_s * 1000:
            return (
                f"try {attempt} of {self.tries}; a further one would begin after the {self.max_elapsed_s:g} s for all"
            )
        return None
