"""The way back: what was done is undone in reverse, each visit once, and the log and the result say so."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend_loop.course import Course, Done, Reaction
from backend_loop.machine import fold, react
from backend_loop.outcomes import (
    UNDONE,
    Cancel,
    Complete,
    Deadline,
    Fail,
    Go,
    Happened,
    NoPermit,
    Pause,
    Retry,
    Signal,
    Skip,
    Sleep,
    Stop,
    Superseded,
    WaitFor,
    Wake,
)
from shared.status import ErrorCode, Reason, Status, WaitingFor
from tests.pure.plans import LIMIT, NOW, ORDER, SIGNALS, heard

K = Status.COMPENSATING
CHARGED = (Wake(), Go("reserved"), Go("charged"))
"""RESERVE and CHARGE are done, NOTIFY is next."""


def after(*signals: Signal, course: Course | None = None, now: int = NOW) -> Reaction:
    return fold(course or Course("RESERVE"), ORDER, signals, now, 0.5)


def said(reaction: Reaction) -> list[tuple[str, str, Any]]:
    return [(str(t.status), t.state, t.data) for t in reaction.transitions]


def end_of(reaction: Reaction) -> dict[str, Any]:
    assert reaction.end is not None
    return reaction.end._asdict()


def test_a_failure_undoes_what_was_done_in_reverse_and_then_ends_as_it_would_have() -> None:
    charged = after(*CHARGED, Go("told")).course
    begun = after(Fail("no lorry", ErrorCode.DEVICE_REFUSED), course=charged)
    why = {"code": "device_refused", "error": "no lorry"}
    assert said(begun) == [("COMPENSATING", "CHARGE", {"event": "undo", **why})]
    assert (begun.end, begun.course.undoing, begun.course.runs, begun.course.attempt) == (None, True, True, 1)
    next_ = after(UNDONE, course=begun.course)
    assert said(next_) == [("COMPENSATING", "RESERVE", {"event": "undone", "undone": "CHARGE"})]
    last = after(Go("whatever"), course=next_.course)
    assert said(last) == [("FAILED", "FAILED", {**why, "undone": ["CHARGE", "RESERVE"]})]
    end = end_of(last)
    assert end["result"] == {"undone": ["CHARGE", "RESERVE"]}
    assert (end["error"]["code"], end["error"]["state"], last.course.failed_in) == ("device_refused", "SHIP", "SHIP")


@pytest.mark.parametrize(
    ("signal", "status", "why"),
    [
        (Cancel(Reason.DISCONNECTED), "CANCELLED", {"reason": "disconnected"}),
        (Superseded(), "CANCELLED", {"reason": "superseded"}),
        (Stop(Reason.OVERRIDDEN, {"seen": 1}), "CANCELLED", {"reason": "overridden"}),
        (Deadline(), "FAILED", {"code": "deadline", "error": "the deadline came while in SHIP"}),
        (Fail("no"), "FAILED", {"code": "permanent", "error": "no"}),
        (Fail("x" * 501), "FAILED", {"code": "permanent", "error": "x" * 500 + "…"}),
        (
            Go("nonsense"),
            "FAILED",
            {"code": "permanent", "error": "state SHIP has no event 'nonsense': its row has KNOCK, again, shipped"},
        ),
    ],
)
def test_whatever_ends_it_the_end_waits_for_the_undo(signal: Signal, status: str, why: dict[str, str]) -> None:
    shipping = after(*CHARGED, Go("told")).course
    undoing = after(signal, course=shipping)
    assert said(undoing) == [("COMPENSATING", "CHARGE", {"event": "undo", **why})]
    over = after(UNDONE, UNDONE, course=undoing.course)
    assert said(over)[-1] == (status, status, {**why, "undone": ["CHARGE", "RESERVE"]})
    assert end_of(over)["reason"] == why.get("reason")
    kept = {"seen": 1} if isinstance(signal, Stop) else {}
    assert end_of(over)["result"] == {**kept, "undone": ["CHARGE", "RESERVE"]}


def test_an_act_in_flight_is_undone_first_and_its_undo_is_told_that_it_may_not_have_happened() -> None:
    charging = after(Wake(), Go("reserved")).course
    untouched = after(Cancel(), course=charging).course
    assert untouched.done == (Done("RESERVE", 1),)  # entered, but its handler never ran
    cut = after(Cancel(), course=charging._replace(begun=True))
    assert said(cut)[0] == (
        "COMPENSATING",
        "CHARGE",
        {"event": "undo", "reason": "requested", "may_have_happened": True},
    )
    assert (cut.course.may_have_happened, cut.course.visit, cut.course.begun) == (True, 1, False)
    over = after(UNDONE, course=cut.course)
    assert over.course.may_have_happened is False  # RESERVE said that it was done
    assert "may_have_happened" not in end_of(after(UNDONE, course=over.course))["result"]


def test_a_state_whose_own_word_ends_the_mission_is_looked_at_too() -> None:
    declined = after(Wake(), Go("reserved"), Go("declined", detail="no cover"))
    assert (declined.course.state, declined.course.may_have_happened) == ("CHARGE", True)
    over = after(UNDONE, UNDONE, course=declined.course)
    assert end_of(over)["error"]["message"] == "no cover"
    dropped = after(Wake(), Go("reserved"), Go("dropped"))
    assert end_of(after(UNDONE, UNDONE, course=dropped.course))["reason"] == "requested"


def test_what_needs_no_undo_ends_at_once() -> None:
    for signal in (Cancel(), Deadline(), Fail("no")):
        assert after(Wake(), signal).course.status.terminal  # RESERVE does not act: it was not done


def test_an_undo_has_tries_of_its_own_and_keeps_its_visit() -> None:
    looped = after(*CHARGED, Go("told"), Go("again"), Go("reserved")).course
    assert looped.done == (Done("RESERVE", 1), Done("CHARGE", 1), Done("RESERVE", 2))
    undoing = after(Cancel(), course=looped).course
    assert (undoing.state, undoing.visit) == ("RESERVE", 2)
    waiting = after(Retry("busy", after_s=40), course=undoing)
    assert said(waiting) == [
        ("COMPENSATING", "RESERVE", {"event": "retry", "attempt": 1, "error": "busy", "in_ms": 40_000})
    ]
    course = waiting.course
    assert (course.status, course.waiting_for, course.wake_at) == (K, WaitingFor.RETRY, NOW + 40_000)
    assert (course.runs, course.visit, course.attempt) == (False, 2, 2)
    assert after(Wake(), course=course).ignored is not None
    again = after(Wake(), course=course, now=NOW + 40_000).course
    assert (again.runs, again.visit) == (True, 2)
    rest = after(UNDONE, UNDONE, UNDONE, course=again)
    assert end_of(rest)["result"] == {"undone": ["RESERVE", "CHARGE", "RESERVE"]}


def test_an_undo_that_finally_fails_ends_it_at_once_and_says_what_was_not_undone() -> None:
    undoing = after(*CHARGED, Cancel()).course
    failed = after(Fail("the bank is closed"), course=undoing)
    error = end_of(failed)["error"]
    assert (failed.course.status, error["code"], error["reason"]) == (
        Status.FAILED,
        ErrorCode.COMPENSATION_FAILED,
        "requested",
    )
    assert (error["undone"], error["not_undone"]) == ([], ["CHARGE", "RESERVE"])
    assert error["message"] == "CHARGE could not be undone: the bank is closed"
    later = after(UNDONE, Fail("gone"), course=after(*CHARGED, Go("told"), Fail("no lorry")).course)
    error = end_of(later)["error"]
    assert (error["undone"], error["not_undone"]) == (["CHARGE"], ["RESERVE"])
    assert error["error"]["message"] == "no lorry"
    assert later.course.failed_in == "SHIP"


def test_tries_and_time_of_an_undo_run_out() -> None:
    undoing = after(*CHARGED, Cancel()).course
    second = after(Wake(), course=after(Retry("busy"), course=undoing).course, now=NOW + 500).course
    spent = end_of(after(Retry("busy"), course=second, now=NOW + 500))
    assert spent["error"]["message"] == "CHARGE could not be undone: busy (try 2 of 2)"
    late = end_of(after(Retry("busy", after_s=61), course=undoing))
    assert "the 60 s for all" in late["error"]["message"]


@pytest.mark.parametrize("signal", [WaitFor("KNOCK"), Stop(Reason.REQUESTED)])
def test_an_undo_that_answers_what_it_cannot_is_not_undone(signal: Signal) -> None:
    error = end_of(after(signal, course=after(*CHARGED, Cancel()).course))["error"]
    assert "return nothing, Go, Retry, Sleep or Fail" in error["message"]


def test_on_the_way_back_a_cancel_a_deadline_a_skip_and_an_event_change_nothing() -> None:
    undoing = after(*CHARGED, Cancel()).course
    for signal in (Cancel(), Deadline(), Superseded(), Skip("CHARGE"), Happened("KNOCK")):
        assert react(undoing, ORDER, signal, NOW).ignored is not None


def test_on_the_way_back_it_sleeps_and_waits_for_permits_without_using_a_try() -> None:
    undoing = after(*CHARGED, Cancel()).course
    asleep = after(Sleep(5), course=undoing).course
    assert (asleep.status, asleep.waiting_for, asleep.wake_at) == (K, WaitingFor.TIMER, NOW + 5_000)
    first = after(NoPermit(NOW + 9, "1 of 1 in use"), course=undoing)
    assert said(first) == [("COMPENSATING", "CHARGE", {"event": "no_permit", "why": "1 of 1 in use"})]
    woken = after(Wake(), course=first.course, now=NOW + 9).course
    second = after(NoPermit(NOW + 20), course=woken)
    assert (second.transitions, second.course.wake_at, second.course.attempt) == ((), NOW + 20, 1)


def test_an_undo_does_not_sleep_for_ever() -> None:
    course = after(*CHARGED, Cancel()).course._replace(transitions=2 * LIMIT - 1)
    error = end_of(after(Sleep(1), course=course))["error"]
    assert error["message"] == f"CHARGE could not be undone: more than {2 * LIMIT} transitions"


def test_a_mission_that_met_its_limit_can_still_be_undone() -> None:
    course = after(*CHARGED).course._replace(transitions=LIMIT - 1)
    over = after(Go("told"), UNDONE, UNDONE, course=course)
    assert end_of(over)["error"]["code"] == "too_many_transitions"
    assert end_of(over)["result"] == {"undone": ["CHARGE", "RESERVE"]}


def test_done_by_hand_is_the_present_undo_only() -> None:
    undoing = after(*CHARGED, Cancel()).course
    by_hand = after(Complete(by="ann", note="refunded in the shop"), course=undoing)
    assert said(by_hand) == [
        (
            "COMPENSATING",
            "RESERVE",
            {"event": "completed", "by": "ann", "note": "refunded in the shop", "undone": "CHARGE"},
        )
    ]
    over = after(Complete(by="ann"), course=by_hand.course)
    assert said(over)[-1][2] == {
        "reason": "requested",
        "event": "completed",
        "by": "ann",
        "undone": ["CHARGE", "RESERVE"],
    }


def test_a_completion_that_was_meant_for_the_mission_does_not_hit_an_undo_that_has_just_begun() -> None:
    together = after(Fail("no lorry"), Complete(by="ann"), course=after(*CHARGED, Go("told")).course)
    assert (together.course.state, len(together.course.done)) == ("CHARGE", 2)


def test_a_pause_works_on_the_way_back_and_a_cancel_lifts_it() -> None:
    undoing = after(*CHARGED, Cancel()).course
    paused = after(Retry("busy"), Pause("ann"), course=undoing)
    assert (paused.paused, paused.course.status, paused.course.wake_at) == (True, K, NOW + 500)
    assert said(paused)[-1] == ("PAUSED", "CHARGE", {"event": "paused", "by": "ann"})
    lifted = after(*CHARGED, Pause(), Cancel())
    assert (lifted.paused, lifted.course.undoing) == (False, True)


def _expected(done: Sequence[tuple[str, int]], before: Course, signal: Signal) -> list[tuple[str, int]]:
    """What is to be undone now, oldest first, by the rule alone: the visits done, and what was under way."""
    spec = ORDER.states[before.state]
    by_row = isinstance(signal, Go) and spec.row.get(signal.event) in {"FAILED", "CANCELLED"}
    by_row = by_row or (isinstance(signal, Wake) and spec.row.get("timed_out") == "FAILED")
    if spec.undo is not None and ((spec.acting and before.begun) or by_row):
        return [*done, (before.state, before.visit)]
    return list(done)


@settings(max_examples=600, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(SIGNALS), st.integers(0, 60_000)), min_size=4, max_size=60))
def test_whatever_comes_exactly_what_was_done_is_undone(traffic: list[tuple[Signal, int]]) -> None:
    """Counted by the test on its own: a visit is done when its state is left for another one."""
    ledger, now = _Ledger(), NOW
    begun: list[tuple[Signal, int]] = [(signal, 0) for signal in CHARGED]
    for signal, passed in [*begun, *traffic, *[(UNDONE, 50_000)] * 12]:
        now += passed
        if ledger.course.wake_at is not None and ledger.course.wake_at <= now:
            ledger.step(Wake(), now)
        ledger.step(signal, now)


class _Ledger:
    def __init__(self) -> None:
        self.course = Course("RESERVE")
        self.done: list[tuple[str, int]] = []
        self.left: list[tuple[str, int]] | None = None  # what is still to be undone, oldest first
        self.undone: list[str] = []

    def step(self, signal: Signal, now: int) -> None:
        before = heard(self.course, signal) if self.course.runs else self.course
        reaction = react(before, ORDER, signal, now, 0.5)
        course = self.course = reaction.course
        if before.undoing:
            assert self.left is not None
            for _ in range(len(before.done) - len(course.done)):
                assert (before.state, before.visit) == self.left[-1]
                self.undone.append(self.left.pop()[0])
        elif course.undoing:
            self.left = _expected(self.done, before, signal)
            assert [(one.state, one.visit) for one in course.done] == self.left
        elif course.state != before.state and not course.status.terminal and ORDER.states[before.state].undo:
            self.done.append((before.state, before.visit))
        if reaction.end is not None and self.left is not None:
            error = reaction.end.error or {}
            said_undone = error.get("undone", (reaction.end.result or {}).get("undone"))
            assert (said_undone, error.get("not_undone", [])) == (
                self.undone,
                [state for state, _ in reversed(self.left)],
            )
            assert self.left == [] or error["code"] == ErrorCode.COMPENSATION_FAILED
        elif course.status in {Status.FAILED, Status.CANCELLED} and not before.status.terminal:
            assert _expected(self.done, before, signal) == []  # an end at once: there was nothing to undo
