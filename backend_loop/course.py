"""The words of the machine: a type's plan, a mission's course, and what a signal makes of it. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from backend_loop.children import Child, Join
from backend_loop.retry import Retry
from shared.shortened import shortened
from shared.status import ErrorCode, Reason, Status, WaitingFor


@dataclass(frozen=True, slots=True)
class StatePlan:
    """What the machine needs to know of a state.

    Args:
        row: event → next state.
        retry: how often, and how far apart.
        acting: it changes the outside world, so whatever cuts it short leaves "may have happened" (P21).
        undo: how often its undo is tried; None: it has none.
        skip: the event taken if it finally fails; None: then the mission fails.
    """

    row: Mapping[str, str]
    retry: Retry = field(default_factory=Retry)
    acting: bool = False
    undo: Retry | None = None
    skip: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A mission type as data: the states by name, the first one, and the limit of transitions."""

    initial: str
    states: Mapping[str, StatePlan]
    max_transitions: int = 10_000


TOLD: Final = 500
"""Characters of an error that the log has; the result has all of it."""

_R, _K = Status.RUNNING, Status.COMPENSATING  # looking up a member of an enum takes longer than the rest of a check
NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class Done(NamedTuple):
    """A visit of a state that has an undo."""

    state: str
    visit: int
    maybe: bool = False
    """It did not say that it was done: what it was to do may have happened."""


class Course(NamedTuple):
    """How far a mission is. Replaced, never changed; kept in the record's document."""

    state: str
    """The present state; while COMPENSATING the one that is undone."""
    status: Status = Status.PENDING
    attempt: int = 1
    visits: Mapping[str, int] = NONE
    transitions: int = 0
    waiting_for: WaitingFor | None = None
    awaited: str | None = None
    wake_at: int | None = None
    remembered: Mapping[str, Mapping[str, Any]] = NONE
    received: Mapping[str, Any] | None = None
    begun: bool = False
    """The handler of this state, or its undo, has run, or may have: what it was to do may have happened."""
    lost: bool = False
    """A worker was lost in this state."""
    blocked: bool = False
    """It has been asking for a permit since its last transition."""
    tried_at: int | None = None
    """When the first try of this visit began, epoch ms; only where the retry policy asks for it."""
    done: tuple[Done, ...] = ()
    """What is to be undone if the mission fails, oldest first."""
    undone: tuple[Done, ...] = ()
    """What has been undone, in that order."""
    ending: Mapping[str, Any] | None = None
    """While COMPENSATING: the end that follows, and the state it was met in."""
    failed_in: str | None = None
    """After an end other than SUCCEEDED: the state it was met in."""
    spent: Mapping[str, int] = NONE
    """The last visit of each state that an earlier run has undone: its key stands for what is not there any more."""
    children: tuple[Child, ...] = ()
    """All that it has spawned."""
    bound: int | None = None
    """How many of them may live at once, as the last wait for them said."""
    join: Join | None = None
    """What it waits for, if it waits for them."""
    message: str | None = None
    """What its handler has last said, in this visit, is being done."""
    counts: bool = False
    """Its handler has said, in this visit, how much there is to do."""

    @property
    def undoing(self) -> bool:
        """The undo of `state` is to be run, not its handler."""
        return self.status is _K

    @property
    def runs(self) -> bool:
        """A handler or an undo is to be run now."""
        return self.status is _R or (self.status is _K and self.waiting_for is None)

    @property
    def visit(self) -> int:
        """How often the present state has been entered, this time included; of an undo, the visit that it undoes."""
        return self.done[-1].visit if self.status is _K else self.visits.get(self.state, 1)

    @property
    def may_have_happened(self) -> bool:
        """What is to be undone did not say that it was done: the undo has to look."""
        return self.undoing and self.done[-1].maybe


class Transition(NamedTuple):
    """One event of the log, before it has its `seq`."""

    status: Status
    state: str
    data: Mapping[str, Any] | None = None


class End(NamedTuple):
    """What the result document says of the end."""

    result: Mapping[str, Any] | None = None
    freshness: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    reason: Reason | None = None


class Reaction(NamedTuple):
    """What a signal made of the mission.

    Exactly one holds: the course runs (its handler or undo is to be run), waits (until `wake_at` or an event), has an
    `end`, or the signal was `ignored` and the course is the old one. `paused` comes on top of running and waiting:
    the place is to be *paused*, nothing is run. `begin` and `tell` are children whose row goes out with the commit:
    those that are to begin, and those that are to end. `progress`: so many of the children that it waits for
    have ended, of so many.
    """

    course: Course
    transitions: tuple[Transition, ...] = ()
    end: End | None = None
    ignored: str | None = None
    paused: bool = False
    begin: tuple[Child, ...] = ()
    tell: tuple[Child, ...] = ()
    progress: tuple[int, int] | None = None


def note(course: Course, status: Status, data: Mapping[str, Any], *, paused: bool = False) -> Reaction:
    """A line of the log that changes nothing else."""
    counted = course._replace(transitions=course.transitions + 1)
    return Reaction(counted, (Transition(status, course.state, data),), paused=paused)


def failure(code: ErrorCode, message: str) -> dict[str, Any]:
    """The log's data of a failure: a dead letter's log outlives its result, and then is all that says why."""
    return {"code": code, "error": shortened(message, TOLD)}


def retried(attempt: int, message: str, at: str | None, pause: int) -> dict[str, Any]:
    """The log's data of a try that failed, where there is another one in `pause` milliseconds."""
    data = {"event": "retry", "attempt": attempt, "error": shortened(message, TOLD), "in_ms": pause}
    return data if at is None else data | {"at": at}


def signed(event: str, by: str | None, remark: str | None = None) -> dict[str, Any]:
    """The log's data of what a person did."""
    return {"event": event, "by": by} if remark is None else {"event": event, "by": by, "note": remark}
