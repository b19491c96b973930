"""Slots: what is kept for urgent missions is theirs first, and they hold nobody else up."""

from backend_loop.slots import Slots
from shared.settings import Settings


def slots(ordinary: int, urgent: int) -> Slots:
    return Slots(Settings(slots=ordinary, urgent_slots=urgent))


def test_urgent_missions_do_not_count_against_the_ordinary_slots() -> None:
    few = slots(3, 2)
    for _ in range(2):
        few.take(urgent=True)
    assert few.free() == (3, 3)


def test_others_leave_what_is_kept_for_urgent_ones() -> None:
    few = slots(3, 2)
    for _ in range(3):
        few.take(urgent=False)
    assert few.full
    assert few.free() == (0, 2)


def test_urgent_missions_may_take_every_slot_and_no_more() -> None:
    few = slots(3, 2)
    for _ in range(5):
        few.take(urgent=True)
    assert few.free() == (0, 0)
    few.give_back(urgent=True)
    assert few.free() == (1, 1)


def test_a_closed_process_takes_nothing() -> None:
    few = slots(3, 2)
    few.open = False
    assert few.free() == (0, 0)
