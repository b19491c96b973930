"""The mission's state machine: what a signal makes of a mission. Pure: no clock, no dice, no Redis, no await.

TABLE says which status may follow which under which signal; the rules below and those of the way back
(`compensation`) are held to it. A signal that a status does not know is normal at-least-once traffic: it is ignored,
changes nothing and yields no move (P24). PAUSED is no status here but a place that comes on top of any of them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from backend_loop import compensation
from backend_loop import outcomes as o
from backend_loop.course import NONE, Course, Done, End, Plan, Reaction, StatePlan, Transition, note, signed
from shared.status import TERMINAL, ErrorCode, Reason, Status, WaitingFor

__all__ = [
    "HOLD_MS",
    "NONE",
    "TABLE",
    "Course",
    "End",
    "Plan",
    "Reaction",
    "StatePlan",
    "Transition",
    "fold",
    "react",
    "replayed",
]

HOLD_MS: Final = 30_000
"""A wait for a retry shorter than this keeps the target (P10)."""

CODES: Final = frozenset(str(code) for code in ErrorCode)
"""An event of this name that leads to FAILED gives the error its code."""

NOT_SKIPPED: Final = frozenset({ErrorCode.DEADLINE, ErrorCode.UNDECODABLE, ErrorCode.TOO_MANY_TRANSITIONS})
"""Ends of the mission, not of a state: an optional state does not outlive them either."""

P, R, W, K = Status.PENDING, Status.RUNNING, Status.WAITING, Status.COMPENSATING
S, F, C = Status.SUCCEEDED, Status.FAILED, Status.CANCELLED

TABLE: Final[Mapping[Status, Mapping[type[o.Signal], frozenset[Status]]]] = {
    P: {
        o.Wake: frozenset({R}),
        o.Cancel: frozenset({C, K}),
        o.Deadline: frozenset({C, F, K}),
        o.Happened: frozenset({P}),
        o.Skip: frozenset({R, S, F, C, K}),
        o.Complete: frozenset({S}),
        o.Pause: frozenset({P}),
        o.Resume: frozenset({P}),
    },
    R: {
        o.Wake: frozenset({R}),
        o.Go: frozenset({R, S, F, C, K}),
        o.Fail: frozenset({R, S, F, C, K}),
        o.Retry: frozenset({R, W, S, F, C, K}),
        o.Sleep: frozenset({W, F, K}),
        o.WaitFor: frozenset({R, W, S, F, C, K}),
        o.Stop: frozenset({C, K}),
        o.Cancel: frozenset({C, K}),
        o.Deadline: frozenset({F, K}),
        o.Happened: frozenset({R}),
        o.Skip: frozenset({R, S, F, C, K}),
        o.Complete: frozenset({S}),
        o.Superseded: frozenset({C, K}),
        o.NoPermit: frozenset({W, F, K}),
        o.Pause: frozenset({R}),
        o.Resume: frozenset({R}),
    },
    W: {
        o.Wake: frozenset({R, S, F, C, K}),
        o.Cancel: frozenset({C, K}),
        o.Deadline: frozenset({F, K}),
        o.Happened: frozenset({R, W, S, F, C, K}),
        o.Skip: frozenset({R, S, F, C, K}),
        o.Complete: frozenset({S}),
        o.Pause: frozenset({W}),
        o.Resume: frozenset({W}),
    },
    K: {
        o.Wake: frozenset({K}),
        o.Go: frozenset({K, F, C}),
        o.Fail: frozenset({F}),
        o.Retry: frozenset({K, F}),
        o.Sleep: frozenset({K, F}),
        o.WaitFor: frozenset({F}),
        o.Stop: frozenset({F}),
        o.Happened: frozenset({K}),
        o.Complete: frozenset({K, F, C}),
        o.NoPermit: frozenset({K, F}),
        o.Pause: frozenset({K}),
        o.Resume: frozenset({K}),
    },
    S: {},
    F: {},
    C: {},
}


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
    status, kind = course.status, type(signal)
    allowed = TABLE[status].get(kind)
    if allowed is None:
        return Reaction(course, ignored=f"{kind.__name__} while {status}")
    rules = _RULES if status is not K else compensation.RULES
    reaction = rules[kind](course, plan, signal, now, chance)
    if reaction.ignored is None and reaction.course.status not in allowed:
        raise AssertionError(f"{status} + {signal} gave {reaction.course.status}, which TABLE does not allow")
    return reaction


LIFTS: Final = (o.Resume, o.Cancel, o.Deadline, o.Superseded)
"""What ends a pause that was asked for just before: a cancel is not to wait for somebody's resume."""


