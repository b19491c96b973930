"""A new run of a dead letter: limits anew, and the same keys for effects wherever nothing was undone."""

from backend_loop.course import Course, Done
from backend_loop.machine import fold, replayed
from backend_loop.outcomes import UNDONE, Fail, Go, Retry, Signal, WaitFor, Wake
from shared.status import Status
from tests.pure.plans import NOW, ORDER

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
