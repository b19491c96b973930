"""How fast a mission goes and how long it will take, from what it told and when."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dualloop.cli.pace import Pace, line, short
from frontend_loop.progress import Progress

BEGIN = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)


def frame(at_s: float, done: Any, total: float | None = None, state: str = "LOADING") -> dict[str, Any]:
    at = (BEGIN + timedelta(seconds=at_s)).isoformat()
    return {"at": at, "state": state, "progress": {"done": done, "total": total, "message": None}}


def told(*frames: dict[str, Any]) -> Pace:
    pace = Pace()
    for one in frames:
        pace.take(one)
    return pace


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([], ""),
        ([frame(0, 5000, 10_000)], ""),
        ([frame(0, 5000, 10_000), frame(2, 6000, 10_000)], "500/s, 8 s left"),
        ([frame(0, 0, 100), frame(30, 1, 100)], "2/min, 49 min 30 s left"),
        ([frame(0, 0, 3), frame(7200, 1, 3)], "12/d, 4 h left"),
        ([frame(0, 0), frame(0.25, 100), frame(0.5, 200)], "400/s"),
        ([frame(0, 0, 10), frame(1, 10, 10)], "10/s"),
        ([frame(0, 9, 10), frame(1, 12, 10)], "3/s"),
        ([frame(0, 4, 10), frame(9, 4, 10)], ""),
        ([frame(5, 1, 10), frame(5, 2, 10)], ""),
        ([frame(0, 0, 1e12), frame(10, 1, 1e12)], "6/min"),
        ([frame(0, 0, 10, "A"), frame(1, 5, 10, "A"), frame(60, 6, 10, "B")], ""),
        ([frame(0, 8, 10), frame(1, 1, 10), frame(2, 2, 10)], "1/s, 8 s left"),
        ([frame(0, 1, 10), {**frame(1, 2, 10), "at": None}], ""),
        ([frame(0, 1, 10), frame(1, "x"), frame(2, 3, 10)], "1/s, 7 s left"),
    ],
)
def test_words(frames: list[dict[str, Any]], words: str) -> None:
    assert told(*frames).words() == words


def test_the_pace_is_that_of_the_last_minute_or_of_what_is_seldom_told() -> None:
    slow = [frame(at, at, 10_000) for at in range(600)]
    fast = [frame(600 + at / 4, 600 + 25 * at, 10_000) for at in range(4 * 70)]
    assert told(*slow, *fast).words() == "100/s, 24 s left"
    assert len(told(*slow, *fast)._told) == 60
    assert told(frame(0, 1, 3), frame(86_400, 2, 3)).words() == "1/d, 1 d left"


def test_lines() -> None:
    assert line(Progress(3, 4, "one\nand\ttwo."), "1/s, 1 s left") == "3 of 4 (75 %), 1/s, 1 s left: one and two"
    assert line(Progress(3)) == "3"
    assert [short(one) for one in (None, Progress(12_000), Progress(99, 100), Progress(0, 0))] == [
        "",
        "12,000",
        "99 %",
        "0",
    ]
