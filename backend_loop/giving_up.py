"""What stands behind a mission that is ended though no handler or undo of it can run: its worker lost, or unreadable.

Nothing is undone then. So its error says what is not, and its children are told to end as at any other end. Pure.
"""

import contextlib
from collections.abc import Mapping
from typing import Any, Final

from backend_loop import compensation, document
from backend_loop.children import Children, settled
from backend_loop.course import Course
from backend_loop.decoding import resumed
from backend_loop.mission import MissionType
from backend_loop.store import Claimed

_NOTHING: Final = Course("")


def course_of(claimed: Claimed, definition: MissionType) -> Course:
    """How far it is, in the words of the newest version; of what nobody can read, a course with nothing behind it."""
    with contextlib.suppress(Exception):  # whatever is damaged in it
        kept = document.read(claimed.document, claimed.state, claimed.version, claimed.run)
        # also of a run that has not committed yet: what the one before it has left done is done
        return resumed(definition.versions.course(kept.course, kept.version), claimed)
    return _NOTHING


def behind(course: Course, definition: MissionType) -> dict[str, Any]:
    """For its error: ``undone``, ``not_undone``, the newest first, and the end that it was to come to; or nothing."""
    left = [one.state for one in reversed(course.done)]
    if not course.undoing and compensation.in_flight(course, definition.plan):
        left.insert(0, course.state)
    if not left:
        return {}
    ending = course.ending if isinstance(course.ending, Mapping) else {}  # it may be damaged
    met = {name: ending[name] for name in ("error", "reason") if name in ending}
    return {"undone": [one.state for one in course.undone], "not_undone": left, **met}


def told(course: Course) -> Children:
    """The children that are to be told to end."""
    return settled(course.children, None, leaving=True)[2]
