"""The record's document: a mission's course and context as JSON, written by commits only."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from backend_loop.machine import Course
from shared.status import Status, WaitingFor

_NAMES = Course._fields[2:]  # without state and status
_FRESH = tuple(Course._field_defaults[name] for name in _NAMES)


def write(course: Course, context: BaseModel) -> bytes:
    """Only what differs from a fresh course; state and status stand in the record itself."""
    document: dict[str, Any] = {
        name: value
        for name, value, fresh in zip(_NAMES, course[2:], _FRESH, strict=True)
        if value is not fresh and value != fresh
    }
    document["context"] = context
    return to_json(document)


def read(document: bytes, state: str) -> tuple[Course, Mapping[str, Any]]:
    """The course, and the context as it was dumped; an empty document is that of a fresh mission.

    Whether it waits stands in the document too: what waited still waits until the machine wakes it.

    Raises:
        ValueError: not a document that a commit wrote.
    """
    if not document:
        return Course(state), {}
    try:
        content = from_json(document)
        context = content.pop("context")
        if "waiting_for" not in content:
            return Course(state, Status.RUNNING, **content), context
        content["waiting_for"] = WaitingFor(content["waiting_for"])
        return Course(state, Status.WAITING, **content), context
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a document of a mission: {error!r}") from error
