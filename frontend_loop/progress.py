"""How far a mission says it is: its handler's newest word, as a record or a hint has it. Pure.

``{"done": 3, "total": 4, "message": "…"}``; total and message may be null, done has the unit that the handler chose.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeGuard

from pydantic_core import from_json, to_json

VALUE: Final = b',"progress":'
"""What stands before the value in a line; it comes last, and no text in JSON can hold these bytes."""

_AT: Final = b',"at":"'
_MOST: Final = 1e15
"""Beyond it a float no longer counts by ones: nothing that was counted is so large."""


@dataclass(frozen=True, slots=True)
class Progress:
    """So much is `done`, of so much in all, and what is being done."""

    done: float
    total: float | None = None
    message: str | None = None

    def document(self) -> dict[str, Any]:
        """As the contract has it."""
        return asdict(self)

    @property
    def share(self) -> float | None:
        """From 0 to 1, or beyond where more came than was announced; None: it is not known how much there is in all."""
        return self.done / self.total if self.total else None

    @property
    def percent(self) -> str:
        """``12 %``, never 100 before all is done; empty: it is not known how much there is in all."""
        return "" if self.share is None else f"{math.floor(100 * self.share)} %"

    def figures(self) -> str:
        """``12,000 of 100,000 (12 %)``; without a total ``12,000``; empty: it says what it does, and counts nothing."""
        if self.total is None:
            return amount(self.done) if self.done or not self.message else ""
        percent = f" ({self.percent})" if self.percent else ""
        return f"{amount(self.done)} of {amount(self.total)}{percent}"


def read(raw: str | None) -> Progress | None:
    """Out of a record; None: there is none, or it is damaged."""
    try:
        return of(from_json(raw)) if raw else None
    except ValueError:
        return None


def of(value: Any) -> Progress | None:
    """Out of a document or a frame; None: there is none, or none that can be told."""
    if not isinstance(value, Mapping):
        return None
    done, total, message = value.get("done"), value.get("total"), value.get("message")
    if not _counts(done) or not (total is None or _counts(total)) or not (message is None or isinstance(message, str)):
        return None
    return Progress(done, total, message)


def document(raw: str | None) -> dict[str, Any] | None:
    """What a record has of it, as the contract shows it."""
    found = read(raw)
    return None if found is None else found.document()


def line(status: str, state: str, at: str | None, raw: bytes) -> bytes:
    """The line that a hint would have told; `raw` is the value as the record has it, `at` None: nobody knows when."""
    return to_json({"status": status, "state": state, "at": at})[:-1] + VALUE + raw + b"}"


def taken_apart(body: bytes) -> tuple[bytes, bytes]:
    """When a line was told (empty: unknown), to be compared with another one's, and its value.

    Raises:
        ValueError: it is no line of this kind.
    """
    head, found, value = body.partition(VALUE)
    if not found or not body.startswith(b'{"status":') or not value.startswith(b"{"):
        raise ValueError(f"no progress: {body[:40]!r}")
    return head.partition(_AT)[2].rstrip(b'"'), value


def amount(number: float) -> str:
    """A count as one reads it: ``12,000``, ``3.5``."""
    whole = round(number)
    return f"{whole:,}" if abs(number - whole) < 0.05 or number >= 1000 else f"{number:.1f}"


def _counts(value: Any) -> TypeGuard[float]:
    return type(value) in {int, float} and 0 <= value <= _MOST