def fold(course: Course, plan: Plan, signals: Sequence[o.Signal], now: int, chance: float = 0.0) -> Reaction:
    """React to several signals in order, as one commit: their transitions together, the first end stands."""
    reaction: Reaction | None = None
    for signal in signals:
        if type(signal) in _IN_CONTEXT and _is_stale(signal, course, reaction):
            continue
        after = react(reaction.course if reaction else course, plan, signal, now, chance)
        if after.ignored is None:
            if reaction is not None:
                paused = after.paused or (
                    reaction.paused and type(signal) not in LIFTS and not after.course.status.terminal
                )
                if reaction.transitions or paused:
                    after = after._replace(transitions=(*reaction.transitions, *after.transitions), paused=paused)
            reaction = after
    return reaction or Reaction(course, ignored="no signal")


_IN_CONTEXT: Final = frozenset({o.Resume, o.Complete})


def _is_stale(signal: o.Signal, course: Course, reaction: Reaction | None) -> bool:
    """A resume of what is not paused; or a completion of the mission that would now hit an undo begun meanwhile."""
    if isinstance(signal, o.Resume):
        return reaction is None or not reaction.paused
    return reaction is not None and reaction.course.undoing and not course.undoing


def replayed(course: Course, plan: Plan, *, from_start: bool) -> Course:
    """The course of a dead letter's new run (P22): limits count anew, keys of effects stay the same where they can.

    From the failed state (the course's present one, as the record says) it goes on with what it has. From the start
    everything is done anew, and only so it can be where something was undone: a state that was undone counts as
    visited, so that its effect gets a key of its own; all others meet their old keys.
    """
    if not from_start and not course.undone:
        state = course.state if course.state in plan.states else course.failed_in or plan.initial
        done = tuple(one for one in course.done if not (one.maybe and one.state == state))
        return Course(state, R, visits=course.visits, remembered=course.remembered, done=done)
    visits: dict[str, int] = {}
    for one in course.undone:
        visits[one.state] = max(one.visit, visits.get(one.state, 0))
    if plan.initial in visits:
        visits[plan.initial] += 1
    return Course(plan.initial, visits=visits)


def _enter(course: Course, status: Status, state: str, visits: Mapping[str, int], done: tuple[Done, ...]) -> Course:
    """The course in its next state, waiting for nothing."""
    return Course(
        state,
        status,
        1,
        visits,
        course.transitions + 1,
        remembered=course.remembered,
        received=course.received,
        done=done,
    )


def _succeed(course: Course, end: End, data: Mapping[str, Any] | None = None) -> Reaction:
    ended = _enter(course, S, S, course.visits, ())._replace(attempt=course.attempt)
    return Reaction(ended, (Transition(S, S, data),), end)


def _fail(  # noqa: PLR0913  what is said of a failure
    course: Course,
    plan: Plan,
    now: int,
    code: ErrorCode,
    message: str,
    fail: o.Fail | None = None,
    *,
    answered: bool = False,
) -> Reaction:
    """The state has finally failed: skip it, or leave the mission; `answered`: by the row itself."""
    spec = plan.states.get(course.state)
    if spec is not None and spec.skip is not None and not answered and code not in NOT_SKIPPED:
        return _skip(course, plan, now, {"event": "skipped", "code": code, "error": message})
    error: dict[str, Any] = {"code": code, "message": message, "state": course.state, "attempts": course.attempt}
    if fail is not None and fail.errors:
        error["errors"] = list(fail.errors)
    end = End(fail.result, fail.freshness, error) if fail is not None else End(error=error)
    return compensation.leave(course, plan, F, end, {"code": code}, now, answered=answered)


def _too_many(course: Course, plan: Plan, now: int) -> Reaction:
    return _fail(course, plan, now, ErrorCode.TOO_MANY_TRANSITIONS, f"more than {plan.max_transitions} transitions")


def _wait(  # noqa: PLR0913  what is said of a wait
    course: Course,
    plan: Plan,
    now: int,
    reason: WaitingFor,
    wake_at: int | None,
    data: Mapping[str, Any] | None,
) -> Reaction:
    if course.transitions + 1 >= plan.max_transitions:
        return _too_many(course, plan, now)
    waiting = course._replace(
        status=W,
        waiting_for=reason,
        wake_at=wake_at,
        transitions=course.transitions + 1,
        blocked=reason is WaitingFor.PERMIT,
    )
    return Reaction(waiting, (Transition(W, course.state, data),))


