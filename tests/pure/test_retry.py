"""B46: exponential, full jitter, capped."""

from hypothesis import given
from hypothesis import strategies as st

from backend_loop.retry import Retry


@given(st.integers(1, 10_000), st.floats(0, 0.999999))
def test_a_pause_is_between_zero_and_the_cap(attempt: int, chance: float) -> None:
    assert 0 <= Retry(base_s=0.2, cap_s=30).pause_ms(attempt, chance) <= 30_000


def test_it_doubles_up_to_the_cap() -> None:
    policy = Retry(base_s=0.2, cap_s=1.0)
    assert [policy.pause_ms(attempt, 0.5) for attempt in (1, 2, 3, 4, 5)] == [100, 200, 400, 500, 500]


def test_full_jitter_spreads_from_zero() -> None:
    assert Retry(base_s=1).pause_ms(1, 0.0) == 0
