"""What missions share that deal with devices: how one is named, what is expected of it, a look, a row of a result."""

import asyncio
from collections.abc import Iterable
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field

from backend_loop.devices.protocol import DeviceFault, Reading
from backend_loop.toolbox import ChildMission, Toolbox
from shared.clock import now_ms, parse_rfc3339

Entity = Annotated[str, Field(min_length=1, max_length=200, examples=["sensor.front_door"])]
Plain = Annotated[str, Field(max_length=200)] | bool | int | float | None
Expected = Annotated[dict[str, Plain], Field(min_length=1, max_length=20, examples=[{"contact": "closed"}])]
"""The values that a device is to show."""

NOT_BEGUN: Final = "not_begun"
"""Outcome of what an earlier failure has kept from beginning."""


class Looked(NamedTuple):
    """What came of a look, by entity; `remembered`: a bridge told what it knew before it was asked."""

    seen: dict[str, Reading]
    remembered: dict[str, Reading]
    faults: dict[str, DeviceFault]


async def look(tools: Toolbox[Any, Any], entities: Iterable[str], *, within_s: float) -> Looked:
    """Look at all of them, at once."""
    looked = Looked({}, {}, {})

    async def one(entity: str) -> None:
        asked_at = now_ms()
        try:
            reading = await tools.observe(entity, within_s=within_s)
        except DeviceFault as fault:
            looked.faults[entity] = fault
        else:
            into = looked.remembered if reading.observed_at < asked_at else looked.seen
            into[entity] = reading

    async with asyncio.TaskGroup() as group:
        for entity in entities:
            group.create_task(one(entity))
    return looked


def row(said: dict[str, Any], end: ChildMission | None) -> dict[str, Any]:
    """What became of one child: its outcome in one word, what its device showed last, and the error if there is one."""
    if end is None:
        return {**said, "outcome": NOT_BEGUN, "value": None, "error": None, "task_id": None}
    result, error = end.result or {}, end.error
    done = result.get("outcome", "observed") if end.succeeded else error["code"] if error else end.reason
    told = None if error is None else {"code": error["code"], "message": error["message"]}
    return {**said, "outcome": done, "value": result.get("value"), "error": told, "task_id": end.task_id}


def seen_by(ends: Iterable[ChildMission | None], now: int) -> dict[str, Any] | None:
    """The freshness of the oldest observation of all; `verified`: whatever acted has looked after its act.

    Args:
        ends: of missions that have looked or acted; None: one that never began.
        now: epoch ms.
    """
    looked = [end for end in ends if end is not None and end.freshness is not None]
    told = [(parse_rfc3339(end.freshness["observed_at"]), end.freshness) for end in looked if end.freshness is not None]
    if not told:
        return None
    observed_at, first = min(told, key=lambda one: one[0])
    acted = [end for end in looked if not _only_looked(end)]
    verified = bool(acted) and all(end.freshness is not None and end.freshness["verified"] for end in acted)
    return {**first, "age_ms": max(0, now - observed_at), "verified": verified}


def _only_looked(end: ChildMission) -> bool:
    return end.type == "device.query" or (end.result or {}).get("outcome") == "already_done"


def why(end: ChildMission) -> str:
    """Why it did not succeed."""
    return str(end.error["message"] if end.error else end.reason)
