"""What a worker and its child say to each other: frames of four bytes of length and JSON; never a pickle.

The worker says ``{"load": …}``, then ``{"run": …}``; the child answers ``{"ready": true}`` or ``{"broken": sentence}``,
asks ``{"check": true}`` or ``{"checkpoint": context}`` (answered by ``{"go": ""}``, or a word that says why not), tells
``{"progress": [done, total, message]}``, and in the end gives ``outcome``, ``returned`` (something else) or ``refused``
(that word), with ``context`` and, of what was raised, the ``traceback``. Progress that was not told yet comes
along with any frame.
"""

import dataclasses
import struct
from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

from backend_loop.outcomes import Fail, Go, Outcome, Retry, Sleep, Stop, WaitFor, WaitForChildren
from shared.status import ErrorCode, Reason

HEAD: Final = struct.Struct(">I")
Frame = Mapping[str, Any]
ENDS: Final = frozenset({"outcome", "returned", "refused"})
"""A frame with one of these is the last one of a handler."""

_OUTCOMES: Final = (Go, Fail, Retry, Sleep, WaitFor, WaitForChildren, Stop)
_KINDS: Final[Mapping[str, Any]] = {kind.__name__: kind for kind in _OUTCOMES}


def pack(frame: Frame) -> bytes:
    """Length and JSON.

    Raises:
        PydanticSerializationError, ValueError: JSON cannot carry it.
    """
    body = to_json(frame, inf_nan_mode="null")
    return HEAD.pack(len(body)) + body


def unpack(body: bytes) -> Frame:
    """The content of a frame whose length was read."""
    frame: Frame = from_json(body)
    return frame


def told(outcome: Outcome | None) -> dict[str, Any] | None:
    """An outcome as a frame has it; an undo may return nothing."""
    if outcome is None:
        return None
    fields = {field.name: getattr(outcome, field.name) for field in dataclasses.fields(outcome)}
    return {"kind": type(outcome).__name__, "fields": fields}


def heard(document: Frame) -> Outcome:
    """The outcome that was told.

    Raises:
        KeyError, TypeError, ValueError: it was none.
    """
    fields = dict(document["fields"])
    if "code" in fields:
        fields["code"] = ErrorCode(fields["code"])
    if "reason" in fields:
        fields["reason"] = Reason(fields["reason"])
    if "errors" in fields:
        fields["errors"] = tuple(fields["errors"])
    outcome: Outcome = _KINDS[document["kind"]](**fields)
    return outcome
