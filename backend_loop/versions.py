"""Older versions of a type: pure steps from each one to the next, for payload, context and names of states."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from backend_loop.course import Course, Done

Change = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Example:
    """What a mission of an older version left behind: its payload, and the state and context it was met in."""

    payload: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Upcast:
    """From one version of a type to the next one; all of it pure.

    Args:
        payload: from the older dict, which is its own copy, to the newer one; None: nothing changes.
        context: the same of the context.
        states: older name of a state → newer one.
        schema: what the payload of the older version looked like, for the door; None: any object.
        examples: stored missions of the older version, at least one; each must pass all steps up to the newest one.
    """

    payload: Change | None = None
    context: Change | None = None
    states: Mapping[str, str] = field(default_factory=dict)
    schema: type[BaseModel] | None = None
    examples: Sequence[Example] = ()


@dataclass(frozen=True, slots=True)
class Versions:
    """All versions of a type that can be run: the newest as it is, the older ones upcast.

    Args:
        newest: the type's own version.
        oldest: the first one that is still taken.
        steps: older version → the step to the next one.
    """

    newest: int
    oldest: int
    steps: Mapping[int, Upcast]

    def payload(self, payload: Mapping[str, Any], version: int) -> Mapping[str, Any]:
        """A payload in words of the newest version.

        Raises:
            Exception: whatever a step raises that cannot take it.
        """
        for step in self._from(version):
            if step.payload is not None:
                payload = step.payload(deepcopy(dict(payload)))
        return payload

    def context(self, context: Mapping[str, Any], version: int) -> Mapping[str, Any]:
        """A context in words of the newest version; raises as `payload` does."""
        for step in self._from(version):
            if step.context is not None:
                context = step.context(deepcopy(dict(context)))
        return context

    def state(self, state: str, version: int) -> str:
        """What the newest version calls a state."""
        for step in self._from(version):
            state = step.states.get(state, state)
        return state

    def course(self, course: Course, version: int) -> Course:
        """A course whose states bear the names of the newest version."""
        for step in self._from(version):
            if step.states:
                course = _renamed(course, step.states)
        return course

    def _from(self, version: int) -> list[Upcast]:
        return [self.steps[older] for older in range(version, self.newest)]


def _renamed(course: Course, names: Mapping[str, str]) -> Course:
    visits: dict[str, int] = {}
    for state, count in course.visits.items():
        name = names.get(state, state)
        visits[name] = max(count, visits.get(name, 0))
    ending, failed_in = course.ending, course.failed_in
    if ending is not None:
        ending = {**ending, "state": names.get(ending["state"], ending["state"])}
    return course._replace(
        state=names.get(course.state, course.state),
        visits=_renamed_counts(course.visits, names),
        spent=_renamed_counts(course.spent, names),
        done=_renamed_visits(course.done, names),
        undone=_renamed_visits(course.undone, names),
        ending=ending,
        failed_in=None if failed_in is None else names.get(failed_in, failed_in),
        children=tuple(one._replace(state=names.get(one.state, one.state)) for one in course.children),
    )


def _renamed_counts(counts: Mapping[str, int], names: Mapping[str, str]) -> Mapping[str, int]:
    renamed: dict[str, int] = {}
    for state, count in counts.items():
        name = names.get(state, state)
        renamed[name] = max(count, renamed.get(name, 0))
    return renamed


def _renamed_visits(visits: tuple[Done, ...], names: Mapping[str, str]) -> tuple[Done, ...]:
    return tuple(one._replace(state=names.get(one.state, one.state)) for one in visits)
