"""The table of the machine is what is reachable, and any traffic at all keeps the promises."""

from collections import defaultdict, deque
from collections.abc import Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend_loop.children import Child
from backend_loop.course import Course, Plan, Reaction
from backend_loop.machine import fold, react
from backend_loop.outcomes import ChildEnded, Deadline, Go, Happened, Signal, Spawned, Wake
from backend_loop.table import TABLE
from shared.status import Status, WaitingFor
from tests.pure.plans import FAMILIES, FAMILY, NOW, ORDER, PLANS, SIGNALS, heard, starts

LOOPS = 2
"""Undos that have piled up when the search turns back."""

TRAFFIC = st.lists(
    st.tuples(st.sampled_from(SIGNALS), st.integers(0, 40_000), st.floats(0, 0.999)), min_size=5, max_size=40
)


def _kind(course: Course, plan: Plan) -> Hashable:
    """What the rules look at; two courses of one kind react alike."""
    limits = (plan.max_transitions - 1, 2 * plan.max_transitions - 1)
    return (
        *(course.state, course.status, course.attempt, course.waiting_for, course.awaited, course.wake_at is None),
        *((one.status, one.spec is None, one.taken, one.cancel) for one in course.children),
        *(course.join, course.bound),
        *(course.begun, course.blocked, course.tried_at is None, frozenset(course.remembered)),
        *(tuple((one.state, one.maybe) for one in course.done), bool(course.undone)),
        None if course.ending is None else course.ending["status"],
        sum(course.transitions >= limit for limit in limits),
    )


def _reached(plan: Plan, signals: list[Signal]) -> dict[tuple[Status, type], set[Status]]:
    """Each step that any sequence of signals leads to; react() itself asserts that the table allows it."""
    seen: dict[tuple[Status, type], set[Status]] = defaultdict(set)
    frontier, known = deque(starts(plan)), set[Hashable]()
    while frontier:
        course = frontier.popleft()  # the shortest way first
        if (kind := _kind(course, plan)) in known or len(course.done) > LOOPS:
            continue
        known.add(kind)
        if course.undoing:
            frontier.append(course._replace(transitions=2 * plan.max_transitions - 1))
        for signal in signals:
            for now in (NOW, NOW + 1_000_000):
                reaction = react(heard(course, signal), plan, signal, now, 0.5)
                if reaction.ignored is None:
                    seen[course.status, type(signal)].add(reaction.course.status)
                    frontier.append(reaction.course)
    return seen


def test_the_table_is_what_is_reachable() -> None:
    """Every pair that the table allows is reached; no other one is, or react() would have raised."""
    seen: dict[tuple[Status, type], set[Status]] = defaultdict(set)
    alone: list[Signal] = [signal for signal in SIGNALS if not isinstance(signal, Spawned | ChildEnded)]
    searches: list[tuple[Plan, list[Signal]]] = [(plan, alone) for plan in PLANS]
    for plan, signals in [*searches, *((plan, FAMILY) for plan in FAMILIES)]:
        for pair, statuses in _reached(plan, signals).items():
            seen[pair] |= statuses
    allowed = {(status, kind): set(targets) for status, row in TABLE.items() for kind, targets in row.items()}
    assert seen == allowed


def test_every_status_of_a_mission_has_a_row() -> None:
    assert set(TABLE) == set(Status) - {Status.PAUSED}  # a place: the course keeps what it was before


def _check(plan: Plan, course: Course) -> None:
    """What holds of every mission at any time."""
    if course.status.terminal:
        assert all(react(course, plan, signal, NOW).ignored for signal in SIGNALS)
        return
    assert course.undoing == (course.ending is not None)
    assert not course.undoing or course.done
    assert (course.waiting_for is None) == (course.runs or course.status is Status.PENDING)
    if course.waiting_for is None:
        assert course.awaited is None
        assert course.join is None
    elif course.wake_at is not None:
        woken = react(course, plan, Wake(), course.wake_at)
        assert woken.ignored is None  # no lost wake-up: when it is due it moves
        assert woken.course.waiting_for is None
    elif course.waiting_for is WaitingFor.CHILDREN:
        _check_children(plan, course)
    else:
        assert course.waiting_for is WaitingFor.EVENT
        assert course.awaited is not None
        assert react(course, plan, Happened(course.awaited), NOW).course.waiting_for is None


def _check_children(plan: Plan, course: Course) -> None:
    """Who waits for children waits for some that may yet end, and not past the last one's end."""
    open_ = [one for one in course.children if one.status is None and not one.taken]
    assert open_
    for one in open_:
        if course.waiting_for is WaitingFor.CHILDREN:
            begun = tuple(kid._replace(spec=None) for kid in course.children)
            told = ChildEnded(Child(one.task_id, "test.kid", None, "", 0, 0, one.run, status="SUCCEEDED"))
            course = react(course._replace(children=begun), plan, told, NOW).course
    assert course.waiting_for is None


def _to_the_end(plan: Plan, course: Course, now: int) -> int:
    """Steps until it has ended, once its deadline has come and its undos answer."""
    for step in range(100):
        if course.status.terminal:
            return step
        now = max(now, course.wake_at or 0)
        course = fold(course, plan, [Deadline(), Wake(), *([Go("undone")] if course.undoing else [])], now).course
    raise AssertionError(f"there is no way out of {course}")


@pytest.mark.parametrize("plan", [*PLANS, *FAMILIES])
@settings(max_examples=150, deadline=None)
@given(TRAFFIC, st.booleans())
def test_any_traffic_keeps_the_promises(
    plan: Plan,
    traffic: list[tuple[Signal, int, float]],
    begun: bool,
) -> None:
    course, now, ends = Course(plan.initial, begun=begun), NOW, 0
    for signal, passed, chance in traffic:
        now += passed
        before = heard(course, signal) if course.runs else course
        reaction = react(before, plan, signal, now, chance)
        course = reaction.course
        if reaction.ignored is not None:
            assert (course, reaction.transitions, reaction.end) == (before, (), None)
        ends += reaction.end is not None
        assert (reaction.end is not None) == (course.status.terminal and not before.status.terminal)
        assert course.transitions == before.transitions + len(reaction.transitions)
        _check(plan, course)
    assert ends <= 1
    _to_the_end(plan, course, now)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.lists(st.sampled_from(SIGNALS), min_size=1, max_size=5), max_size=12))
def test_what_comes_together_is_one_commit_with_one_end(commits: list[list[Signal]]) -> None:
    course = Course(ORDER.initial)
    for now, signals in enumerate(commits, NOW):
        reaction: Reaction = fold(course, ORDER, signals, now * 10, 0.5)
        assert (reaction.end is not None) == (reaction.course.status.terminal and not course.status.terminal)
        assert [t.status for t in reaction.transitions if t.status.terminal] == (
            [reaction.course.status] if reaction.end else []
        )
        assert not (reaction.paused and reaction.end)
        course = reaction.course
        _check(ORDER, course)
