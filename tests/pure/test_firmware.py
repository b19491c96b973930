"""How much of a rollout may fail, who goes first, and until when it is waited."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend_loop.missions.firmware_rollout import FirmwareRollout, _first, spread, wave
from backend_loop.outcomes import WaitForChildren

Budget = FirmwareRollout.Payload.Budget


@pytest.mark.parametrize(
    ("budget", "total", "may"),
    [
        ({"share": 0.05}, 500, 25),
        ({"share": 0.05}, 19, 0),
        ({"share": 0.29}, 100, 29),
        ({"count": 3}, 500, 3),
        ({"count": 3, "share": 0.5}, 4, 2),
        ({"count": 3, "share": 0.5}, 100, 3),
        ({}, 7, 7),
        ({"share": 1}, 7, 7),
    ],
)
def test_the_lower_of_count_and_share_may_fail(budget: dict[str, float], total: int, may: int) -> None:
    assert Budget.model_validate(budget).budget.allowed(total) == may


@given(st.integers(0, 600), st.integers(0, 100))
def test_canaries_are_spread_over_all(total: int, count: int) -> None:
    gadgets = [f"g{n}" for n in range(total)]
    chosen = spread(gadgets, count)
    assert len(chosen) == len(set(chosen)) == min(count, total)
    places = [gadgets.index(one) for one in chosen]
    assert places == sorted(places)
    if len(places) > 1:
        gaps = [after - before for before, after in pairwise(places)]
        assert max(gaps) - min(gaps) <= 1


def test_a_wave_is_waited_for_until_the_rest_may_fail_or_too_many_have() -> None:
    assert wave(10, 2, 5) == WaitForChildren(8, "fail", bound=5)
    assert wave(10, 0, 5) == WaitForChildren(10, "fail", bound=5)
    assert wave(2, 2, 5) == WaitForChildren("ended", bound=5), "all of them may fail"


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("no answer", "the first one is g1, device_unreachable: no answer"),
        (None, "the first one is g1, device_unreachable"),
    ],
)
def test_the_one_that_stands_for_all_that_failed_is_told_in_words(message: str | None, said: str) -> None:
    line = {"gadget": "g1", "status": "FAILED", "said": "device_unreachable", "message": message, "task_id": "t"}
    assert _first(line) == said
