"""What a handler says midway: a checkpoint counts tries anew and moves nothing; progress is checked, cut, counted."""

import math
from typing import Any

import pytest
from pydantic_core import from_json

from backend_loop.children import Child
from backend_loop.course import Course, Done, Plan, StatePlan
from backend_loop.machine import fold, react
from backend_loop.outcomes import (
    Cancel,
    Checkpoint,
    ChildEnded,
    Deadline,
    Go,
    Happened,
    Pause,
    Retry,
    Signal,
    Spawned,
    WaitForChildren,
    Wake,
)
from backend_loop.reporting import LONGEST, progress
from backend_loop.retry import Retry as Policy
from shared.status import Status

NOW = 1_000_000
PLAN = Plan(
    "DO",
    {
        "DO": StatePlan(
            {"done": "NEXT"}, Policy(tries=2, max_elapsed_s=60), acting=True, undo=Policy(tries=2, max_elapsed_s=60)
        ),
        "NEXT": StatePlan({"done": "SUCCEEDED", "join": "SUCCEEDED"}, Policy(tries=2), undo=Policy(tries=2)),
    },
)
DOING = Course("DO", Status.RUNNING, attempt=2, tried_at=NOW - 59_000, transitions=3, lost=True)
UNDOING = DOING._replace(status=Status.COMPENSATING, done=(Done("DO", 1),), ending={"status": "FAILED", "state": "DO"})


@pytest.mark.parametrize("course", [DOING, UNDOING])
def test_tries_and_their_time_count_anew_from_a_checkpoint(course: Course) -> None:
    reaction = react(course, PLAN, Checkpoint(), NOW)
    assert reaction == (course._replace(attempt=1, tried_at=NOW, begun=True), (), None, None, False, (), (), None)


def test_where_no_time_is_set_for_all_tries_none_begins() -> None:
    assert react(DOING._replace(state="NEXT", tried_at=None), PLAN, Checkpoint(), NOW).course.tried_at is None
    undoing = UNDOING._replace(state="NEXT", done=(Done("NEXT", 1),), tried_at=None)
    assert react(undoing, PLAN, Checkpoint(), NOW).course.tried_at is None


def test_a_try_that_fails_behind_a_checkpoint_is_the_first_one() -> None:
    assert react(DOING, PLAN, Retry("no"), NOW).course.status is Status.FAILED
    after = fold(DOING, PLAN, [Checkpoint(), Retry("no")], NOW).course
    assert (after.status, after.attempt) == (Status.WAITING, 2)


@pytest.mark.parametrize("signal", [Cancel(), Deadline()])
def test_what_interrupts_at_the_first_checkpoint_undoes_what_was_begun(signal: Signal) -> None:
    fresh = Course("DO", Status.RUNNING)
    assert fold(fresh, PLAN, [signal], NOW).course.status.terminal
    undoing = fold(fresh, PLAN, [Checkpoint(), signal], NOW).course
    assert (undoing.status, undoing.state, undoing.may_have_happened) == (Status.COMPENSATING, "DO", True)


def test_a_pause_at_a_checkpoint_stays_in_the_state_and_an_event_is_remembered() -> None:
    reaction = fold(DOING, PLAN, [Checkpoint(), Pause("me"), Happened("KNOCK", {"n": 1})], NOW)
    assert (reaction.paused, reaction.course.state, reaction.course.attempt) == (True, "DO", 1)
    assert reaction.course.remembered == {"KNOCK": {"n": 1}}


# children that are waited for are progress


def kids(count: int) -> tuple[Child, ...]:
    return tuple(Child(f"k{n}", "t", None, "NEXT", 1, n) for n in range(count))


def end(n: int) -> ChildEnded:
    return ChildEnded(Child(f"k{n}", "t", None, "", 0, 0, 1, status="SUCCEEDED"))


def counted(course: Course, *signals: Signal) -> tuple[tuple[int, int] | None, Course]:
    reaction = fold(course, PLAN, signals, NOW)
    return reaction.progress, reaction.course


NEXT = Course("NEXT", Status.RUNNING)


def test_the_ends_of_children_that_are_waited_for_are_counted() -> None:
    none, waiting = counted(NEXT, Spawned(kids(3)), WaitForChildren())
    assert none is None
    one, waiting = counted(waiting, end(1))
    assert one == (1, 3)
    all_, over = counted(waiting, end(0), end(2))
    assert (all_, over.runs) == ((3, 3), True)
    assert counted(waiting, Happened("KNOCK"))[0] is None  # nobody has ended


def test_those_that_an_earlier_wait_has_taken_are_not() -> None:
    _, waiting = counted(NEXT, Spawned(kids(3)), WaitForChildren("any"))
    first, again = counted(waiting, end(0))
    assert first == (1, 3)
    _, waiting = counted(again, WaitForChildren())
    assert counted(waiting, end(1))[0] == (1, 2)


def test_an_end_that_comes_with_the_wait_is_counted_and_one_before_it_is_not() -> None:
    _, running = counted(NEXT, Spawned(kids(2)), Checkpoint())
    assert counted(running, Checkpoint(), end(0))[0] is None
    assert counted(running, WaitForChildren(), end(0))[0] == (1, 2)


def test_a_handler_that_has_given_a_total_counts_itself() -> None:
    _, waiting = counted(NEXT._replace(counts=True), Spawned(kids(2)), WaitForChildren())
    assert counted(waiting, end(0))[0] is None


def test_what_it_has_said_holds_for_this_visit() -> None:
    said = DOING._replace(counts=True, message="halfway")
    assert fold(said, PLAN, [Retry("no")], NOW).course.counts is False
    waiting = fold(said._replace(attempt=1), PLAN, [Retry("no")], NOW).course
    assert (waiting.counts, waiting.message) == (True, "halfway")
    after = fold(said, PLAN, [Wake(), Go("done")], NOW).course
    assert (after.counts, after.message) == (False, None)


# what may be said


def test_progress_is_told_as_it_was_said() -> None:
    assert from_json(progress(3, 4, "item 3").told()) == {"done": 3, "total": 4, "message": "item 3"}
    assert progress(2.5).told() == b'{"done":2.5,"total":null,"message":null}'


@pytest.mark.parametrize("value", [-1, -0.1, math.nan, math.inf, -math.inf, 10**400, 1e16, "3", None])
def test_a_number_that_nobody_can_show_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="progress: done is"):
        progress(value)
    if value is not None:
        with pytest.raises(ValueError, match="progress: total is"):
            progress(1, value)


def test_a_message_is_cut_and_may_hold_anything() -> None:
    assert progress(1, None, "x" * (LONGEST + 1)).message == "x" * LONGEST
    told = progress(1, None, "a\n\x00\ud800 你").told()
    assert from_json(told)["message"] == "a\n\x00? 你"
    assert b"\n" not in told  # lines of a hint end there
