"""Redis' time on this machine's clock that runs through suspend, so that no other clock decides anything."""

from shared.clock import boottime

__all__ = ["RedisClock", "boottime"]


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
