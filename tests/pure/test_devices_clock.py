"""The clock of a bridge, as far as one question and its answer can tell."""

from hypothesis import given
from hypothesis import strategies as some

from backend_loop.devices.http import ahead_ms

WAYS = some.integers(0, 5_000)


@given(ahead=some.integers(-90_000_000, 90_000_000), there=WAYS, held=WAYS, back=WAYS)
def test_a_clock_is_known_as_well_as_the_ways_were_short(ahead: int, there: int, held: int, back: int) -> None:
    asked = 1_800_000_000_000
    ours = asked, asked + there + held + back
    theirs = asked + there + ahead, asked + there + held + ahead
    found = ahead_ms(theirs, ours)
    assert -back <= found - ahead <= there
    assert theirs[0] - found >= asked, "what was read for the question was not read before it"


@given(there=WAYS, held=WAYS, back=WAYS)
def test_clocks_that_agree_are_never_corrected(there: int, held: int, back: int) -> None:
    assert ahead_ms((there, there + held), (0, there + held + back)) == 0
