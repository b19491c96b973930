"""Children of a mission, as its handlers see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backend_loop.course import Course
from shared.status import Status


@dataclass(frozen=True, slots=True)
class ChildMission:
    """A mission that this one has spawned; `status`, `result`, `error`, `reason` and `freshness` are those of its end.

    A `result` of more than 16 KiB, or past 512 KiB of all results and errors together, is not here, but where any
    result is: under the child's `task_id`. So large an `error` has the beginning of its message only, or its code.
    """

    task_id: str
    type: str
    name: str | None
    status: str | None
    result: Any
    error: Mapping[str, Any] | None
    reason: str | None
    freshness: Mapping[str, Any] | None = None

    @property
    def ended(self) -> bool:
        """Whether its end was heard of."""
        return self.status is not None

    @property
    def succeeded(self) -> bool:
        """Whether it ended SUCCEEDED."""
        return self.status == Status.SUCCEEDED


def children_of(course: Course) -> tuple[ChildMission, ...]:
    """Those of this run, as their parent's handlers see them."""
    if not course.children:
        return ()
    return tuple(
        ChildMission(one.task_id, one.type, one.name, one.status, one.result, one.error, one.reason, one.freshness)
        for one in course.children
        if not one.old
    )
