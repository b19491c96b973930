"""A new run of a dead letter: limits anew, and the same keys for effects wherever nothing was undone."""

from backend_loop.course import Course, Done
from backend_loop.machine import fold, replayed
from backend_loop.outcomes import UNDONE, Fail, Go, Retry, Signal, WaitFor, Wake
from shared.status import Status
from tests.pure.plans import NOW, ORDER, PLANS

DONE = (Done("RESERVE", 1), Done("CHARGE", 1))


def after(*signals: Signal, course: Course | None = None) -> Course:
    return fold(course or Course("RESERVE"), ORDER, signals, NOW, 0.5).course


def visits_from(course: Course, *events: str) -> list[tuple[str, int]]:
    """State and visit, the changing parts of a key, of each state on the way."""
    seen = [(course.state, course.visit)]
    for event in events:
        course = after(*([Wake()] if course.status is Status.PENDING else []), Go(event), course=course)
        seen.append((course.state, course.visit))
    return seen


def test_from_the_failed_state_it_goes_on_with_what_it_has() -> None:
    dead = after(Wake(), Go("reserved"), Retry("busy"), course=Course("RESERVE", remembered={"KNOCK": {}}))
    dead = dead._replace(state="CHARGE", failed_in="CHARGE", transitions=11, lost=True, begun=True, done=DONE[:1])
    course = replayed(dead, ORDER, from_start=False)
    assert (course.state, course.status, course.attempt, course.transitions) == ("CHARGE", Status.RUNNING, 1, 0)
    assert (course.waiting_for, course.wake_at, course.lost, course.failed_in) == (None, None, False, None)
    assert (course.visits, course.done, course.remembered) == ({"RESERVE": 1, "CHARGE": 1}, DONE[:1], {"KNOCK": {}})


def test_from_the_start_states_meet_their_old_keys() -> None:
    dead = after(Wake(), Go("reserved"), Go("charged"))._replace(failed_in="NOTIFY", state="RESERVE", done=())
    course = replayed(dead, ORDER, from_start=True)
    assert course == Course("RESERVE", visits={})
    assert visits_from(course, "reserved", "charged") == [("RESERVE", 1), ("CHARGE", 1), ("NOTIFY", 1)]


def test_what_was_undone_is_done_again_under_a_key_of_its_own() -> None:
    dead = after(Wake(), Go("reserved"), Go("charged"), Go("told"), Fail("no lorry"), UNDONE, UNDONE)
    assert (dead.status, dead.undone) == (Status.FAILED, (Done("CHARGE", 1), Done("RESERVE", 1)))
    course = replayed(dead._replace(state="SHIP"), ORDER, from_start=False)  # it cannot go on in a state left behind
    assert (course.state, course.done, course.undone) == ("RESERVE", (), ())
    assert visits_from(course, "reserved", "charged", "told") == [
        ("RESERVE", 2),
        ("CHARGE", 2),
        ("NOTIFY", 1),
        ("SHIP", 1),
    ]


def test_what_could_not_be_undone_keeps_its_key_so_that_it_is_not_done_twice() -> None:
    dead = after(Wake(), Go("reserved"), Go("charged"), Go("told"), Fail("no lorry"), UNDONE, Fail("gone"))
    assert (dead.undone, dead.done) == ((Done("CHARGE", 1),), (Done("RESERVE", 1),))
    course = replayed(dead._replace(state="RESERVE"), ORDER, from_start=True)
    assert visits_from(course, "reserved", "charged") == [("RESERVE", 1), ("CHARGE", 2), ("NOTIFY", 1)]


def test_a_failed_compensation_that_undid_nothing_goes_on_where_the_mission_failed() -> None:
    begun = after(Wake(), Go("reserved"))._replace(begun=True)
    dead = after(Fail("no"), Fail("the bank is closed"), course=begun)
    assert dead.failed_in == "CHARGE"
    course = replayed(dead._replace(state="CHARGE"), ORDER, from_start=False)
    assert (course.state, course.done) == ("CHARGE", (Done("RESERVE", 1),))  # CHARGE is under way again, not done


