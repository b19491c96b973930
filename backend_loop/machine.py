"""The mission's state machine: what a signal makes of a mission. Pure: no clock, no dice, no Redis, no await.

TABLE says which status may follow which under which signal; the rules of the way `forward` and of the way back
(`compensation`) are held to it. A signal that a status does not know is normal at-least-once traffic: it is ignored,
changes nothing and yields no move (P24). PAUSED is no status here but a place that comes on top of any of them.
"""

from collections.abc import Sequence
from typing import Final

from backend_loop import children, compensation, forward
from backend_loop import outcomes as o
from backend_loop.course import NONE, Course, End, Plan, Reaction, StatePlan, Transition, note, signed
from backend_loop.table import TABLE, K, R

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
    rules = forward.RULES if status is not K else compensation.RULES
    reaction = rules[kind](course, plan, signal, now, chance)
    if reaction.ignored is None and reaction.course.status not in allowed:
        raise AssertionError(f"{status} + {signal} gave {reaction.course.status}, which TABLE does not allow")
    return reaction


LIFTS: Final = (o.Cancel, o.Deadline, o.Superseded)
"""What ends a pause that was asked for just before: a cancel is not to wait for somebody's resume."""


def fold(course: Course, plan: Plan, signals: Sequence[o.Signal], now: int, chance: float = 0.0) -> Reaction:
    """React to several signals in order, as one commit: their transitions together, the first end stands.

    Here alone a `Resume` means something: it takes back a pause of the same commit. One of what lies in the place
    *paused* already is a move of that place, and not the machine's.
    """
    reaction: Reaction | None = None
    for signal in signals:
        if reaction is None:
            after = react(course, plan, signal, now, chance)
            if after.ignored is None:
                reaction = after
        elif (then := _then(course, plan, reaction, signal, now, chance)) is not None:
            reaction = then
    return _settled(course, reaction) if reaction is not None else Reaction(course, ignored="no signal")


def _settled(first: Course, reaction: Reaction) -> Reaction:
    """With the rows that go out to children: decided once a commit, when it is known how all of it ends."""
    course = reaction.course
    if not course.children:
        return reaction
    leaving = course.status.terminal or (course.undoing and not first.undoing)
    left, begin, tell = children.settled(course.children, course.bound, leaving=leaving)
    settled = course._replace(children=left)
    return reaction._replace(course=settled, begin=begin, tell=tell, progress=_progress(first, course))


def _progress(first: Course, course: Course) -> tuple[int, int] | None:
    """How many of the children that it waits, or has waited, for have ended; None: no more than before."""
    join = first.join or course.join
    if join is None or first.counts:
        return None
    group = {one.task_id for one in children.covered((first if first.join is not None else course).children, join)}
    known = {one.task_id for one in first.children if one.status is not None}
    ended = {one.task_id for one in course.children if one.status is not None} & group
    return (len(ended), len(group)) if ended - known else None


def _then(  # noqa: PLR0913, PLR0917  those of fold, and how far it has come
    first: Course, plan: Plan, reaction: Reaction, signal: o.Signal, now: int, chance: float
) -> Reaction | None:
    """The reaction with one more signal; None: it changes nothing."""
    course, paused = reaction.course, reaction.paused
    if isinstance(signal, o.Resume):
        if not paused:
            return None
        after = note(course, course.status, signed("resumed", signal.by))
    elif isinstance(signal, o.Complete) and course.undoing and not first.undoing:
        return None  # it was said of the mission, and must not pass for an undo that has begun meanwhile
    else:
        after = react(course, plan, signal, now, chance)
        if after.ignored is not None:
            return None
        paused = after.paused or (paused and not isinstance(signal, LIFTS) and not after.course.status.terminal)
        after = after._replace(paused=paused) if paused else after
    return after._replace(transitions=(*reaction.transitions, *after.transitions)) if reaction.transitions else after


def replayed(course: Course, plan: Plan, *, from_start: bool) -> Course:
    """The course of a dead letter's new run (P22): limits count anew, keys of effects stay the same where they can.

    From the failed state (the course's present one, as the record says) it goes on with what it has. From the start
    everything is done anew, and only so it can be where something was undone: a state that was undone counts as
    visited, so that its effect gets a key of its own; all others meet their old keys. One that was given up amid its
    undos, with its worker lost or its record not readable, goes on undoing.
    """
    known = children.of_older_runs(course.children)
    if course.ending is not None and not from_start:
        return Course(
            course.done[-1].state,
            K,
            visits=course.visits,
            done=course.done,
            undone=course.undone,
            ending=course.ending,
            children=known,
            received=course.received,
            spent=course.spent,
        )
    if not from_start and not course.undone:
        state = course.state if course.state in plan.states else course.failed_in or plan.initial
        done = tuple(one for one in course.done if not (one.maybe and one.state == state))
        return Course(
            state,
            R,
            visits=course.visits,
            remembered=course.remembered,
            received=course.received if state == course.failed_in else None,
            done=done,
            spent=course.spent,
            children=known,
        )
    spent = dict(course.spent)
    for one in course.undone:
        spent[one.state] = max(one.visit, spent.get(one.state, 0))
    visits = dict(spent)
    if plan.initial in visits:
        visits[plan.initial] += 1
    return Course(plan.initial, visits=visits, spent=spent, children=known)
