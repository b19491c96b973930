"""What people and the engine do to a mission that goes forward: pause, skip, complete, supersede, keep waiting."""

import pytest

from backend_loop.course import Course, Done, Plan, Reaction, StatePlan
from backend_loop.machine import fold, react
from backend_loop.outcomes import (
    Cancel,
    Complete,
    Deadline,
    Fail,
    Go,
    Happened,
    NoPermit,
    Pause,
    Resume,
    Retry,
    Signal,
    Skip,
    Sleep,
    Superseded,
    WaitFor,
    Wake,
)
from backend_loop.retry import Retry as Policy
from shared.status import ErrorCode, Reason, Status, WaitingFor
from tests.pure.plans import NOW, ORDER

R, W = Status.RUNNING, Status.WAITING
NOTIFYING = Course("NOTIFY", R, visits={"NOTIFY": 1}, done=(Done("RESERVE", 1), Done("CHARGE", 1)))


def after(*signals: Signal, course: Course | None = None, now: int = NOW, plan: Plan = ORDER) -> Reaction:
    return fold(course or Course(plan.initial), plan, signals, now, 0.5)


def test_a_pause_keeps_everything_but_the_running() -> None:
    paused = after(Retry("busy"), Pause("ann"), course=Course("RESERVE", R))
    assert (paused.paused, paused.course.status, paused.course.wake_at) == (True, W, paused.course.wake_at)
    assert paused.course.waiting_for is WaitingFor.RETRY
    assert paused.transitions[-1] == (Status.PAUSED, "RESERVE", {"event": "paused", "by": "ann"})
    running = after(Pause(), Wake())
    assert (running.paused, running.course.status) == (True, R)
    assert after(Wake(), course=running.course).paused is False  # a place, not a status: the course keeps nothing of it


def test_the_last_word_of_pause_and_resume_wins_and_both_are_told() -> None:
    reaction = after(Pause("ann"), Resume("bob"), course=Course("RESERVE", R))
    assert reaction.paused is False
    assert [t.data for t in reaction.transitions] == [
        {"event": "paused", "by": "ann"},
        {"event": "resumed", "by": "bob"},
    ]
    assert after(Pause(), Resume(), Pause(), course=Course("RESERVE", R)).paused is True


def test_a_resume_of_what_is_not_paused_is_nothing() -> None:
    assert after(Resume("bob"), course=Course("RESERVE", R)).ignored is not None
    assert after(Go("reserved"), Resume("bob"), course=Course("RESERVE", R)).transitions[-1].state == "CHARGE"


@pytest.mark.parametrize("signal", [Cancel(), Deadline(), Superseded(), Complete()])
def test_an_end_or_a_cancel_lifts_a_pause(signal: Signal) -> None:
    assert after(Pause(), signal, course=Course("RESERVE", R)).paused is False
    assert after(Pause(), Go("shipped"), course=Course("SHIP", R)).paused is False
    charging = Course("CHARGE", R, done=(Done("RESERVE", 1),))
    assert after(Pause(), Cancel(), course=charging).paused is False  # what is cancelled is undone, not left lying


def test_an_event_reaches_a_mission_that_is_being_paused() -> None:
    listening = after(WaitFor("KNOCK"), course=Course("SHIP", R)).course
    reaction = after(Pause(), Happened("KNOCK", {"n": 1}), course=listening)
    assert (reaction.paused, reaction.course.state, reaction.course.received) == (True, "RESERVE", {"n": 1})


@pytest.mark.parametrize("course", [NOTIFYING, NOTIFYING._replace(status=W, waiting_for=WaitingFor.TIMER, wake_at=NOW)])
def test_an_operator_skips_an_optional_state(course: Course) -> None:
    reaction = after(Skip("NOTIFY", "ann", "the mailer is down"), course=course)
    assert (reaction.course.state, reaction.course.status, reaction.course.waiting_for) == ("SHIP", R, None)
    assert reaction.transitions[0].data == {"event": "skipped", "by": "ann", "note": "the mailer is down"}


def test_a_skip_of_another_state_or_of_one_that_is_needed_is_nothing() -> None:
    assert react(NOTIFYING, ORDER, Skip("SHIP"), NOW).ignored == "SHIP is not the present state"
    assert react(Course("CHARGE", R), ORDER, Skip("CHARGE"), NOW).ignored == "CHARGE is not optional"


@pytest.mark.parametrize("signal", [Fail("no", ErrorCode.DEVICE_REFUSED), Retry("no", ErrorCode.DEVICE_REFUSED)])
def test_an_optional_state_that_finally_fails_is_skipped(signal: Signal) -> None:
    reaction = after(signal, course=NOTIFYING)
    assert (reaction.course.state, reaction.course.done) == ("SHIP", NOTIFYING.done)
    data = reaction.transitions[0].data
    assert data is not None
    assert (data["event"], data["code"]) == ("skipped", "device_refused")


def test_an_optional_state_that_waits_in_vain_is_skipped() -> None:
    plan = Plan("HEAR", {"HEAR": StatePlan({"KNOCK": "SUCCEEDED"}, skip="KNOCK")})
    waiting = after(Wake(), WaitFor("KNOCK", 5), plan=plan).course
    assert after(Wake(), course=waiting, plan=plan, now=NOW + 5_000).course.status is Status.SUCCEEDED


