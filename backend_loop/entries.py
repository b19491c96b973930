"""Entries of a mission's inbox, as the machine knows them."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

from backend_loop.outcomes import Cancel, Complete, Deadline, Happened, Pause, Resume, Signal, Skip
from shared.logs import get
from shared.status import Reason

log = get(__name__)

INTERRUPTS: Final = (Cancel, Deadline, Skip, Complete)
"""What cuts a running handler short; other entries are reacted to at its next commit."""


def read(entry: bytes) -> Signal | None:
    """The signal; None, and a line in the log: of a later release that is not known here, or damaged."""
    try:
        content: Mapping[str, Any] = from_json(entry)
        by, note = content.get("by"), content.get("note")
        match content.get("entry"):
            case "cancel":
                return Cancel(Reason(content.get("reason", Reason.REQUESTED)))
            case "deadline":
                return Deadline()
            case "event":
                return Happened(content["event"], content.get("data") or {})
            case "pause":
                return Pause(by)
            case "resume":
                return Resume(by)
            case "skip":
                return Skip(content["state"], by, note)
            case "complete":
                return Complete(content.get("result"), by, note)
    except (ValueError, KeyError, AttributeError):
        pass
    log.error("inbox entry ignored", entry=to_json(entry.decode(errors="replace")).decode()[:200])
    return None