def _take(course: Course, plan: Plan, event: str, go: o.Go, now: int) -> Reaction:
    """Follow the row of the present state."""
    spec = plan.states[course.state]
    state = spec.row.get(event)
    if state is None:
        known = ", ".join(sorted(spec.row)) or "none"
        message = f"state {course.state} has no event {event!r}: its row has {known}"
        return _fail(course, plan, now, ErrorCode.PERMANENT, message)
    done = course.done if spec.undo is None else (*course.done, Done(course.state, course.visit))
    data = {"detail": go.detail} if go.detail else None
    return _follow(course, plan, state, event, go, now, done, data)


def _follow(  # noqa: PLR0913  a step has these parts
    course: Course,
    plan: Plan,
    state: str,
    event: str,
    go: o.Go,
    now: int,
    done: tuple[Done, ...],
    data: Mapping[str, Any] | None,
) -> Reaction:
    """Into the next state, or to an end that the row names."""
    if state in TERMINAL:
        if state == S:
            return _succeed(course, End(go.result, go.freshness), data)
        if state == C:
            end = End(go.result, go.freshness, None, Reason.REQUESTED)
            return compensation.leave(course, plan, C, end, {"reason": Reason.REQUESTED}, now, answered=True)
        code = ErrorCode(event) if event in CODES else ErrorCode.PERMANENT
        fail = o.Fail("", result=go.result, freshness=go.freshness)
        return _fail(course, plan, now, code, go.detail or event, fail, answered=True)
    if course.transitions + 1 >= plan.max_transitions:
        return _too_many(course, plan, now)
    visits = {**course.visits, course.state: course.visit, state: course.visits.get(state, 0) + 1}
    entered = _enter(course, R, state, visits, done)
    if plan.states[state].retry.max_elapsed_s is not None:
        entered = entered._replace(tried_at=now)
    return Reaction(entered, (Transition(R, state, data),))


def _skip(course: Course, plan: Plan, now: int, data: Mapping[str, Any]) -> Reaction:
    """Take the event by which an optional state is left undone."""
    spec = plan.states[course.state]
    if spec.skip is None:
        raise AssertionError(f"state {course.state} is not optional")
    flying = compensation.in_flight(course, plan)
    done = (*course.done, Done(course.state, course.visit, maybe=True)) if flying else course.done
    go = o.Go(spec.skip, detail=f"{course.state} was skipped")
    return _follow(course, plan, spec.row[spec.skip], spec.skip, go, now, done, data)


def _wake(course: Course, plan: Plan, _signal: o.Wake, now: int, _chance: float) -> Reaction:
    if course.status is W and (course.wake_at is None or course.wake_at > now):
        return Reaction(course, ignored="not due: an entry of the inbox brought it here")
    if course.awaited is not None:
        if "timed_out" in plan.states[course.state].row:
            return _take(course, plan, "timed_out", o.Go("timed_out"), now)
        return _fail(course, plan, now, ErrorCode.TIMEOUT, f"no {course.awaited} came in time")
    awake = course._replace(status=R, waiting_for=None, wake_at=None)
    if course.tried_at is None and plan.states[course.state].retry.max_elapsed_s is not None:
        awake = awake._replace(tried_at=now)
    return Reaction(awake)


def _go(course: Course, plan: Plan, signal: o.Go, now: int, _chance: float) -> Reaction:
    return _take(course if course.received is None else course._replace(received=None), plan, signal.event, signal, now)


def _failed(course: Course, plan: Plan, signal: o.Fail, now: int, _chance: float) -> Reaction:
    return _fail(course, plan, now, signal.code, signal.message, signal)


def _retry(course: Course, plan: Plan, signal: o.Retry, now: int, chance: float) -> Reaction:
    policy = plan.states[course.state].retry
    pause = max(policy.pause_ms(course.attempt, chance), round(signal.after_s * 1000))
    elapsed = 0 if course.tried_at is None else now + pause - course.tried_at
    if (why := policy.spent(course.attempt, elapsed)) is not None:
        return _fail(course, plan, now, signal.code, f"{signal.message} ({why})")
    data = {"event": "retry", "attempt": course.attempt, "error": signal.message, "in_ms": pause}
    return _wait(course._replace(attempt=course.attempt + 1), plan, now, WaitingFor.RETRY, now + pause, data)


def _sleep(course: Course, plan: Plan, signal: o.Sleep, now: int, _chance: float) -> Reaction:
    return _wait(course, plan, now, WaitingFor.TIMER, now + round(signal.seconds * 1000), None)


