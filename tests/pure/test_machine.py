"""The machine's way forward, rule by rule."""

import pytest

from backend_loop.course import Done
from backend_loop.forward import LOGGED
from backend_loop.machine import Course, Plan, Reaction, StatePlan, fold, react
from backend_loop.outcomes import (
    Cancel,
    Deadline,
    Go,
    Happened,
    Retry,
    Signal,
    Sleep,
    WaitFor,
    Wake,
)
from backend_loop.retry import Retry as Policy
from shared.status import ErrorCode, Reason, Status, WaitingFor

NOW = 1_000_000
PLAN = Plan(
    "LOOK",
    {
        "LOOK": StatePlan({"seen": "ACT", "KNOCK": "ACT", "nothing": "SUCCEEDED"}, Policy(tries=3, base_s=1, cap_s=8)),
        "ACT": StatePlan(
            {
                "acted": "LOOK",
                "done": "SUCCEEDED",
                "unconfirmed": "FAILED",
                "dropped": "CANCELLED",
                "timed_out": "FAILED",
            },
            Policy(tries=1),
            acting=True,
        ),
        "LISTEN": StatePlan({"timed_out": "SUCCEEDED", "KNOCK": "CANCELLED"}),
        "HEAR": StatePlan({"timed_out": "CANCELLED", "KNOCK": "SUCCEEDED"}),
        "DOOR": StatePlan({"KNOCK": "FAILED"}),
        "SHUT": StatePlan({"done": "DOOR"}, undo=Policy(tries=1)),
    },
    max_transitions=12,
)


def run(*signals: Signal, course: Course | None = None, now: int = NOW, chance: float = 0.5) -> Reaction:
    """Each signal on top of the last; the last reaction."""
    reaction = Reaction(course or Course("LOOK"))
    for signal in signals:
        reaction = react(reaction.course, PLAN, signal, now, chance)
    return reaction


def test_the_way_through_reads_like_a_story() -> None:
    reaction = fold(Course("LOOK"), PLAN, [Wake(), Go("seen"), Go("done", {"lamp": "on"})], NOW)
    assert [(t.status, t.state) for t in reaction.transitions] == [("RUNNING", "ACT"), ("SUCCEEDED", "SUCCEEDED")]
    assert reaction.course.status is Status.SUCCEEDED
    assert reaction.end is not None
    assert reaction.end.result == {"lamp": "on"}


def test_a_failed_try_waits_longer_each_time_and_then_ends_with_its_own_code() -> None:
    first = run(Wake(), Retry("away", ErrorCode.DEVICE_UNREACHABLE))
    assert (first.course.status, first.course.waiting_for) == (Status.WAITING, WaitingFor.RETRY)
    assert first.course.wake_at == NOW + 500
    second = run(Wake(), Retry("away"), course=first.course, now=NOW + 500)
    assert second.course.wake_at == NOW + 500 + 1000
    third = run(Wake(), Retry("away", ErrorCode.DEVICE_UNREACHABLE), course=second.course, now=NOW + 1500)
    assert third.course.status is Status.FAILED
    assert third.end is not None
    assert third.end.error is not None
    assert (third.end.error["code"], third.end.error["attempts"]) == ("device_unreachable", 3)


def test_the_other_side_may_ask_for_a_longer_pause() -> None:
    assert run(Wake(), Retry("busy", after_s=60)).course.wake_at == NOW + 60_000


def test_a_new_state_begins_with_a_fresh_attempt_and_counts_its_visits() -> None:
    course = run(Wake(), Retry("x")).course
    again = run(Wake(), Go("seen"), Go("acted"), Go("seen"), course=course, now=NOW + 10_000).course
    assert (again.attempt, again.visit, again.visits) == (1, 2, {"LOOK": 2, "ACT": 2})


def test_a_wake_before_its_time_moves_nothing() -> None:
    waiting = run(Wake(), Sleep(5)).course
    early = run(Wake(), course=waiting, now=NOW + 4_999)
    assert early.ignored is not None
    assert early.course == waiting
    assert run(Wake(), course=waiting, now=NOW + 5_000).course.status is Status.RUNNING


def test_an_event_wakes_who_waits_for_it_and_is_remembered_by_who_does_not() -> None:
    waiting = run(Wake(), WaitFor("KNOCK")).course
    assert (waiting.waiting_for, waiting.wake_at) == (WaitingFor.EVENT, None)
    came = run(Happened("KNOCK", {"n": 1}), course=waiting).course
    assert (came.state, came.status, came.received) == ("ACT", Status.RUNNING, {"n": 1})
    early = run(Wake(), Happened("KNOCK", {"n": 2})).course
    assert early.state == "LOOK"
    late = run(WaitFor("KNOCK"), course=early).course
    assert (late.state, late.received, late.remembered) == ("ACT", {"n": 2}, {})


def test_an_event_that_leads_on_is_in_the_log_with_its_data_unless_that_is_large() -> None:
    waiting = run(Wake(), WaitFor("KNOCK")).course
    [line] = run(Happened("KNOCK", {"who": "me"}), course=waiting).transitions
    assert (line.state, line.data) == ("ACT", {"event": "KNOCK", "data": {"who": "me"}})
    [line] = run(Happened("KNOCK", {"x": "y" * (LOGGED - 8)}), course=waiting).transitions
    assert line.data is not None
    assert len(line.data["data"]["x"]) == LOGGED - 8
    [line] = run(Happened("KNOCK", {"x": "y" * (LOGGED - 7)}), course=waiting).transitions
    assert line.data == {"event": "KNOCK"}
    early = run(Wake(), Happened("KNOCK", {"n": 2}))
    assert early.transitions == ()  # it has led nowhere yet
    assert run(WaitFor("KNOCK"), course=early.course).transitions[0].data == {"event": "KNOCK", "data": {"n": 2}}


