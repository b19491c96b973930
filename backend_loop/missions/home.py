"""What missions share that deal with devices: how one is named, what is expected of it, a look at many."""

import asyncio
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from backend_loop.devices.protocol import DeviceFault, Reading
from backend_loop.toolbox import Toolbox
from shared.clock import now_ms

Entity = Annotated[str, Field(min_length=1, max_length=200, examples=["sensor.front_door"])]
Plain = Annotated[str, Field(max_length=200)] | bool | int | float | None
Expected = Annotated[dict[str, Plain], Field(min_length=1, max_length=20, examples=[{"contact": "closed"}])]
"""The values that a device is to show."""


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