def _wait_for(course: Course, plan: Plan, signal: o.WaitFor, now: int, _chance: float) -> Reaction:
    awaiting = course._replace(awaited=signal.event)
    if signal.event in course.remembered:
        return _happen(awaiting, plan, signal.event, course.remembered[signal.event], now)
    until = None if signal.seconds is None else now + round(signal.seconds * 1000)
    return _wait(awaiting, plan, now, WaitingFor.EVENT, until, {"event": "wait", "for": signal.event})


def _happen(course: Course, plan: Plan, event: str, data: Mapping[str, Any], now: int) -> Reaction:
    rest = {name: value for name, value in course.remembered.items() if name != event}
    return _take(course._replace(remembered=rest, received=dict(data)), plan, event, o.Go(event), now)


def _happened(course: Course, plan: Plan, signal: o.Happened, now: int, _chance: float) -> Reaction:
    if course.status is W and course.awaited == signal.event:
        return _happen(course, plan, signal.event, signal.data, now)
    return Reaction(course._replace(remembered={**course.remembered, signal.event: signal.data}))


def _no_permit(course: Course, plan: Plan, signal: o.NoPermit, now: int, _chance: float) -> Reaction:
    if course.attempt == 1 and not course.begun and course.tried_at is not None:
        course = course._replace(tried_at=None)  # the time for all tries begins with the first one
    if course.blocked:  # said once: a long queue must not fill the log
        return Reaction(course._replace(status=W, waiting_for=WaitingFor.PERMIT, wake_at=signal.until_ms))
    data = {"event": "no_permit", "why": signal.why}
    return _wait(course, plan, now, WaitingFor.PERMIT, signal.until_ms, data)


def _perhaps(course: Course, plan: Plan) -> Mapping[str, Any] | None:
    """What is said of an act that something else than its handler ends, and that has no undo (P21)."""
    spec = plan.states[course.state]
    if course.begun and spec.acting and spec.undo is None:
        return {"may_have_happened": True, "state": course.state}
    return None


def _cancelled(course: Course, plan: Plan, end: End, now: int) -> Reaction:
    return compensation.leave(course, plan, C, end, {"reason": end.reason}, now)


def _cancel(course: Course, plan: Plan, signal: o.Cancel, now: int, _chance: float) -> Reaction:
    return _cancelled(course, plan, End(_perhaps(course, plan), reason=signal.reason), now)


def _superseded(course: Course, plan: Plan, _signal: o.Superseded, now: int, _chance: float) -> Reaction:
    return _cancelled(course, plan, End(_perhaps(course, plan), reason=Reason.SUPERSEDED), now)


def _stop(course: Course, plan: Plan, signal: o.Stop, now: int, _chance: float) -> Reaction:
    return _cancelled(course, plan, End(signal.result, signal.freshness, None, signal.reason), now)


def _deadline(course: Course, plan: Plan, _signal: o.Deadline, now: int, _chance: float) -> Reaction:
    if course.status is P and not course.begun:
        return _cancelled(course, plan, End(reason=Reason.EXPIRED), now)
    fail = o.Fail("", result=_perhaps(course, plan))
    return _fail(course, plan, now, ErrorCode.DEADLINE, f"the deadline came while in {course.state}", fail)


def _skipped(course: Course, plan: Plan, signal: o.Skip, now: int, _chance: float) -> Reaction:
    if signal.state != course.state:
        return Reaction(course, ignored=f"{signal.state} is not the present state")
    if plan.states[course.state].skip is None:
        return Reaction(course, ignored=f"{course.state} is not optional")
    return _skip(course, plan, now, signed("skipped", signal.by, signal.note))


def _complete(course: Course, _plan: Plan, signal: o.Complete, _now: int, _chance: float) -> Reaction:
    return _succeed(course, End(signal.result), signed("completed", signal.by, signal.note))


def _pause(course: Course, _plan: Plan, signal: o.Pause, _now: int, _chance: float) -> Reaction:
    return note(course, Status.PAUSED, signed("paused", signal.by), paused=True)


def _resume(course: Course, _plan: Plan, signal: o.Resume, _now: int, _chance: float) -> Reaction:
    return note(course, course.status, signed("resumed", signal.by))


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
    o.Skip: _skipped,
    o.Complete: _complete,
    o.Superseded: _superseded,
    o.NoPermit: _no_permit,
    o.Pause: _pause,
    o.Resume: _resume,
}
