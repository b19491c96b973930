"""What the missions of a home share: how a device and what is expected of it are written, and a row of a result."""

from typing import Annotated, Any, Final

from pydantic import Field

from backend_loop.toolbox import ChildMission

Entity = Annotated[str, Field(min_length=1, max_length=200, examples=["sensor.front_door"])]
Plain = Annotated[str, Field(max_length=200)] | bool | int | float | None
Expected = Annotated[dict[str, Plain], Field(min_length=1, max_length=20, examples=[{"contact": "closed"}])]
"""The values that a device is to show."""

NOT_BEGUN: Final = "not_begun"
"""Outcome of what an earlier failure has kept from beginning."""


def row(said: dict[str, Any], end: ChildMission | None) -> dict[str, Any]:
    """What became of one child: its outcome in one word, what its device showed last, and the error if there is one."""
    if end is None:
        return {**said, "outcome": NOT_BEGUN, "value": None, "error": None, "task_id": None}
    result, error = end.result or {}, end.error
    done = result.get("outcome", "observed") if end.succeeded else error["code"] if error else end.reason
    told = None if error is None else {"code": error["code"], "message": error["message"]}
    return {**said, "outcome": done, "value": result.get("value"), "error": told, "task_id": end.task_id}


def why(end: ChildMission) -> str:
    """Why it did not succeed."""
    return str(end.error["message"] if end.error else end.reason)
