"""The record's document: what a commit writes, the next worker reads."""

import pytest
from pydantic import BaseModel

from backend_loop import document
from backend_loop.course import Course, Done
from shared.status import Status, WaitingFor


class Context(BaseModel):
    """Any."""

    n: int = 0
    waiting_for: str = "a name that the course has too"


UNDOING = Course(
    "ONE",
    Status.COMPENSATING,
    done=(Done("ONE", 1),),
    undone=(Done("TWO", 1),),
    ending={"status": "FAILED", "state": "TWO", "data": {"code": "permanent"}},
)


def test_a_fresh_mission_has_no_document() -> None:
    assert document.read(b"", "ONE", 3, 2) == (Course("ONE", Status.PENDING), {}, 3, 2)


@pytest.mark.parametrize(
    "course",
    [
        Course("ONE", Status.RUNNING),
        Course("ONE", Status.RUNNING, attempt=3, visits={"ONE": 2}, transitions=9, received={"a": None}),
        Course("ONE", Status.WAITING, waiting_for=WaitingFor.RETRY, wake_at=1_790_000_000_000, attempt=2),
        Course("ONE", Status.WAITING, waiting_for=WaitingFor.EVENT, awaited="X", remembered={"Y": {"z": [1]}}),
        Course("ONE", Status.WAITING, waiting_for=WaitingFor.PERMIT, wake_at=9, blocked=True, tried_at=8),
        Course("ONE", Status.RUNNING, done=(Done("TWO", 1), Done("ONE", 3, maybe=True))),
        UNDOING,
        UNDOING._replace(waiting_for=WaitingFor.RETRY, wake_at=1_790_000_000_000, attempt=2),
    ],
)
def test_what_is_written_is_read(course: Course) -> None:
    back, context, *_ = document.read(document.write(course, Context(n=3)), course.state)
    assert back == course
    assert Context.model_validate(context) == Context(n=3)


def test_only_what_differs_is_written() -> None:
    text = document.write(Course("ONE", Status.RUNNING), Context(n=1))
    assert text == b'{"context":{"n":1,"waiting_for":"a name that the course has too"}}'


def test_version_and_run_are_written_where_they_are_not_the_first() -> None:
    text = document.write(Course("ONE", Status.RUNNING), Context(), version=3, run=2)
    assert document.read(text, "ONE")[2:] == (3, 2)
    assert document.read(document.write(Course("ONE"), Context()), "ONE", 9, 9)[2:] == (1, 1)  # its own word counts


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"context":{},"x":1}'])
def test_what_no_commit_wrote_is_an_error_not_a_guess(text: bytes) -> None:
    with pytest.raises(ValueError, match="not a document of a mission"):
        document.read(text, "ONE")
