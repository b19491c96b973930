"""The record's document: a mission's course and context as JSON, written by commits only."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from backend_loop.children import Child, Join
from backend_loop.course import Course, Done
from shared.status import Status, WaitingFor

_NAMES = Course._fields[2:]  # without state and status
_FRESH = tuple(Course._field_defaults[name] for name in _NAMES)


ANEW: Final = b'{"anew":true,'
"""What a document begins with whose mission was replayed from the start since (`replay` puts it there)."""


class Kept(NamedTuple):
    """What a document says.

    Attributes:
        course: how far the mission is.
        context: as it was dumped, by the type's `version`.
        version: of the type whose words it is written in.
        run: of the mission; another one than the record's means that it was replayed since.
    """

    course: Course
    context: Mapping[str, Any]
    version: int
    run: int


def write(course: Course, context: BaseModel | Mapping[str, Any] | bytes, version: int = 1, run: int = 1) -> bytes:
    """Only what differs from a fresh course; state and status stand in the record itself.

    The context may be JSON already. It comes last.
    """
    document: dict[str, Any] = {
        name: value
        for name, value, fresh in zip(_NAMES, course[2:], _FRESH, strict=True)
        if value is not fresh and value != fresh
    }
    if version != 1:
        document["version"] = version
    if run != 1:
        document["run"] = run
    if not isinstance(context, bytes):
        context = to_json(context)
    return b'%b%b"context":%b}' % (to_json(document)[:-1], b"," if document else b"", context)


def read(document: bytes, state: str, version: int = 1, run: int = 1) -> Kept:
    """What was written; an empty document is that of a fresh mission, of the version and run that its record has.

    Whether it waits or is undone stands in the document too: what waited still waits until the machine wakes it. A
    pause does not: it is a place.

    Raises:
        ValueError: not a document that a commit wrote.
    """
    if not document:
        return Kept(Course(state), {}, version, run)
    try:
        content = from_json(document)
        context = content.pop("context")
        content.pop("anew", None)
        version, run = content.pop("version", 1), content.pop("run", 1)
        status = Status.RUNNING
        if "waiting_for" in content:
            status, content["waiting_for"] = Status.WAITING, WaitingFor(content["waiting_for"])
        if "done" in content:
            content["done"] = tuple(Done(*one) for one in content["done"])
        if "undone" in content:
            content["undone"] = tuple(Done(*one) for one in content["undone"])
        if "children" in content:
            content["children"] = tuple(Child(*one) for one in content["children"])
        if "join" in content:
            content["join"] = Join(*content["join"])
        if "ending" in content:
            status = Status.COMPENSATING
        return Kept(Course(state, status, **content), context, version, run)
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a document of a mission: {error!r}") from error
