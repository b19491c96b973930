"""What a run knows of its chunks, by what its children have left."""

from typing import Any

from backend_loop.etl.account import account
from backend_loop.etl.chunk_file import Tally
from backend_loop.pipeline import Line, Stage
from backend_loop.toolbox import ChildMission

LINE = Line((Stage("extract", "etl.extract"), Stage("load", "etl.load")), (10, 10, 10, 10, 10))


def child(name: str, status: str | None, rejected: int = 0, error: str = "") -> ChildMission:
    result = {"rows": 10 - rejected, "rejected": rejected} if status == "SUCCEEDED" else None
    told: dict[str, Any] | None = {"code": "permanent", "message": error} if error else None
    return ChildMission(
        "id", f"etl.{name.partition(':')[0]}", name, status, result, told, None if error else "requested"
    )


def test_each_chunk_is_counted_by_the_last_stage_that_it_is_through() -> None:
    found = account(
        LINE,
        (
            child("extract:0", "SUCCEEDED", 1),
            child("extract:1", "SUCCEEDED", 2),
            child("load:0@17", "SUCCEEDED", 3),
            child("extract:2", "SUCCEEDED", 4),
            child("load:1", None),
            child("load:2", "FAILED", error="the disk is full"),
            child("extract:3", "CANCELLED"),
            child("other", "SUCCEEDED", 9),
        ),
    )
    assert found.loaded == {0: Tally(7, 3)}
    assert found.rejected == 3 + 2
    assert found.failed == {
        2: "etl.load ended FAILED: the disk is full",
        3: "etl.extract ended CANCELLED: requested",
    }
    standing = LINE.standing(found.ends, found.rejected)
    assert (standing.through, standing.lost, standing.live) == (10, 20, 1)
    assert standing.spent == "25 of 50 items failed, and none may"


def test_before_the_first_child_nothing_is_known() -> None:
    assert account(LINE, ()) == ({}, 0, {}, {})
