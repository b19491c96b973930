"""What a handler may not answer is refused where it is made, so that it becomes a failed try."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from backend_loop.outcomes import LONGEST_S, Outcome, Retry, Sleep, WaitFor


def _retry(seconds: Any) -> Outcome:
    return Retry("later", after_s=seconds)


def _wait_for(seconds: Any) -> Outcome:
    return WaitFor("KNOCK", seconds)


@pytest.mark.parametrize("make", [Sleep, _retry, _wait_for])
@pytest.mark.parametrize("seconds", [1e300, math.inf, math.nan, -1, -0.001, LONGEST_S + 1, 10**400, "5"])
def test_a_time_that_is_none_is_refused_with_a_sentence(make: Callable[[Any], Outcome], seconds: Any) -> None:
    with pytest.raises(ValueError, match="say seconds from 0 to 31536000"):
        make(seconds)


@pytest.mark.parametrize("make", [Sleep, _retry, _wait_for])
@pytest.mark.parametrize("seconds", [0, 0.0, 1, 0.25, LONGEST_S])
def test_every_other_time_is_taken(make: Callable[[Any], Outcome], seconds: float) -> None:
    assert str(seconds) in repr(make(seconds))
