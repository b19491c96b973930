"""A wait for children is over when its policy says so; what goes out to them is decided once a commit."""

from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import from_json

from backend_loop import document
from backend_loop.children import ROOM, Child, sentence
from backend_loop.course import Course, Plan, Reaction, StatePlan
from backend_loop.machine import fold, replayed
from backend_loop.mission import DefinitionError, Mission, state
from backend_loop.outcomes import (
    Cancel,
    ChildEnded,
    Complete,
    Deadline,
    Fail,
    Go,
    Outcome,
    Pause,
    Retry,
    Signal,
    Skip,
    Sleep,
    Spawned,
    WaitForChildren,
    Wake,
)
from backend_loop.retry import Retry as Policy
from backend_loop.toolbox import Toolbox
from frontend_loop.family import FIELDS, children, shown, waited_for
from shared.status import Status, WaitingFor
from tests.pure.plans import NOW

PLAN = Plan(
    "FAN",
    {
        "FAN": StatePlan({"done": "NEXT"}, Policy(tries=2)),
        "NEXT": StatePlan({"done": "SUCCEEDED", "timed_out": "FAILED", "child_failed": "LAST"}, acting=True),
        "LAST": StatePlan({"done": "SUCCEEDED"}, acting=True, undo=Policy(tries=1), skip="done"),
    },
    max_transitions=50,
)
RUNNING = Course("FAN", Status.RUNNING)


def kids(count: int, first: int = 1, state: str = "FAN") -> tuple[Child, ...]:
    """Children that a handler has just spawned."""
    spec = {"version": 1}
    return tuple(Child(f"k{n}", "test.kid", f"kid-{n}", state, 1, n, spec=spec) for n in range(first, first + count))


def end(n: int, status: str = "SUCCEEDED", run: int = 1) -> ChildEnded:
    error = {"code": "permanent", "message": "tired"} if status == "FAILED" else None
    return ChildEnded(Child(f"k{n}", "test.kid", None, "", 0, 0, run, status=status, result=n, error=error))


def after(course: Course, *signals: Signal, now: int = NOW) -> Reaction:
    return fold(course, PLAN, signals, now)


def fan(count: int, wait: WaitForChildren | None = None, course: Course = RUNNING) -> Reaction:
    return after(course, Spawned(kids(count)), wait or WaitForChildren())


def names(those: tuple[Child, ...]) -> list[str]:
    return [one.task_id for one in those]


def test_all_are_begun_and_waited_for_and_then_the_handler_is_called_again() -> None:
    begun = fan(2)
    assert (begun.course.status, begun.course.waiting_for) == (Status.WAITING, WaitingFor.CHILDREN)
    assert (names(begun.begin), names(begun.tell)) == (["k1", "k2"], [])
    one = after(begun.course, end(2))
    assert (one.course.status, one.begin, one.tell) == (Status.WAITING, (), ())
    assert one.transitions[0].data == {
        "event": "child",
        "task_id": "k2",
        "type": "test.kid",
        "name": "kid-2",
        "status": "SUCCEEDED",
    }
    both = after(one.course, end(1))
    assert both.course.runs
    assert [line.data and line.data["event"] for line in both.transitions] == ["child", "children"]
    assert [(kid.task_id, kid.result) for kid in both.course.children] == [("k1", 1), ("k2", 2)]


@pytest.mark.parametrize(
    ("policy", "on_failure", "ends", "status"),
    [
        ("all", "fail", "S", "WAITING"),
        ("all", "fail", "SF", "FAILED"),
        ("all", "fail", "SSS", "RUNNING"),
        ("all", "continue", "SF", "WAITING"),
        ("all", "continue", "SFC", "RUNNING"),
        ("any", "fail", "F", "WAITING"),
        ("any", "fail", "FS", "RUNNING"),
        ("any", "fail", "FCF", "FAILED"),
        ("any", "continue", "FF", "WAITING"),
        ("any", "continue", "FFF", "RUNNING"),
        (2, "fail", "SF", "WAITING"),
        (2, "fail", "FF", "FAILED"),
        (2, "fail", "SS", "RUNNING"),
        (2, "continue", "FFS", "RUNNING"),
        (9, "fail", "SSS", "RUNNING"),
        (9, "fail", "F", "FAILED"),
    ],
)
def test_a_wait_is_over_as_soon_as_its_policy_is_decided(policy: str, on_failure: str, ends: str, status: str) -> None:
    course = fan(3, WaitForChildren(policy, on_failure)).course  # type: ignore[arg-type]  # words of the table
    words = {"S": "SUCCEEDED", "F": "FAILED", "C": "CANCELLED"}
    for n, letter in enumerate(ends, 1):
        assert course.status == Status.WAITING
        reaction = after(course, end(n, words[letter]))
        course = reaction.course
    assert course.status == status
    if status == "FAILED":
        assert reaction.end is not None
        assert reaction.end.error is not None
        assert reaction.end.error["code"] == "child_failed"
        assert "ended FAILED, permanent: tired" in reaction.end.error["message"]
        assert names(reaction.tell) == [f"k{n}" for n in range(len(ends) + 1, 4)]


