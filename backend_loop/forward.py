"""The way forward: what each signal makes of a mission that is not undoing anything. Pure, a part of the machine."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import to_json

from backend_loop import children, compensation
from backend_loop import outcomes as o
from backend_loop.children import Join
from backend_loop.course import Course, Done, End, Plan, Reaction, Transition, failure, note, retried, signed
from backend_loop.table import C, F, P, R, S, W
from shared.status import TERMINAL, ErrorCode, Reason, Status, WaitingFor

TIMED_OUT: Final = "timed_out"
"""The event of a row that is taken where what a state waits for does not come in time."""

CODES: Final = {str(code): code for code in ErrorCode} | {TIMED_OUT: ErrorCode.TIMEOUT}
"""An event of this name that leads to FAILED gives the error its code."""

NOT_SKIPPED: Final = frozenset({ErrorCode.DEADLINE, ErrorCode.UNDECODABLE, ErrorCode.TOO_MANY_TRANSITIONS})
"""Ends of the mission, not of a state: an optional state does not outlive them either."""

LOGGED: Final = 2_048
"""Bytes of an outside event's data that the log has; the handler gets all of it."""


def _succeed(course: Course, end: End, data: Mapping[str, Any] | None = None) -> Reaction:
    ended = Course(
        S,
        S,
        course.attempt,
        course.visits,
        course.transitions + 1,
        remembered=course.remembered,
        children=course.children,
    )
    return Reaction(ended, (Transition(S, S, data),), end)


def _fail(  # noqa: PLR0913, PLR0917  what is said of a failure
    course: Course,
    plan: Plan,
    now: int,
    code: ErrorCode,
    message: str,
    fail: o.Fail | None = None,
    *,
    answered: bool = False,
    happened: Mapping[str, Any] | None = None,
) -> Reaction:
    """The state has finally failed: skip it, or leave the mission; `answered`: by the row itself."""
    spec = plan.states.get(course.state)
    if spec is not None and spec.skip is not None and not answered and code not in NOT_SKIPPED:
        return _skip(course, plan, now, {"event": "skipped", "code": code, "error": message})
    error: dict[str, Any] = {"code": code, "message": message, "state": course.state, "attempts": course.attempt}
    if fail is not None and fail.errors:
        error["errors"] = list(fail.errors)
    at = {"at": fail.at} if fail is not None and fail.at is not None else {}
    error |= at
    end = End(fail.result, fail.freshness, error) if fail is not None else End(error=error)
    data = failure(code, message) | at
    return compensation.leave(course, plan, F, end, data, now, answered=answered, happened=happened)


def _too_many(course: Course, plan: Plan, now: int) -> Reaction:
    return _fail(course, plan, now, ErrorCode.TOO_MANY_TRANSITIONS, f"more than {plan.max_transitions} transitions")


