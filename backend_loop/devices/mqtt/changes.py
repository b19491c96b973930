"""Who changed what last, as workers hand it on: the document on ``dualloop/changes/NAME``."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, Field, ValidationError

from backend_loop.devices.protocol import Change
from shared.clock import parse_rfc3339, rfc3339


class Moved(NamedTuple):
    """The last change of a value, and what it is since."""

    change: Change
    value: Any


class _Entry(BaseModel):
    by: str = Field(pattern="^(command|hand)$")
    version: str = Field(max_length=40)
    at: str = Field(max_length=40)
    value: str | int | float | bool | None

    def moved(self) -> Moved:
        return Moved(Change(by=self.by, version=self.version, at=parse_rfc3339(self.at)), self.value)


class _Document(BaseModel):
    changes: dict[str, _Entry] = Field(max_length=50)


def written(changes: Mapping[str, Moved]) -> str:
    """For whoever begins later."""
    entries = {
        name: _Entry(by=change.by, version=change.version, at=rfc3339(change.at), value=value).model_dump()
        for name, (change, value) in sorted(changes.items())
    }
    return json.dumps({"changes": entries})


def read(text: str, now: int) -> dict[str, Moved] | None:
    """What was written; None: not by us.

    It was before `now` (epoch milliseconds), when it came, whatever clock the other has: a hand of tomorrow would win
    against all that is said today.
    """
    try:
        told = {name: one.moved() for name, one in _Document.model_validate_json(text).changes.items()}
        return {name: _before(one, now) for name, one in told.items()}
    except (ValidationError, ValueError):
        return None


def _before(moved: Moved, now: int) -> Moved:
    change = moved.change
    return moved if change.at <= now else moved._replace(change=change.model_copy(update={"at": now}))
