"""How long to wait before the next try. Pure: the dice are handed in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """Retry policy of a state: tries in all, and exponential backoff with full jitter between them.

    Args:
        tries: runs of the handler in all, the first included.
        base_s: longest pause after the first failure, seconds; doubles with each further one.
        cap_s: longest pause at all, seconds.
    """

    tries: int = 5
    base_s: float = 0.2
    cap_s: float = 30.0

    def pause_ms(self, attempt: int, chance: float) -> int:
        """Milliseconds to wait after failed `attempt` (from 1); `chance` in [0, 1) spreads who failed together."""
        longest = min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, 62))
        return round(longest * chance * 1000)
