"""Times as the contract writes them: RFC 3339, milliseconds, UTC."""

import time
from datetime import UTC, datetime

_second = (-1, "")


def rfc3339(ms: int) -> str:
    """Write epoch milliseconds as ``2026-11-29T16:00:00.123Z``; the text of a second is kept, since it repeats."""
    global _second  # noqa: PLW0603  one cached second, read and written by one thread's hot path
    second, rest = divmod(ms, 1000)
    if _second[0] != second:
        _second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
    return f"{_second[1]}.{rest:03d}Z"


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
