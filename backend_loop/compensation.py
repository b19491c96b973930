"""The way back: what was done is undone in reverse, and only then the mission ends. Pure, a part of the machine.

A state is undone if it was left with an undo in its name, each visit once; and so is the acting state in flight, whose
effect may have happened: its undo is told so. An undo has tries of its own. One that finally fails ends the mission as
`compensation_failed` at once, the older ones not undone: they may be what the failed one stands on.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from backend_loop import children
from backend_loop import outcomes as o
from backend_loop.children import Join
from backend_loop.course import Course, Done, End, Plan, Reaction, Transition, failure, note, retried, signed
from shared.status import ErrorCode, Reason, Status, WaitingFor

UNDO_LIMIT: Final = 2
"""An undo may go on past the limit of transitions, so that a mission which met it can be undone: to so many times."""


def in_flight(course: Course, plan: Plan) -> bool:
    """Whether the present state was begun, may have acted, and can be undone."""
    spec = plan.states.get(course.state)
    return spec is not None and spec.undo is not None and spec.acting and course.begun


def leave(  # noqa: PLR0913, PLR0917  an end has these parts
    course: Course,
    plan: Plan,
    status: Status,
    end: End,
    data: Mapping[str, Any],
    now: int,
    *,
    answered: bool = False,
    happened: Mapping[str, Any] | None = None,
) -> Reaction:
    """End other than SUCCEEDED, once everything is undone.

    Args:
        course: how far it came.
        plan: its type.
        status: FAILED or CANCELLED.
        end: what the result document will say.
        data: of the end's event.
        now: epoch ms.
        answered: the state's own handler led here, by its row: whether it changed anything its undo finds out.
        happened: the outside event that led here, for the log; beside an event of our own it has a word of its own.
    """
    todo = course.done
    if in_flight(course, plan) or (answered and plan.states[course.state].undo is not None):
        todo = (*todo, Done(course.state, course.visit, maybe=True))
    if not todo:
        ended = _over(course, status, course.state)
        return Reaction(ended, (Transition(status, status, {**(happened or {}), **data}),), end)
    parts = {name: value for name, value in end._asdict().items() if value is not None}
    ending = {"status": status, "state": course.state, "data": data, **parts}
    begun = course._replace(visits={**course.visits, course.state: course.visit}, done=todo, ending=ending)
    led = {} if happened is None else {"happened": happened}
    return _undo(begun, plan, {"event": "undo", **data, **led}, now)


def _over(course: Course, status: Status, failed_in: str) -> Course:
    return Course(
        status,
        status,
        course.attempt,
        course.visits,
        course.transitions + 1,
        remembered=course.remembered,
        received=course.received,
        done=course.done,
        undone=course.undone,
        failed_in=failed_in,
        spent=course.spent,
        children=course.children,
    )


def _undo(course: Course, plan: Plan, data: dict[str, Any], now: int) -> Reaction:
    """Turn to the newest of what is left to undo."""
    last = course.done[-1]
    policy = plan.states[last.state].undo
    undoing = Course(
        last.state,
        Status.COMPENSATING,
        1,
        course.visits,
        course.transitions + 1,
        remembered=course.remembered,
        received=course.received,
        tried_at=now if policy is not None and policy.max_elapsed_s is not None else None,
        done=course.done,
        undone=course.undone,
        ending=course.ending,
        spent=course.spent,
        children=children.anew(course.children),
    )
    if last.maybe:
        data["may_have_happened"] = True
    return Reaction(undoing, (Transition(Status.COMPENSATING, last.state, data),))


def _undone(course: Course, plan: Plan, now: int, by_hand: Mapping[str, Any] | None = None) -> Reaction:
    *rest, last = course.done
    after = course._replace(done=tuple(rest), undone=(*course.undone, last))
    if rest:
        return _undo(after, plan, {**(by_hand or {"event": "undone"}), "undone": last.state}, now)
    ending = _ending(course)
    undone = [one.state for one in after.undone]
    status = Status(ending["status"])
    reason = ending.get("reason")
    end = End(
        {**(ending.get("result") or {}), "undone": undone},
        ending.get("freshness"),
        ending.get("error"),
        None if reason is None else Reason(reason),
    )
    data = {**ending["data"], **(by_hand or {}), "undone": undone}
    return Reaction(_over(after, status, ending["state"]), (Transition(status, status, data),), end)


def _not_undone(course: Course, message: str, fail: o.Fail | None = None) -> Reaction:
    ending, code = _ending(course), ErrorCode.COMPENSATION_FAILED
    left = [one.state for one in reversed(course.done)]
    error: dict[str, Any] = {
        "code": code,
        "message": (said := f"{course.state} could not be undone: {message}"),
        "state": course.state,
        "attempts": course.attempt,
        "undone": [one.state for one in course.undone],
        "not_undone": left,
    }
    error |= {name: ending[name] for name in ("error", "reason") if name in ending}
    if fail is not None and fail.errors:
        error["errors"] = list(fail.errors)
    at = {"at": fail.at} if fail is not None and fail.at is not None else {}
    error |= at
    end = End(ending.get("result"), ending.get("freshness"), error)
    ended = _over(course, Status.FAILED, ending["state"])
    data = {**failure(code, said), **at, "not_undone": left}
    return Reaction(ended, (Transition(Status.FAILED, Status.FAILED, data),), end)


def _ending(course: Course) -> Mapping[str, Any]:
    if course.ending is None:
        raise AssertionError(f"a mission that undoes {course.state} has no end to come to")
    return course.ending


def _wait(
    course: Course, plan: Plan, reason: WaitingFor, wake_at: int | None, data: Mapping[str, Any] | None
) -> Reaction:
    if course.transitions + 1 >= UNDO_LIMIT * plan.max_transitions:
        return _not_undone(course, f"more than {UNDO_LIMIT * plan.max_transitions} transitions")
    waiting = course._replace(
        waiting_for=reason, wake_at=wake_at, transitions=course.transitions + 1, blocked=reason is WaitingFor.PERMIT
    )
    return Reaction(waiting, (Transition(Status.COMPENSATING, course.state, data),))


def _wake(course: Course, _plan: Plan, _signal: o.Wake, now: int, _chance: float) -> Reaction:
    if course.waiting_for is None:
        return Reaction(course)
    early = course.wake_at is not None and course.wake_at > now
    if early and course.waiting_for is not WaitingFor.PERMIT:  # a permit that came free wakes it before its time
        return Reaction(course, ignored="not due: an entry of the inbox brought it here")
    return Reaction(course._replace(waiting_for=None, wake_at=None, join=None))


def _go(course: Course, plan: Plan, _signal: o.Go, now: int, _chance: float) -> Reaction:
    return _undone(course, plan, now)


def _complete(course: Course, plan: Plan, signal: o.Complete, now: int, _chance: float) -> Reaction:
    return _undone(course, plan, now, signed("completed", signal.by, signal.note))


def _failed(course: Course, _plan: Plan, signal: o.Fail, _now: int, _chance: float) -> Reaction:
    return _not_undone(course, signal.message, signal)


def _no_answer(course: Course, _plan: Plan, signal: o.WaitFor | o.Stop, _now: int, _chance: float) -> Reaction:
    return _not_undone(course, f"its undo answered {signal!r}: return nothing, Go, Retry, Sleep or Fail")


def _retry(course: Course, plan: Plan, signal: o.Retry, now: int, chance: float) -> Reaction:
    policy = plan.states[course.state].undo
    if policy is None:
        return _not_undone(course, "its undo is not there any more")
    pause = max(policy.pause_ms(course.attempt, chance), round(signal.after_s * 1000))
    elapsed = 0 if course.tried_at is None else now + pause - course.tried_at
    if (why := policy.spent(course.attempt, elapsed)) is not None:
        return _not_undone(course, f"{signal.message} ({why})", o.Fail("", at=signal.at))
    data = retried(course.attempt, signal.message, signal.at, pause)
    return _wait(course._replace(attempt=course.attempt + 1), plan, WaitingFor.RETRY, now + pause, data)


def _sleep(course: Course, plan: Plan, signal: o.Sleep, now: int, _chance: float) -> Reaction:
    return _wait(course, plan, WaitingFor.TIMER, now + round(signal.seconds * 1000), None)


def _wait_for_children(course: Course, plan: Plan, signal: o.WaitForChildren, now: int, _chance: float) -> Reaction:
    join = Join(signal.want, signal.on_failure == "fail", signal.event)
    if not children.covered(course.children, join):
        if signal.event is not None:
            return _undone(course, plan, now)
        return _not_undone(course, "its undo waits for children and has none left to wait for: return nothing")
    waiting = course._replace(join=join, bound=signal.bound)
    if (over := _joined(waiting, plan, now)) is not None:
        return over
    until = None if signal.seconds is None else now + round(signal.seconds * 1000)
    data = {"event": "wait", "for": "children", "children": children.progress(course.children, join)[1]}
    return _wait(waiting, plan, WaitingFor.CHILDREN, until, data)


def _joined(course: Course, plan: Plan, now: int) -> Reaction | None:
    """What follows where the wait for children is over; None: it is not."""
    join = course.join
    if join is None or (reached := children.over(course.children, join)) is None:
        return None
    if not reached:
        alone = course._replace(children=children.taken(course.children, rest=True))
        return _not_undone(alone, children.sentence(children.failed(course.children)))
    ended, all_ = children.progress(course.children, join)
    awake = course._replace(children=children.taken(course.children), waiting_for=None, wake_at=None, join=None)
    if join.event is not None:
        return _undone(awake, plan, now)
    if course.transitions + 1 >= UNDO_LIMIT * plan.max_transitions:
        return _not_undone(awake, f"more than {UNDO_LIMIT * plan.max_transitions} transitions")
    data = {"event": "children", "ended": ended, "of": all_}
    line = Transition(Status.COMPENSATING, course.state, data)
    return Reaction(awake._replace(transitions=course.transitions + 1), (line,))


def _spawned(course: Course, _plan: Plan, signal: o.Spawned, _now: int, _chance: float) -> Reaction:
    return Reaction(course._replace(children=children.added(course.children, signal.children)))


def _checkpoint(course: Course, plan: Plan, _signal: o.Checkpoint, now: int, _chance: float) -> Reaction:
    policy = plan.states[course.state].undo
    tried_at = None if policy is None or policy.max_elapsed_s is None else now
    return Reaction(course._replace(attempt=1, begun=True, tried_at=tried_at))


def _child_ended(course: Course, plan: Plan, signal: o.ChildEnded, now: int, _chance: float) -> Reaction:
    found = children.ended(course.children, signal.end)
    if found is None:
        return Reaction(course, ignored=f"{signal.end.task_id} is no live child of this run")
    if course.transitions + 1 >= UNDO_LIMIT * plan.max_transitions:
        return _not_undone(course, f"more than {UNDO_LIMIT * plan.max_transitions} transitions")
    known, child = found
    heard = course._replace(children=known, transitions=course.transitions + 1)
    line = Transition(Status.COMPENSATING, course.state, children.told(child))
    after = _joined(heard, plan, now)
    return Reaction(heard, (line,)) if after is None else after._replace(transitions=(line, *after.transitions))


def _no_permit(course: Course, plan: Plan, signal: o.NoPermit, _now: int, _chance: float) -> Reaction:
    if course.blocked:
        return Reaction(course._replace(waiting_for=WaitingFor.PERMIT, wake_at=signal.until_ms))
    return _wait(course, plan, WaitingFor.PERMIT, signal.until_ms, {"event": "no_permit", "why": signal.why})


def _pause(course: Course, _plan: Plan, signal: o.Pause, _now: int, _chance: float) -> Reaction:
    return note(course, Status.PAUSED, signed("paused", signal.by), paused=True)


RULES: Final[Mapping[type[o.Signal], Callable[..., Reaction]]] = {
    o.Wake: _wake,
    o.Go: _go,
    o.Complete: _complete,
    o.Fail: _failed,
    o.WaitFor: _no_answer,
    o.WaitForChildren: _wait_for_children,
    o.Spawned: _spawned,
    o.Checkpoint: _checkpoint,
    o.ChildEnded: _child_ended,
    o.Stop: _no_answer,
    o.Retry: _retry,
    o.Sleep: _sleep,
    o.NoPermit: _no_permit,
    o.Pause: _pause,
}
"""While COMPENSATING. A cancel, a deadline, a newer command or an event change nothing: it is on its way to an end."""
