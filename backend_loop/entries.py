"""Entries of a mission's inbox, as the machine knows them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

from backend_loop.children import Child
from backend_loop.outcomes import (
    Cancel,
    ChildEnded,
    Complete,
    Deadline,
    Happened,
    Pause,
    Resume,
    Signal,
    Skip,
)
from shared.logs import get
from shared.status import Reason, Status

log = get(__name__)

INTERRUPTS: Final = (Cancel, Deadline, Skip, Complete)
"""What cuts a running handler short; other entries are reacted to at its next commit."""

INTERRUPTS_AN_UNDO: Final = (Complete,)
"""What cuts a running undo short: nothing that it does not react to anyway."""

_SIGNALS: Final[Mapping[str, Callable[[Mapping[str, Any]], Signal]]] = {
    "cancel": lambda entry: Cancel(Reason(entry.get("reason", Reason.REQUESTED)), entry.get("by"), entry.get("note")),
    "deadline": lambda _: Deadline(),
    "event": lambda entry: Happened(entry["event"], entry.get("data") or {}),
    "child": lambda entry: ChildEnded(_child(entry)),
    "pause": lambda entry: Pause(entry.get("by")),
    "resume": lambda entry: Resume(entry.get("by")),
    "skip": lambda entry: Skip(entry["state"], entry.get("by"), entry.get("note")),
    "complete": lambda entry: Complete(entry.get("result"), entry.get("by"), entry.get("note")),
}


def _child(entry: Mapping[str, Any]) -> Child:
    status, error = Status(entry["status"]), entry.get("error")
    if not status.terminal or not isinstance(error, dict | None):
        raise ValueError(f"no end: {status}, {error!r}")
    end = Child(entry["task_id"], entry["type"], entry.get("name"), "", 0, 0, entry["run"])
    end = end._replace(status=status, error=error, reason=entry.get("reason"), freshness=entry.get("freshness"))
    return end._replace(result=entry.get("result"), size=int(entry.get("size", 0)))


def read(raw: bytes) -> Signal | None:
    """The signal; None, and a line in the log: of a later release that is not known here, or damaged."""
    try:
        entry = from_json(raw)
        return _SIGNALS[entry["entry"]](entry)
    except (ValueError, KeyError, TypeError, AttributeError):
        log.exception("inbox entry ignored", entry=to_json(raw.decode(errors="replace")).decode()[:200])
        return None
