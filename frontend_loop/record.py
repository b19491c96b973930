"""A mission's record as a process of any release may have left it: what is damaged is still shown."""

import math
from collections.abc import Mapping
from typing import Final

from shared.clock import rfc3339

LATEST: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: beyond it no time can be shown, and no number of ours is."""

NUMBERS: Final = frozenset(
    {
        *("created_at", "started_at", "ready_at", "wake_at", "parked_at", "paused_at", "deadline", "progress_at"),
        *("order", "version", "run", "key_run", "deaths", "solo_deaths", "fence", "rev", "seq", "unread"),
    }
)
"""Fields that hold whole numbers."""

Record = Mapping[str, str]


def readable(fields: Mapping[str, bytes | None]) -> dict[str, str]:
    """Fields as they come out of Redis; those that hold numbers as `int` reads them, absent ones left out."""
    return {name: sane(name, value.decode(errors="replace")) for name, value in fields.items() if value is not None}


def sane(name: str, text: str) -> str:
    """A number as `int` reads it, whoever wrote it; all else as it is."""
    return str(whole(text)) if text and name in NUMBERS else text


def whole(text: str) -> int:
    """The number that a text holds, cut to what can be shown; 0 if it holds none."""
    try:
        number = float(text)
    except ValueError:
        return 0
    return 0 if math.isnan(number) else int(min(max(number, 0), LATEST))


def number(record: Record, name: str, default: int = 0) -> int:
    """A field that holds a number."""
    return int(record.get(name) or default)


def ms(record: Record, name: str) -> int | None:
    """A field that holds a time, epoch milliseconds; None: it is not set."""
    return int(record[name]) if record.get(name) else None


def instant(at_ms: int | None) -> str | None:
    """A time, epoch milliseconds, as it is shown."""
    return None if at_ms is None else rfc3339(at_ms)


def target(record: Record) -> str | None:
    """The target without its tenant."""
    return record.get("target", "").partition(":")[2] or None


def priority(record: Record) -> str:
    """Its own one, whatever it inherits from those who wait behind it."""
    return record.get("base") or record.get("lane", "").partition(":")[0]


def pool(record: Record) -> str:
    """The pool in which it waits for a worker."""
    return record.get("lane", "").partition(":")[2].partition(":")[0]