def test_a_record_that_still_names_its_end_goes_on_where_it_failed() -> None:
    dead = after(Wake(), Go("reserved"), course=Course("RESERVE"))._replace(done=(), failed_in="CHARGE", state="FAILED")
    assert replayed(dead, ORDER, from_start=False).state == "CHARGE"


def test_a_wait_is_not_taken_over() -> None:
    waiting = after(Wake(), WaitFor("KNOCK"))._replace(state="RESERVE")
    assert replayed(waiting, ORDER, from_start=False).awaited is None


def test_what_was_given_up_amid_its_undos_goes_on_undoing() -> None:
    undoing = after(Wake(), Go("reserved"), Go("charged"), Go("told"), Fail("no lorry"), UNDONE, Retry("busy"))
    course = replayed(undoing, ORDER, from_start=False)
    assert (course.undoing, course.runs, course.state, course.visit, course.attempt) == (True, True, "RESERVE", 1, 1)
    over = after(UNDONE, course=course)
    assert (over.status, over.failed_in, [one.state for one in over.undone]) == (
        "FAILED",
        "SHIP",
        ["CHARGE", "RESERVE"],
    )
    anew = replayed(undoing, ORDER, from_start=True)
    assert visits_from(anew, "reserved", "charged") == [("RESERVE", 1), ("CHARGE", 2), ("NOTIFY", 1)]


def test_what_an_earlier_run_has_undone_keeps_no_later_run_from_a_key_of_its_own() -> None:
    first = after(Wake(), Go("reserved"), Go("charged"), Go("told"), Fail("no lorry"), UNDONE, UNDONE)
    second = replayed(first, ORDER, from_start=True)
    # it fails before it comes to CHARGE again, so that this run undoes RESERVE alone
    ended = after(Wake(), Go("none"), UNDONE, course=second)
    assert (ended.status, ended.undone) == (Status.FAILED, (Done("RESERVE", 2, maybe=True),))
    third = replayed(ended, ORDER, from_start=True)
    assert visits_from(third, "reserved", "charged")[:2] == [("RESERVE", 3), ("CHARGE", 2)]


def test_what_could_not_be_undone_of_a_later_run_gives_no_old_key_back() -> None:
    first = after(Wake(), Go("reserved"), Go("charged"), Go("told"), Fail("no lorry"), UNDONE, UNDONE)
    ways: list[Signal] = [
        Wake(),
        Go("reserved"),
        Go("charged"),
        Go("told"),
        Fail("no lorry"),
        Fail("the bank is closed"),
    ]
    second = after(*ways, course=replayed(first, ORDER, from_start=True))
    assert (second.undone, second.done) == ((), (Done("RESERVE", 2), Done("CHARGE", 2)))
    third = replayed(second, ORDER, from_start=True)
    assert visits_from(third, "reserved", "charged")[:2] == [("RESERVE", 2), ("CHARGE", 2)]
    going_on = replayed(second._replace(state="SHIP"), ORDER, from_start=False)
    assert going_on.spent == third.spent == {"RESERVE": 1, "CHARGE": 1}


def test_the_failed_state_is_told_again_what_led_into_it() -> None:
    dead = after(Fail("no lorry"), course=Course("SHIP", Status.RUNNING, received={"n": 1}))
    assert replayed(dead._replace(state="SHIP"), ORDER, from_start=False).received == {"n": 1}
    assert replayed(dead._replace(state="RESERVE"), ORDER, from_start=True).received is None


def test_what_an_event_told_goes_to_the_state_that_it_led_into_and_no_further() -> None:
    told = Course("NOTIFY", Status.RUNNING, received={"n": 1})
    assert after(Go("told"), course=told).received is None
    skipped = after(Fail("nobody is in"), course=told)
    assert (skipped.state, skipped.received) == ("SHIP", None)
    plan = next(one for one in PLANS if "ONLY" in one.states and one.states["ONLY"].row["timed_out"] == "NEXT")
    late = Course("ONLY", Status.WAITING, awaited="KNOCK", wake_at=NOW, received={"n": 1})
    timed_out = fold(late, plan, [Wake()], NOW).course
    assert (timed_out.state, timed_out.received) == ("NEXT", None)