def _wait(  # noqa: PLR0913, PLR0917  what is said of a wait
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


def _take(  # noqa: PLR0913, PLR0917  a step has these parts
    course: Course,
    plan: Plan,
    event: str,
    go: o.Go,
    now: int,
    received: Mapping[str, Any] | None = None,
    happened: Mapping[str, Any] | None = None,
) -> Reaction:
    """Follow the row of the present state.

    `received`: what the next one is told. `happened`: the outside event that leads there, for the log.
    """
    spec = plan.states[course.state]
    state = spec.row.get(event)
    if state is None:
        known = ", ".join(sorted(spec.row)) or "none"
        message = f"state {course.state} has no event {event!r}: its row has {known}"
        return _fail(course, plan, now, ErrorCode.PERMANENT, message)
    data = happened if happened is not None else _said(go)
    if state in TERMINAL:
        return _arrive(course, plan, Status(state), event, go, now, data, happened)
    done = course.done if spec.undo is None else (*course.done, Done(course.state, course.visit))
    return _enter(course, plan, state, done, now, data, received)


def _said(go: o.Go) -> Mapping[str, Any] | None:
    detail = {"detail": go.detail} if go.detail else {}
    return {**detail, **(go.data or {})} or None


def _enter(  # noqa: PLR0913, PLR0917  a step has these parts
    course: Course,
    plan: Plan,
    state: str,
    done: tuple[Done, ...],
    now: int,
    data: Mapping[str, Any] | None,
    received: Mapping[str, Any] | None = None,
) -> Reaction:
    """Into the next state, which waits for nothing."""
    transitions = course.transitions + 1
    if transitions >= plan.max_transitions:
        return _too_many(course, plan, now)
    visits = {**course.visits, course.state: course.visit, state: course.visits.get(state, 0) + 1}
    entered = Course(
        state,
        R,
        1,
        visits,
        transitions,
        remembered=course.remembered,
        received=received,
        tried_at=None if plan.states[state].retry.max_elapsed_s is None else now,
        done=done,
        spent=course.spent,
        children=course.children,
        bound=course.bound,
    )
    return Reaction(entered, (Transition(R, state, data),))


def _arrive(  # noqa: PLR0913, PLR0917  a step has these parts
    course: Course,
    plan: Plan,
    status: Status,
    event: str,
    go: o.Go,
    now: int,
    data: Mapping[str, Any] | None,
    happened: Mapping[str, Any] | None = None,
) -> Reaction:
    """To an end that the row names."""
    if status is S:
        return _succeed(course, End(go.result, go.freshness), data)
    if status is C:
        end = End(go.result, go.freshness, None, Reason.REQUESTED)
        data = {"reason": Reason.REQUESTED}
        return compensation.leave(course, plan, C, end, data, now, answered=True, happened=happened)
    code = CODES.get(event, ErrorCode.PERMANENT)
    fail = o.Fail("", result=go.result, freshness=go.freshness)
    return _fail(course, plan, now, code, go.detail or event, fail, answered=True, happened=happened)


def _skip(course: Course, plan: Plan, now: int, data: Mapping[str, Any]) -> Reaction:
    """Take the event by which an optional state is left undone."""
    spec = plan.states[course.state]
    if spec.skip is None:
        raise AssertionError(f"state {course.state} is not optional")
    flying = compensation.in_flight(course, plan)
    done = (*course.done, Done(course.state, course.visit, maybe=True)) if flying else course.done
    state = spec.row[spec.skip]
    if state in TERMINAL:
        go = o.Go(spec.skip, detail=f"{course.state} was skipped")
        return _arrive(course, plan, Status(state), spec.skip, go, now, data)
    return _enter(course, plan, state, done, now, data)


def _wake(course: Course, plan: Plan, _signal: o.Wake, now: int, _chance: float) -> Reaction:
    # a permit that came free wakes it before its time
    early = course.wake_at is None or course.wake_at > now
    if course.status is W and early and course.waiting_for is not WaitingFor.PERMIT:
        return Reaction(course, ignored="not due: an entry of the inbox brought it here")
    if course.awaited is not None or course.join is not None:
        late = "no " + course.awaited if course.awaited is not None else "not enough of its children"
        if TIMED_OUT in plan.states[course.state].row:
            return _take(course, plan, TIMED_OUT, o.Go(TIMED_OUT, detail=f"{late} came in time"), now)
        return _fail(course, plan, now, ErrorCode.TIMEOUT, f"{late} came in time")
    awake = course if course.status is R else course._replace(status=R, waiting_for=None, wake_at=None)
    if course.tried_at is None and plan.states[course.state].retry.max_elapsed_s is not None:
        awake = awake._replace(tried_at=now)
    return Reaction(awake)


def _go(course: Course, plan: Plan, signal: o.Go, now: int, _chance: float) -> Reaction:
    return _take(course, plan, signal.event, signal, now)


def _failed(course: Course, plan: Plan, signal: o.Fail, now: int, _chance: float) -> Reaction:
    return _fail(course, plan, now, signal.code, signal.message, signal)


def _retry(course: Course, plan: Plan, signal: o.Retry, now: int, chance: float) -> Reaction:
    policy = plan.states[course.state].retry
    pause = max(policy.pause_ms(course.attempt, chance), round(signal.after_s * 1000))
    elapsed = 0 if course.tried_at is None else now + pause - course.tried_at
    if (why := policy.spent(course.attempt, elapsed)) is not None:
        return _fail(course, plan, now, signal.code, f"{signal.message} ({why})", o.Fail("", at=signal.at))
    data = retried(course.attempt, signal.message, signal.at, pause)
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
    happened: dict[str, Any] = {"event": event}
    if len(to_json(data)) <= LOGGED:
        happened["data"] = data
    return _take(course._replace(remembered=rest), plan, event, o.Go(event), now, dict(data), happened)


def _happened(course: Course, plan: Plan, signal: o.Happened, now: int, _chance: float) -> Reaction:
    if course.status is W and course.awaited == signal.event:
        return _happen(course, plan, signal.event, signal.data, now)
    return Reaction(course._replace(remembered={**course.remembered, signal.event: signal.data}))


def _wait_for_children(course: Course, plan: Plan, signal: o.WaitForChildren, now: int, _chance: float) -> Reaction:
    join = Join(signal.want, signal.on_failure == "fail", signal.event)
    waiting = course._replace(join=join, bound=signal.bound)
    if not children.covered(course.children, join):
        if join.event is not None:
            return _take(waiting, plan, join.event, o.Go(join.event), now)
        message = f"{course.state} waits for children and has none left to wait for: spawn some, or name an event"
        return _fail(course, plan, now, ErrorCode.PERMANENT, message)
    if (over := _joined(waiting, plan, now)) is not None:
        return over
    until = None if signal.seconds is None else now + round(signal.seconds * 1000)
    data = {"event": "wait", "for": "children", "children": children.progress(course.children, join)[1]}
    return _wait(waiting, plan, now, WaitingFor.CHILDREN, until, data)


def _joined(course: Course, plan: Plan, now: int) -> Reaction | None:
    """What follows where the wait for children is over; None: it is not."""
    join = course.join
    if join is None or (reached := children.over(course.children, join)) is None:
        return None
    if not reached:
        return _child_failed(course, plan, now)
    ended, all_ = children.progress(course.children, join)
    awake = course._replace(children=children.taken(course.children))
    if join.event is not None:
        return _take(awake, plan, join.event, o.Go(join.event), now)
    if course.transitions + 1 >= plan.max_transitions:
        return _too_many(course, plan, now)
    awake = awake._replace(status=R, waiting_for=None, wake_at=None, join=None, transitions=course.transitions + 1)
    return Reaction(awake, (Transition(R, course.state, {"event": "children", "ended": ended, "of": all_}),))


def _child_failed(course: Course, plan: Plan, now: int) -> Reaction:
    """So many as are wanted cannot succeed any more: nobody waits for the others either."""
    message = children.sentence(children.failed(course.children))
    alone = course._replace(children=children.taken(course.children, rest=True), join=None)
    if "child_failed" in plan.states[course.state].row:
        return _take(alone, plan, "child_failed", o.Go("child_failed", detail=message), now)
    return _fail(alone, plan, now, ErrorCode.CHILD_FAILED, message)


def _spawned(course: Course, _plan: Plan, signal: o.Spawned, _now: int, _chance: float) -> Reaction:
    return Reaction(course._replace(children=children.added(course.children, signal.children)))


def _checkpoint(course: Course, plan: Plan, _signal: o.Checkpoint, now: int, _chance: float) -> Reaction:
    policy = plan.states[course.state].retry
    tried_at = None if policy.max_elapsed_s is None else now
    return Reaction(course._replace(attempt=1, begun=True, tried_at=tried_at))


def _child_ended(course: Course, plan: Plan, signal: o.ChildEnded, now: int, _chance: float) -> Reaction:
    found = children.ended(course.children, signal.end)
    if found is None:
        return Reaction(course, ignored=f"{signal.end.task_id} is no live child of this run")
    if course.transitions + 1 >= plan.max_transitions:
        return _too_many(course._replace(children=found[0]), plan, now)
    known, child = found
    heard = course._replace(children=known, transitions=course.transitions + 1)
    line = Transition(course.status, course.state, children.told(child))
    after = _joined(heard, plan, now) if course.status is W else None
    return Reaction(heard, (line,)) if after is None else after._replace(transitions=(line, *after.transitions))


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
    said = {name: text for name, text in (("by", signal.by), ("note", signal.note)) if text is not None}
    end, data = End(_perhaps(course, plan), reason=signal.reason), {"reason": signal.reason, **said}
    return compensation.leave(course, plan, C, end, data, now)


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


RULES: Final[Mapping[type[o.Signal], Callable[..., Reaction]]] = {
    o.Wake: _wake,
    o.Go: _go,
    o.Fail: _failed,
    o.Retry: _retry,
    o.Sleep: _sleep,
    o.WaitFor: _wait_for,
    o.WaitForChildren: _wait_for_children,
    o.Spawned: _spawned,
    o.Checkpoint: _checkpoint,
    o.ChildEnded: _child_ended,
    o.Stop: _stop,
    o.Cancel: _cancel,
    o.Deadline: _deadline,
    o.Happened: _happened,
    o.Skip: _skipped,
    o.Complete: _complete,
    o.Superseded: _superseded,
    o.NoPermit: _no_permit,
    o.Pause: _pause,
}
