"""What a claim found in the record, in the words of the type's newest version and for the present run. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from backend_loop import document
from backend_loop.course import Course, Plan
from backend_loop.machine import replayed
from backend_loop.mission import MissionType


class Restored(NamedTuple):
    """How far a mission is, and its context as a dict that the type's newest model takes."""

    course: Course
    context: Mapping[str, Any]


def restore(definition: MissionType, text: bytes, state: str, version: int, run: int) -> Restored:
    """Read a record.

    A run that the document does not know is a replay: from the start if the document says so, if the record names the
    first state and the mission was not given up there, or if something was undone; else from the record's state.

    Args:
        definition: of its type.
        text: the document; empty: the mission is fresh, whatever its state is called in its own version.
        state: as the record has it.
        version: as the record has it.
        run: as the record has it.

    Raises:
        ValueError: no document, or a state that the type does not have.
        Exception: whatever an upcaster raises.
    """
    plan = definition.plan
    if not text:
        return Restored(Course(plan.initial), {})
    kept = document.read(text, state, version, run)
    course = definition.versions.course(kept.course, kept.version)
    context = definition.versions.context(kept.context, kept.version)
    if kept.run != run:
        from_start = text.startswith(document.ANEW) or _from_start(course, plan)
        course = replayed(course, plan, from_start=from_start)
        context = {} if from_start else context
    if course.state not in plan.states:
        raise ValueError(f"{definition.kind} has no state {course.state}: name it in the states of an Upcast")
    for one in course.done:
        if one.state not in definition.undos:
            raise ValueError(f"{definition.kind} has no undo of {one.state}: keep it for what was begun with it")
    return Restored(course, context)


def _from_start(course: Course, plan: Plan) -> bool:
    if course.undoing:
        return course.state == plan.initial != course.done[-1].state
    # one that no worker has ended says of no end: it was given up where it stands, and has what its checkpoints kept
    return bool(course.undone) or (course.state == plan.initial and course.failed_in not in {plan.initial, None})