@pytest.mark.parametrize(
    ("state", "said"),
    [("HEAR", {}), ("LISTEN", {"reason": "requested"}), ("DOOR", {"code": "permanent", "error": "KNOCK"})],
)
def test_so_is_one_that_leads_to_an_end(state: str, said: dict[str, str]) -> None:
    waiting = run(WaitFor("KNOCK"), course=Course(state, Status.RUNNING)).course
    [line] = run(Happened("KNOCK", {"n": 1}), course=waiting).transitions
    assert line.status.terminal
    assert line.data == {"event": "KNOCK", "data": {"n": 1}, **said}


def test_and_beside_the_word_of_an_undo_that_it_leads_to() -> None:
    waiting = run(WaitFor("KNOCK"), course=Course("DOOR", Status.RUNNING, done=(Done("SHUT", 1),))).course
    [line] = run(Happened("KNOCK", {"n": 1}), course=waiting).transitions
    said = {"event": "undo", "code": "permanent", "error": "KNOCK"}
    assert (line.state, line.data) == ("SHUT", {**said, "happened": {"event": "KNOCK", "data": {"n": 1}}})
    [line] = run(Go("undone"), course=run(Happened("KNOCK"), course=waiting).course).transitions
    assert line.data == {"code": "permanent", "error": "KNOCK", "undone": ["SHUT"]}


def test_another_event_does_not_move_the_time_of_a_wait() -> None:
    waiting = run(Wake(), WaitFor("KNOCK", 7)).course
    after = fold(waiting, PLAN, [Happened("nonsense"), Wake()], NOW + 3_000).course
    assert (after.status, after.wake_at, after.awaited) == (Status.WAITING, NOW + 7_000, "KNOCK")


def test_no_event_in_time_takes_the_row_or_fails() -> None:
    listening = Course("LISTEN", Status.RUNNING)
    taken = run(Wake(), course=run(WaitFor("KNOCK", 7), course=listening).course, now=NOW + 7_000)
    assert taken.course.status is Status.SUCCEEDED
    failed = run(Wake(), course=run(Wake(), WaitFor("KNOCK", 7)).course, now=NOW + 7_000)
    assert failed.end is not None
    assert failed.end.error is not None
    assert failed.end.error["code"] == "timeout"


def test_an_event_that_the_row_does_not_know_is_the_author_s_fault_not_a_crash() -> None:
    reaction = run(Wake(), Go("nonsense"))
    assert reaction.course.status is Status.FAILED
    assert reaction.end is not None
    assert reaction.end.error is not None
    assert "nothing, seen" in reaction.end.error["message"].replace("KNOCK, ", "")


def test_an_event_named_as_an_error_code_gives_the_failure_that_code() -> None:
    reaction = run(Wake(), Go("seen"), Go("unconfirmed", {"outcome": "unconfirmed"}, detail="nobody saw it"))
    assert reaction.end is not None
    assert reaction.end.error is not None
    assert (reaction.end.error["code"], reaction.end.error["message"]) == ("unconfirmed", "nobody saw it")
    assert reaction.end.result == {"outcome": "unconfirmed"}


def test_what_ends_an_act_from_outside_says_that_it_may_have_happened() -> None:
    acting = run(Wake(), Go("seen")).course
    untouched = run(Cancel(), course=acting).end
    assert untouched is not None
    assert untouched.result is None  # entered, but its handler never ran
    begun = acting._replace(begun=True)
    retrying = Course("ACT", Status.WAITING, 2, waiting_for=WaitingFor.RETRY, wake_at=NOW + 9, begun=True)
    for course in (begun, retrying):
        for signal in (Cancel(), Deadline()):
            end = run(signal, course=course).end
            assert end is not None
            assert end.result == {"may_have_happened": True, "state": "ACT"}
    assert run(Go("acted"), course=begun).course.begun is False  # the next state has not begun


def test_a_deadline_cancels_what_never_began_and_fails_what_did() -> None:
    fresh = run(Deadline())
    assert (fresh.course.status, fresh.end and fresh.end.reason) == (Status.CANCELLED, Reason.EXPIRED)
    for course in (Course("LOOK", begun=True), Course("LOOK", Status.RUNNING)):
        assert run(Deadline(), course=course).course.status is Status.FAILED


def test_waits_count_as_transitions_too() -> None:
    last = Course("LOOK", Status.RUNNING, transitions=PLAN.max_transitions - 1)
    for signal in (Sleep(1), WaitFor("KNOCK"), Retry("x")):
        end = run(signal, course=last).end
        assert end is not None
        assert end.error is not None
        assert end.error["code"] == "too_many_transitions"


def test_an_outcome_that_ends_the_mission_wins_over_a_cancel_that_came_with_it() -> None:
    reaction = fold(run(Wake(), Go("seen")).course, PLAN, [Go("done"), Cancel()], NOW)
    assert reaction.course.status is Status.SUCCEEDED
    both = fold(run(Wake()).course, PLAN, [Go("seen"), Cancel()], NOW)
    assert [t.state for t in both.transitions] == ["ACT", "CANCELLED"]


def test_too_many_transitions_end_it() -> None:
    course = run(Wake()).course
    for _ in range(20):
        for event in ("seen", "acted"):
            reaction = run(Go(event), course=course)
            course = reaction.course
            if course.status.terminal:
                assert course.transitions == PLAN.max_transitions
                assert reaction.end is not None
                assert reaction.end.error is not None
                assert reaction.end.error["code"] == "too_many_transitions"
                return
    raise AssertionError("it went on for ever")