def test_no_more_live_at_once_than_the_bound_says() -> None:
    begun = fan(5, WaitForChildren(bound=2))
    assert names(begun.begin) == ["k1", "k2"]
    course, order = begun.course, ["k1", "k2"]
    while order:
        reaction = after(course, end(int(order.pop(0)[1:])))
        course = reaction.course
        order += names(reaction.begin)
        assert sum(kid.live for kid in course.children) <= 2
    assert course.runs
    assert all(kid.succeeded for kid in course.children)


@pytest.mark.parametrize("outcome", [Go("done"), Sleep(5)])
def test_without_a_wait_all_begin_with_the_outcome(outcome: Signal) -> None:
    assert names(after(RUNNING, Spawned(kids(3)), outcome).begin) == ["k1", "k2", "k3"]


@pytest.mark.parametrize("last", [Cancel(), Deadline(), Complete()])
def test_what_the_mission_does_not_live_to_see_never_begins(last: Signal) -> None:
    reaction = after(RUNNING, Spawned(kids(3)), WaitForChildren(bound=1), last)
    assert reaction.course.status.terminal
    assert (reaction.begin, reaction.tell, reaction.course.children) == ((), (), ())
    at_the_end = after(RUNNING._replace(state="NEXT"), Spawned(kids(1)), Go("done"))
    assert (at_the_end.course.status, at_the_end.begin) == (Status.SUCCEEDED, ())


@pytest.mark.parametrize("last", [Cancel(), Deadline(), Complete(), Fail("no")])
def test_an_end_tells_each_live_child_once_and_the_held_ones_never_begin(last: Signal) -> None:
    course = after(fan(3, WaitForChildren("any", bound=2)).course, end(1)).course
    assert [kid.live for kid in course.children] == [False, True, True]
    reaction = after(course, last)
    assert reaction.course.status.terminal
    assert names(reaction.tell) == ["k2", "k3"]
    assert all(after(reaction.course, signal).ignored for signal in (end(2), Wake(), Cancel()))


def test_an_end_of_an_older_run_or_of_a_stranger_changes_nothing() -> None:
    course = fan(2).course
    for stranger in (end(1, run=2), end(9), end(1, "FAILED", run=0)):
        assert after(course, stranger).ignored is not None
    twice = after(after(course, end(1)).course, end(1, "FAILED"))
    assert twice.ignored is not None


def test_with_nobody_to_wait_for_the_event_is_taken_and_without_one_it_is_a_mistake() -> None:
    assert after(RUNNING, WaitForChildren(event="done")).course.state == "NEXT"
    assert after(RUNNING, WaitForChildren()).course.status is Status.FAILED
    over = after(fan(1).course, end(1)).course
    assert after(over, WaitForChildren()).course.status is Status.FAILED, "its end was taken by the wait before"


