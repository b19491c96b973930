"""The mission's state machine: what a signal makes of a mission. Pure: no clock, no dice, no Redis, no await.

TABLE says which status may follow which under which signal; the rules below are held to it. A signal that a status
does not know is normal at-least-once traffic: it is ignored, changes nothing and yields no move (P24).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from backend_loop import outcomes as o
from backend_loop.retry import Retry
from shared.status import TERMINAL, ErrorCode, Reason, Status, WaitingFor

HOLD_MS: Final = 30_000
"""A wait for a retry shorter than this keeps the target (P10)."""

CODES: Final = frozenset(str(code) for code in ErrorCode)
"""An event of this name that leads to FAILED gives the error its code."""

P, R, W = Status.PENDING, Status.RUNNING, Status.WAITING
S, F, C = Status.SUCCEEDED, Status.FAILED, Status.CANCELLED

TABLE: Final[Mapping[Status, Mapping[type[o.Signal], frozenset[Status]]]] = {
    P: {o.Wake: frozenset({R}), o.Cancel: frozenset({C}), o.Deadline: frozenset({C, F}), o.Happened: frozenset({P})},
    R: {
        o.Wake: frozenset({R}),
        o.Go: frozenset({R, S, F, C}),
        o.Fail: frozenset({F}),
        o.Retry: frozenset({W, F}),
        o.Sleep: frozenset({W, F}),
        o.WaitFor: frozenset({R, W, S, F, C}),
        o.Stop: frozenset({C}),
        o.Cancel: frozenset({C}),
        o.Deadline: frozenset({F}),
        o.Happened: frozenset({R}),
    },
    W: {
        o.Wake: frozenset({R, S, F, C}),
        o.Cancel: frozenset({C}),
        o.Deadline: frozenset({F}),
        o.Happened: frozenset({R, W, S, F, C}),
    },
    S: {},
    F: {},
    C: {},
}


@dataclass(frozen=True, slots=True)
class StatePlan:
    """What the machine needs to know of a state.

    Args:
        row: event → next state.
        retry: how often, and how far apart.
        acting: it changes the outside world, so whatever cuts it short leaves "may have happened" (P21).
    """

    row: Mapping[str, str]
    retry: Retry = field(default_factory=Retry)
    acting: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """A mission type as data: the states by name, the first one, and the limit of transitions."""

    initial: str
    states: Mapping[str, StatePlan]
    max_transitions: int = 10_000


NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class Course(NamedTuple):
    """How far a mission is. Replaced, never changed; kept in the record's document."""

    state: str
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
    """The handler of this state has run, or may have: what it was to do may have happened."""
    lost: bool = False
    """A worker was lost in this state."""

    @property
    def visit(self) -> int:
        """How often the present state has been entered, this time included."""
        return self.visits.get(self.state, 1)


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

    Exactly one holds: the course runs (its handler is to be run), waits (until `wake_at` or an event), has an `end`,
    or the signal was `ignored` and the course is the old one.
    """

    course: Course
    transitions: tuple[Transition, ...] = ()
    end: End | None = None
    ignored: str | None = None


def react(course: Course, plan: Plan, signal: o.Signal, now: int, chance: float = 0.0) -> Reaction:
    """One step.

    Args:
        course: how far the mission is.
        plan: its type.
        signal: what happened.
        now: Redis' time, epoch ms.
        chance: in [0, 1), for the jitter of a retry.

    Raises:
        AssertionError: a rule led to a status that TABLE does not allow: a bug here, not in a mission.
    """
    allowed = TABLE[course.status].get(type(signal))
    if allowed is None:
        return Reaction(course, ignored=f"{type(signal).__name__} while {course.status}")
    reaction = _RULES[type(signal)](course, plan, signal, now, chance)
    if reaction.ignored is None and reaction.course.status not in allowed:
        raise AssertionError(f"{course.status} + {signal} gave {reaction.course.status}, which TABLE does not allow")
    return reaction


def fold(course: Course, plan: Plan, signals: Sequence[o.Signal], now: int, chance: float = 0.0) -> Reaction:
    """React to several signals in order, as one commit: their transitions together, the first end stands."""
    reaction: Reaction | None = None
    for signal in signals:
        after = react(reaction.course if reaction else course, plan, signal, now, chance)
        if after.ignored is None:
            before = reaction.transitions if reaction else ()
            reaction = after._replace(transitions=(*before, *after.transitions)) if before else after
    return reaction or Reaction(course, ignored="no signal")


def _enter(course: Course, status: Status, state: str, attempt: int, visits: Mapping[str, int]) -> Course:
    """The course in its next state, waiting for nothing."""
    return Course(
        state,
        status,
        attempt,
        visits,
        course.transitions + 1,
        remembered=course.remembered,
        received=course.received,
    )


def _end(course: Course, status: Status, end: End, data: Mapping[str, Any] | None = None) -> Reaction:
    ended = _enter(course, status, status, course.attempt, course.visits)
    return Reaction(ended, (Transition(status, status, data),), end)


def _fail(course: Course, code: ErrorCode, message: str, fail: o.Fail | None = None) -> Reaction:
    error: dict[str, Any] = {"code": code, "message": message, "state": course.state, "attempts": course.attempt}
    if fail is not None and fail.errors:
        error["errors"] = list(fail.errors)
    end = End(fail.result, fail.freshness, error) if fail is not None else End(error=error)
    return _end(course, F, end, {"code": code})


def _wait(
    course: Course, plan: Plan, reason: WaitingFor, wake_at: int | None, data: Mapping[str, Any] | None
) -> Reaction:
    if course.transitions + 1 >= plan.max_transitions:
        return _fail(course, ErrorCode.TOO_MANY_TRANSITIONS, f"more than {plan.max_transitions} transitions")
    waiting = course._replace(status=W, waiting_for=reason, wake_at=wake_at, transitions=course.transitions + 1)
    return Reaction(waiting, (Transition(W, course.state, data),))


def _take(course: Course, plan: Plan, event: str, go: o.Go) -> Reaction:
    """Follow the row of the present state."""
    row = plan.states[course.state].row
    state = row.get(event)
    if state is None:
        known = ", ".join(sorted(row)) or "none"
        return _fail(course, ErrorCode.PERMANENT, f"state {course.state} has no event {event!r}: its row has {known}")
    if state in TERMINAL:
        status = Status(state)
        if status is F:
            code = ErrorCode(event) if event in CODES else ErrorCode.PERMANENT
            return _fail(course, code, go.detail or event, o.Fail("", result=go.result, freshness=go.freshness))
        return _end(course, status, End(go.result, go.freshness, None, Reason.REQUESTED if status is C else None))
    if course.transitions + 1 >= plan.max_transitions:
        return _fail(course, ErrorCode.TOO_MANY_TRANSITIONS, f"more than {plan.max_transitions} transitions")
    visits = {**course.visits, course.state: course.visit, state: course.visits.get(state, 0) + 1}
    entered = _enter(course, R, state, 1, visits)
    return Reaction(entered, (Transition(R, state, {"detail": go.detail} if go.detail else None),))


def _wake(course: Course, plan: Plan, _signal: o.Wake, now: int, _chance: float) -> Reaction:
    if course.status is W and (course.wake_at is None or course.wake_at > now):
        return Reaction(course, ignored="not due: an entry of the inbox brought it here")
    if course.awaited is not None:
        if "timed_out" in plan.states[course.state].row:
            return _take(course, plan, "timed_out", o.Go("timed_out"))
        return _fail(course, ErrorCode.TIMEOUT, f"no {course.awaited} came in time")
    return Reaction(course._replace(status=R, waiting_for=None, wake_at=None))


def _go(course: Course, plan: Plan, signal: o.Go, _now: int, _chance: float) -> Reaction:
    return _take(course if course.received is None else course._replace(received=None), plan, signal.event, signal)


def _failed(course: Course, _plan: Plan, signal: o.Fail, _now: int, _chance: float) -> Reaction:
    return _fail(course, signal.code, signal.message, signal)


def _retry(course: Course, plan: Plan, signal: o.Retry, now: int, chance: float) -> Reaction:
    policy = plan.states[course.state].retry
    if course.attempt >= policy.tries:
        return _fail(course, signal.code, f"{signal.message} (try {course.attempt} of {policy.tries})")
    pause = max(policy.pause_ms(course.attempt, chance), round(signal.after_s * 1000))
    data = {"event": "retry", "attempt": course.attempt, "error": signal.message, "in_ms": pause}
    return _wait(course._replace(attempt=course.attempt + 1), plan, WaitingFor.RETRY, now + pause, data)


def _sleep(course: Course, plan: Plan, signal: o.Sleep, now: int, _chance: float) -> Reaction:
    return _wait(course, plan, WaitingFor.TIMER, now + round(signal.seconds * 1000), None)


def _wait_for(course: Course, plan: Plan, signal: o.WaitFor, now: int, _chance: float) -> Reaction:
    if signal.event in course.remembered:
        return _happen(course._replace(awaited=signal.event), plan, signal.event, course.remembered[signal.event])
    until = None if signal.seconds is None else now + round(signal.seconds * 1000)
    data = {"event": "wait", "for": signal.event}
    return _wait(course._replace(awaited=signal.event), plan, WaitingFor.EVENT, until, data)


def _happen(course: Course, plan: Plan, event: str, data: Mapping[str, Any]) -> Reaction:
    rest = {name: value for name, value in course.remembered.items() if name != event}
    return _take(course._replace(remembered=rest, received=dict(data)), plan, event, o.Go(event))


def _happened(course: Course, plan: Plan, signal: o.Happened, _now: int, _chance: float) -> Reaction:
    if course.status is W and course.awaited == signal.event:
        return _happen(course, plan, signal.event, signal.data)
    return Reaction(course._replace(remembered={**course.remembered, signal.event: signal.data}))


def _perhaps(course: Course, plan: Plan) -> Mapping[str, Any] | None:
    """What is said of an act that something else than its handler ends (P21)."""
    if course.begun and plan.states[course.state].acting:
        return {"may_have_happened": True, "state": course.state}
    return None


def _cancel(course: Course, plan: Plan, signal: o.Cancel, _now: int, _chance: float) -> Reaction:
    return _end(course, C, End(_perhaps(course, plan), reason=signal.reason), {"reason": signal.reason})


def _stop(course: Course, _plan: Plan, signal: o.Stop, _now: int, _chance: float) -> Reaction:
    return _end(course, C, End(signal.result, signal.freshness, None, signal.reason), {"reason": signal.reason})


def _deadline(course: Course, plan: Plan, _signal: o.Deadline, _now: int, _chance: float) -> Reaction:
    if course.status is P and not course.begun:
        return _end(course, C, End(reason=Reason.EXPIRED), {"reason": Reason.EXPIRED})
    fail = o.Fail("", result=_perhaps(course, plan))
    return _fail(course, ErrorCode.DEADLINE, f"the deadline came while in {course.state}", fail)


_RULES: Final[Mapping[type[o.Signal], Callable[..., Reaction]]] = {
    o.Wake: _wake,
    o.Go: _go,
    o.Fail: _failed,
    o.Retry: _retry,
    o.Sleep: _sleep,
    o.WaitFor: _wait_for,
    o.Stop: _stop,
    o.Cancel: _cancel,
    o.Deadline: _deadline,
    o.Happened: _happened,
}
