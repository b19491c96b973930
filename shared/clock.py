"""Times as the contract writes them: RFC 3339, milliseconds, UTC; and the clock for what is trusted for a while."""

import time
from datetime import UTC, datetime
from functools import lru_cache

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Seconds since boot, suspend included, where the system tells them; else monotonic seconds."""
    return time.clock_gettime(_BOOT)


def rfc3339(ms: int) -> str:
    """Write epoch milliseconds as ``2026-11-29T16:00:00.123Z``."""
    second, rest = divmod(ms, 1000)
    return f"{_to_second(second)}.{rest:03d}Z"


@lru_cache(64)
def _to_second(second: int) -> str:
    """Kept, since it repeats: a busy process writes this second and that of its deadlines again and again."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))


def now_ms() -> int:
    """Wall-clock epoch milliseconds of this machine; never used to decide what Redis' own TIME decides."""
    return time.time_ns() // 1_000_000


def parse_rfc3339(text: str) -> int:
    """Read an RFC 3339 time as epoch milliseconds.

    Raises:
        ValueError: not a time, or without an offset.
    """
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text!r} names no offset from UTC: write 2026-11-29T16:00:00.000Z")
    return round(at.astimezone(UTC).timestamp() * 1000)
