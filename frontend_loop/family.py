"""The children of a mission, as its document has them. Pure."""

from collections.abc import Mapping
from typing import Any, Final

FIELDS: Final = (
    *("task_id", "type", "name", "state", "visit", "n", "run", "spec"),
    *("status", "result", "error", "reason", "taken", "cancel", "old", "size"),
    "freshness",
)
"""What a document says of a child, in this order; one that an earlier release wrote says no freshness."""

AT_LEAST: Final = len(FIELDS) - 1

Child = dict[str, Any]


def children(course: Mapping[str, Any]) -> list[Child]:
    """Those of the present run; what is damaged is left out."""
    found = course.get("children")
    if not isinstance(found, list):
        return []
    known = [dict(zip(FIELDS, one, strict=False)) for one in found if isinstance(one, list) and len(one) >= AT_LEAST]
    return [one for one in known if not one["old"]]


def shown(child: Child, status: str | None) -> dict[str, Any]:
    """What is told of a child; `status` is the one of its own record, where it was asked for."""
    return {
        **{name: child[name] for name in ("task_id", "type", "name", "state", "error", "reason")},
        "status": child["status"] or status,
        "begun": child["spec"] is None,
    }


def waited_for(course: Mapping[str, Any]) -> tuple[int, int] | None:
    """Of how many children the end is still waited for, and how many the wait is about; None: it waits for none."""
    if (join := course.get("join")) is None:
        return None
    dying = join[:1] == [0]  # then the wait is about those too whose end an earlier one has wanted
    group = [one for one in children(course) if not one["taken"] or (dying and one["status"] is None)]
    return sum(one["status"] is None for one in group), len(group)
