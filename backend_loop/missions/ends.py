"""What became of missions that acted or looked, as who spawned them tells it: rows, reasons, freshness. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from backend_loop.child_missions import ChildMission

NOT_BEGUN: Final = "not_begun"
"""Outcome of what an earlier failure has kept from beginning."""


def row(said: dict[str, Any], end: ChildMission | None) -> dict[str, Any]:
    """What became of one child: its outcome in one word, what its device showed last, and the error if there is one."""
    if end is None:
        return {**said, "outcome": NOT_BEGUN, "value": None, "error": None, "task_id": None}
    result, error = end.result or {}, end.error
    done = result.get("outcome", "observed") if end.succeeded else error["code"] if error else end.reason
    told = None if error is None else {"code": error["code"], "message": error["message"]}
    return {**said, "outcome": done, "value": result.get("value"), "error": told, "task_id": end.task_id}


def seen_by(ends: Iterable[ChildMission | None], now: int) -> dict[str, Any] | None:
    """The freshness of the oldest observation of all; `verified`: whatever acted has looked after its act.

    Args:
        ends: of missions that have looked or acted; None: one that never began.
        now: epoch ms.
    """
    looked = [end for end in ends if end is not None and end.freshness is not None]
    told = [(_ms(end.freshness["observed_at"]), end.freshness) for end in looked if end.freshness is not None]
    if not told:
        return None
    observed_at, first = min(told, key=lambda one: one[0])
    acted = [end for end in looked if not _only_looked(end)]
    verified = bool(acted) and all(end.freshness is not None and end.freshness["verified"] for end in acted)
    return {**first, "age_ms": max(0, now - observed_at), "verified": verified}


def _ms(instant: str) -> int:
    return round(datetime.fromisoformat(instant).timestamp() * 1000)


def _only_looked(end: ChildMission) -> bool:
    return end.type == "device.query" or (end.result or {}).get("outcome") == "already_done"


def why(end: ChildMission) -> str:
    """Why it did not succeed."""
    return str(end.error["message"] if end.error else end.reason)