def test_results_are_kept_as_long_as_there_is_room() -> None:
    course = fan(3).course
    for n in (1, 2, 3):
        big = end(n).end._replace(size=ROOM // 2)
        course = after(course, ChildEnded(big)).course
    assert [kid.result for kid in course.children] == [1, 2, None]
    assert all(kid.succeeded for kid in course.children)


def test_errors_take_up_room_too_and_past_it_their_code_is_kept() -> None:
    """Thousands of sentences would make a document that no handler of the parent may leave."""
    course = fan(3, WaitForChildren("all", "continue")).course
    for n in (1, 2, 3):
        one = end(n, "FAILED").end._replace(error={"code": "permanent", "message": "m" * (ROOM // 2 - 100)})
        course = after(course, ChildEnded(one)).course
    assert [len((kid.error or {}).get("message", "")) for kid in course.children] == [ROOM // 2 - 100] * 2 + [0]
    assert course.children[2].error == {"code": "permanent"}
    assert sentence(course.children[2]) == "its child kid-3 (test.kid) ended FAILED, permanent"


def test_one_by_one_any_meets_the_next_end() -> None:
    course = fan(3, WaitForChildren("any")).course
    for n in (2, 3):
        course = after(course, end(n)).course
        assert course.runs
        course = after(course, WaitForChildren("any")).course
        assert course.waiting_for is WaitingFor.CHILDREN
    course = after(course, end(1)).course
    assert after(course, WaitForChildren("any", event="done")).course.state == "NEXT", "there is nobody left"


def test_ends_that_came_before_the_wait_count() -> None:
    course = after(after(RUNNING, Spawned(kids(2)), Go("done")).course, end(1), end(2)).course
    assert (course.status, course.state) == (Status.RUNNING, "NEXT")
    assert after(course, WaitForChildren(event="done")).course.status is Status.SUCCEEDED


def test_a_row_may_say_what_a_failed_child_or_a_late_one_leads_to() -> None:
    course = RUNNING._replace(state="NEXT")
    failed = after(after(course, Spawned(kids(2)), WaitForChildren()).course, end(1, "FAILED"))
    assert (failed.course.state, names(failed.tell)) == ("LAST", ["k2"])
    late = after(after(course, Spawned(kids(1)), WaitForChildren(seconds=3)).course, Wake(), now=NOW + 3000)
    assert (late.course.status, names(late.tell)) == (Status.FAILED, ["k1"])
    assert fan(1, WaitForChildren(seconds=3)).course.wake_at == NOW + 3000
    timeout = after(fan(1, WaitForChildren(seconds=3)).course, Wake(), now=NOW + 3000)
    assert timeout.end is not None
    assert timeout.end.error is not None
    assert timeout.end.error["code"] == "timeout"


def test_who_was_told_to_end_may_be_waited_for_until_nobody_lives() -> None:
    course = after(RUNNING._replace(state="NEXT"), Spawned(kids(4)), WaitForChildren(bound=3)).course
    told = after(course, end(1, "FAILED"))
    assert (told.course.state, names(told.tell), len(told.course.children)) == ("LAST", ["k2", "k3"], 3)
    assert after(told.course, WaitForChildren("all", "continue", event="done")).end is not None, "they were taken"
    waits = after(told.course, WaitForChildren("ended", event="done"))
    assert (waits.course.waiting_for, waits.tell) == (WaitingFor.CHILDREN, ())
    assert waited_for(from_json(document.write(waits.course, {}))) == (2, 2)
    one = after(waits.course, end(2, "CANCELLED"))
    assert (one.course.status, waited_for(from_json(document.write(one.course, {})))) == (Status.WAITING, (1, 1))
    assert after(one.course, end(3, "FAILED")).course.status is Status.SUCCEEDED, "however they end"
    assert after(RUNNING, WaitForChildren("ended", event="done")).course.state == "NEXT", "nobody lives"


def test_an_optional_state_outlives_a_failed_child() -> None:
    course = Course("LAST", Status.RUNNING)
    skipped = after(after(course, Spawned(kids(1)), WaitForChildren()).course, end(1, "FAILED"))
    assert skipped.course.status is Status.SUCCEEDED
    by_hand = after(after(course, Spawned(kids(1)), WaitForChildren()).course, Skip("LAST"))
    assert (by_hand.course.status, names(by_hand.tell)) == (Status.SUCCEEDED, ["k1"])


def test_an_undo_may_wait_for_who_was_told_to_end() -> None:
    course = Course("LAST", Status.RUNNING, begun=True)
    undoing = after(after(course, Spawned(kids(2)), WaitForChildren()).course, end(1), Cancel())
    assert (undoing.course.undoing, names(undoing.tell)) == (True, ["k2"])
    waits = after(undoing.course, WaitForChildren("all", "continue"))
    assert (waits.course.waiting_for, waits.tell) == (WaitingFor.CHILDREN, ())
    assert not waits.course.runs
    woken = after(waits.course, end(2, "CANCELLED"))
    assert woken.course.runs
    done = after(woken.course, Go("undone"))
    assert (done.course.status, done.tell) == (Status.CANCELLED, ())
    assert after(woken.course, WaitForChildren()).course.status is Status.FAILED, "there is nobody left"
    assert after(woken.course, WaitForChildren(event="undone")).course.status is Status.CANCELLED


def test_a_pause_leaves_what_is_waited_for() -> None:
    reaction = after(fan(1).course, Pause("me"))
    assert (reaction.paused, reaction.course.waiting_for) == (True, WaitingFor.CHILDREN)
    assert after(reaction.course, end(1)).course.runs


def test_children_stand_in_the_document_and_are_told_from_it() -> None:
    course = after(fan(3, WaitForChildren(bound=2)).course, end(1)).course
    text = document.write(course, {})
    assert document.read(text, course.state).course == course
    assert Child._fields == FIELDS
    told = children(from_json(text))
    assert [shown(one, "RUNNING")["status"] for one in told] == ["SUCCEEDED", "RUNNING", "RUNNING"]
    assert waited_for(from_json(text)) == (2, 3)
    assert waited_for({}) is None
    assert children({"children": ["damaged", 1]}) == []


def test_a_new_run_does_not_do_again_what_succeeded() -> None:
    failed = after(after(fan(3).course, end(1)).course, end(2, "FAILED")).course
    assert failed.status is Status.FAILED
    again = replayed(failed._replace(state="FAN"), PLAN, from_start=False)
    assert [(one.task_id, one.old) for one in again.children] == [("k1", True)]
    met = Spawned((again.children[0]._replace(old=False, run=2), *(one._replace(run=2) for one in kids(2, first=12))))
    reaction = after(again, met, WaitForChildren())
    assert names(reaction.begin) == ["k12", "k13"]
    assert after(reaction.course, end(12, run=2), end(13, run=2)).course.runs
    alone = after(again, Spawned(tuple(one._replace(run=2) for one in kids(1, first=12))), WaitForChildren())
    assert after(alone.course, end(12, run=2)).course.runs, "what was not asked for again is not waited for"


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 8),
    st.sampled_from(["all", "any", 1, 3, 20]),
    st.sampled_from(["fail", "continue"]),
    st.none() | st.integers(1, 4),
    st.lists(st.tuples(st.integers(1, 8), st.sampled_from(["SUCCEEDED", "FAILED", "CANCELLED"])), max_size=40),
)
def test_whatever_comes_each_child_begins_once_and_nobody_waits_for_the_dead(
    count: int, policy: str, on_failure: str, bound: int | None, ends: list[tuple[int, str]]
) -> None:
    wait = WaitForChildren(policy, on_failure, bound=bound)  # type: ignore[arg-type]  # words of the strategy
    reaction = fan(count, wait)
    begun, told, over = [*names(reaction.begin)], set[str](), set[str]()
    rest = [(n, status) for n in range(1, 9) for status in ("SUCCEEDED",)] * 8
    for n, status in [*ends, *rest]:
        if reaction.course.status is not Status.WAITING:
            break
        if f"k{n}" not in begun:
            continue  # only who lives can end
        reaction = after(reaction.course, end(n, status))
        if reaction.ignored is None:
            over.add(f"k{n}")
            begun += names(reaction.begin)
            told |= set(names(reaction.tell))
        assert len(begun) == len(set(begun))
        assert bound is None or len(set(begun) - over) <= bound
    assert reaction.course.runs or reaction.course.status is Status.FAILED, "it came to an end"
    if reaction.course.status is Status.FAILED:
        assert told == set(begun) - over


@pytest.mark.parametrize(
    "wrong", [{"policy": 0}, {"policy": "some"}, {"on_failure": "shrug"}, {"bound": 0}, {"seconds": -1}]
)
def test_what_a_wait_may_not_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"WaitForChildren.{next(iter(wrong))}"):
        WaitForChildren(**wrong)  # type: ignore[arg-type]  # on purpose


def test_a_try_that_fails_spawns_nothing_so_the_next_one_does() -> None:
    assert after(RUNNING, Retry("later")).course.children == ()


def test_a_word_that_is_not_in_the_row_is_found_at_import() -> None:
    with pytest.raises(DefinitionError, match=r'WaitForChildren\(event="gone"\), and its row has done'):

        class Wrong(Mission):
            type = "test.wrong"
            table: ClassVar = {"FAN": {"done": "SUCCEEDED"}}

            @state("FAN")
            async def fan(self, _tools: Toolbox[Any, Any]) -> Outcome:
                return WaitForChildren("any", event="gone")


def test_what_a_wait_may_lead_to_may_stand_in_its_row_and_nothing_else() -> None:
    class Right(Mission):
        type = "test.right"
        table: ClassVar = {"FAN": {"done": "SUCCEEDED", "child_failed": "FAILED", "timed_out": "FAILED"}}

        @state("FAN")
        async def fan(self, _tools: Toolbox[Any, Any]) -> Outcome:
            return WaitForChildren(event="done")

    assert Right.definition.row().events == []
    with pytest.raises(DefinitionError, match="its row has other, which its handler never answers"):

        class Wrong(Mission):
            type = "test.wrong"
            table: ClassVar = {"FAN": {"done": "SUCCEEDED", "other": "FAILED"}}

            @state("FAN")
            async def fan(self, _tools: Toolbox[Any, Any]) -> Outcome:
                return WaitForChildren(event="done")
