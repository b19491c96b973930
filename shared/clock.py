"""Times as the contract writes them: RFC 3339, milliseconds, UTC; and the clock for what is trusted for a while."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_instead: Callable[[], float] | None = None
ROUNDING = 1e-3
"""Milliseconds that a sum of seconds may lack of the whole one that is meant."""


@contextmanager
def instead(clock: Callable[[], float]) -> Iterator[None]:
    """Within the block, in all threads, it is as late as `clock` says, epoch seconds: a test kit's skips waiting."""
    global _instead  # noqa: PLW0603  one process, one time
    before, _instead = _instead, clock
    try:
        yield
    finally:
        _instead = before


def boottime() -> float:
    """Seconds since boot, suspend included, where the system tells them; else monotonic seconds."""
    return time.clock_gettime(_BOOT) if _instead is None else _instead()


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
    return time.time_ns() // 1_000_000 if _instead is None else int(_instead() * 1000 + ROUNDING)


def parse_rfc3339(text: str) -> int:
    """Read an RFC 3339 time as epoch milliseconds.

    Raises:
        ValueError: not a time, or without an offset.
    """
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text!r} names no offset from UTC: write 2026-11-29T16:00:00.000Z")
    return round(at.astimezone(UTC).timestamp() * 1000)
