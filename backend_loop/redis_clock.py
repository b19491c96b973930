"""Redis' time on this machine's clock that runs through suspend, so that no other clock decides anything."""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Seconds since boot, suspend included, where the system tells them; else monotonic seconds."""
    return time.clock_gettime(_CLOCK)


class RedisClock:
    """What Redis' TIME is now; ahead of it by an answer's way at most, so a deadline is rather early than late."""

    def __init__(self) -> None:
        """Unset: `set` it with the first answer."""
        self._offset_ms = 0.0

    def set(self, redis_ms: int, sent_at: float) -> None:
        """Redis said `redis_ms` to what was sent at boot time `sent_at`, seconds."""
        self._offset_ms = redis_ms - sent_at * 1000

    def now_ms(self) -> int:
        """Epoch milliseconds by Redis' clock."""
        return round(boottime() * 1000 + self._offset_ms)
