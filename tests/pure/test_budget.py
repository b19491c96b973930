"""How much of a batch may fail."""

from typing import Any

import pytest

from backend_loop.budget import NONE_MAY_FAIL, Budget


def test_nothing_is_spent_where_nothing_is_limited() -> None:
    assert Budget().spent(10, 10, whole=True) is None


def test_so_many_may_fail_and_not_one_more() -> None:
    budget = Budget(count=3)
    assert budget.spent(3, 3) is None
    assert budget.spent(1000, 4) == "4 of 1000 items failed, and 3 may"
    assert NONE_MAY_FAIL.spent(10, 1) == "1 of 10 items failed, and none may"


def test_the_share_is_looked_at_once_there_are_enough_and_at_the_end() -> None:
    budget = Budget(share=0.5, judged_from=10)
    assert budget.spent(9, 9) is None
    assert budget.spent(10, 5) is None
    assert budget.spent(10, 6) == "6 of 10 items failed, and 50 % of them may"
    assert budget.spent(2, 2, whole=True) is not None
    assert budget.spent(0, 0, whole=True) is None


@pytest.mark.parametrize("percent", range(101))
def test_a_share_may_be_used_up_to_the_last_item(percent: int) -> None:
    budget = Budget(share=percent / 100)
    assert budget.spent(100, percent) is None
    assert budget.spent(100, percent + 1) is not None


def test_both_hold() -> None:
    budget = Budget(count=5, share=0.01, judged_from=100)
    assert budget.spent(10, 5) is None
    assert budget.spent(100, 2) is not None
    assert budget.spent(10_000, 6) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": -1},
        {"count": 1.5},
        {"count": True},
        {"share": 1.1},
        {"share": -0.1},
        {"share": float("nan")},
        {"judged_from": 0},
    ],
)
def test_what_it_cannot_be_is_said(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"Budget\.{next(iter(wrong))}"):
        Budget(**wrong)
