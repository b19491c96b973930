"""How old an answer is, as a result says it."""

from collections.abc import Iterable
from typing import Any

from backend_loop.devices.protocol import Reading
from shared.clock import now_ms, rfc3339


def freshness(reading: Reading, *, verified: bool) -> dict[str, Any]:
    """The observation behind a result; `verified`: it was made after an act, and is newer than that."""
    return {
        "observed_at": rfc3339(reading.observed_at),
        "age_ms": max(0, now_ms() - reading.observed_at),
        "verified": verified,
        "source": reading.source,
        "version": reading.version,
    }


def oldest(readings: Iterable[Reading]) -> dict[str, Any] | None:
    """Of what rests on all of these looks; None: there was none."""
    reading = min(readings, key=lambda one: one.observed_at, default=None)
    return None if reading is None else freshness(reading, verified=False)