@pytest.mark.parametrize("signal", [Deadline(), Fail("late", ErrorCode.DEADLINE), Fail("?", ErrorCode.UNDECODABLE)])
def test_what_ends_the_mission_is_not_skipped(signal: Signal) -> None:
    course = NOTIFYING._replace(done=())
    assert after(signal, course=course).course.status is Status.FAILED
    assert after(Fail("no"), course=course._replace(transitions=ORDER.max_transitions)).end is not None


def test_what_a_skipped_act_may_have_done_is_undone_later() -> None:
    row = {"told": "LAST", "skipped": "LAST"}
    plan = Plan(
        "TELL",
        {
            "TELL": StatePlan(row, Policy(tries=1), acting=True, undo=Policy(), skip="skipped"),
            "LAST": StatePlan({"done": "SUCCEEDED"}),
        },
    )
    begun = after(Fail("no"), course=Course("TELL", R, begun=True), plan=plan).course
    assert (begun.state, begun.done) == ("LAST", (Done("TELL", 1, maybe=True),))
    assert after(Skip("TELL"), course=Course("TELL"), plan=plan).course.done == ()  # never begun
    assert after(Cancel(), course=begun, plan=plan).course.may_have_happened is True


@pytest.mark.parametrize(
    "course", [Course("RESERVE"), NOTIFYING, NOTIFYING._replace(status=W, awaited="X", wake_at=None)]
)
def test_done_by_hand_is_a_success_and_says_who_did_it(course: Course) -> None:
    reaction = after(Complete({"paid": "cash"}, "ann", "at the till"), course=course)
    assert reaction.course.status is Status.SUCCEEDED
    assert reaction.end is not None
    assert reaction.end.result == {"paid": "cash"}
    assert reaction.transitions[0].data == {"event": "completed", "by": "ann", "note": "at the till"}
    assert reaction.course.done == ()


def test_a_newer_command_ends_it_before_the_act_and_only_while_it_runs() -> None:
    reaction = after(Go("reserved"), Superseded(), course=Course("RESERVE", R))
    assert reaction.course.undoing  # RESERVE was done
    assert after(Superseded(), course=Course("RESERVE", R)).end == (None, None, None, Reason.SUPERSEDED)
    waiting = after(Sleep(5), course=Course("RESERVE", R)).course
    assert after(Superseded(), course=waiting).ignored is not None


def test_a_wait_for_a_permit_uses_no_try_and_fills_no_log() -> None:
    first = after(NoPermit(NOW + 500, "5 of 5 in use"), course=NOTIFYING)
    assert (first.course.status, first.course.waiting_for, first.course.wake_at) == (W, WaitingFor.PERMIT, NOW + 500)
    assert [t.data for t in first.transitions] == [{"event": "no_permit", "why": "5 of 5 in use"}]
    course = first.course
    for n in range(1, 100):
        course = after(Wake(), course=course, now=NOW + 500 * n).course
        again = after(NoPermit(NOW + 500 * n + 500), course=course)
        assert again.transitions == ()
        course = again.course
    assert (course.attempt, course.transitions, course.wake_at) == (1, first.course.transitions, NOW + 50_000)
    ran = after(Wake(), Retry("busy"), course=course._replace(state="CHARGE"), now=NOW + 60_000).course
    assert (
        after(Wake(), NoPermit(NOW + 90_000), course=ran, now=NOW + 90_000).transitions != ()
    )  # a new wait: said again


LIMITED = Plan(
    "CALL", {"CALL": StatePlan({"done": "SUCCEEDED"}, Policy(tries=99, base_s=10, cap_s=10, max_elapsed_s=60))}
)


def test_the_time_for_all_tries_counts_from_the_first_one_of_the_visit() -> None:
    course = after(Wake(), plan=LIMITED).course
    assert course.tried_at == NOW
    for now in (NOW, NOW + 20_000, NOW + 54_999):
        course = after(Retry("busy"), course=course, now=now, plan=LIMITED).course
        assert (course.waiting_for, course.tried_at) == (WaitingFor.RETRY, NOW)
        course = after(Wake(), course=course, now=now + 5_000, plan=LIMITED).course
    end = after(Retry("busy"), course=course, now=NOW + 59_999, plan=LIMITED).end
    assert end is not None
    assert end.error is not None
    assert (end.error["code"], end.error["attempts"]) == ("retries_exhausted", 4)
    assert "a further one would begin after the 60 s for all" in end.error["message"]


def test_waiting_for_a_first_permit_costs_no_time_of_the_tries() -> None:
    blocked = after(Wake(), NoPermit(NOW + 600_000), plan=LIMITED).course
    assert after(Wake(), course=blocked, now=NOW + 600_000, plan=LIMITED).course.tried_at == NOW + 600_000


def test_each_visit_has_a_time_of_its_own() -> None:
    course = after(Wake(), Go("reserved"), Go("charged"), Go("told"), Go("again")).course
    assert course.tried_at is None  # RESERVE has no such limit
    assert after(Go("reserved"), course=course, now=NOW + 9).course.tried_at == NOW + 9
