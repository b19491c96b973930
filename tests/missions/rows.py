"""Says how far it is while it works: rows of a known number first, then an export of which nobody knows the length."""

import asyncio
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from backend_loop.mission import Mission, state
from backend_loop.outcomes import Fail, Go, Outcome
from backend_loop.toolbox import Toolbox


class Rows(Mission):
    """Cleans rows and exports them, at a pace that the payload says."""

    type = "test.rows"
    table = {"CLEANING": {"cleaned": "EXPORTING"}, "EXPORTING": {"exported": "SUCCEEDED"}}

    class Payload(BaseModel):
        """How many, how fast, and at which it fails."""

        total: int = Field(10, ge=1)
        pause_s: float = Field(0.01, ge=0)
        fails_at: int | None = None
        gate: Path | None = Field(None, description="behind the first row it waits until this file is there")

    @state("CLEANING", timeout_s=600)
    async def clean(self, tools: Toolbox["Rows.Payload", Any]) -> Outcome:
        for number in range(tools.payload.total):
            tools.progress(number, tools.payload.total, f"row {number}")
            if number == tools.payload.fails_at:
                return Fail("a row that nobody can read")
            await asyncio.sleep(tools.payload.pause_s)
            while tools.payload.gate is not None and not tools.payload.gate.exists():  # noqa: ASYNC110  another process makes it
                await asyncio.sleep(0.05)
        tools.progress(tools.payload.total, tools.payload.total, "all rows")
        return Go("cleaned")

    @state("EXPORTING", timeout_s=600)
    async def export(self, tools: Toolbox["Rows.Payload", Any]) -> Outcome:
        for number in range(3):
            tools.progress(number)
            await asyncio.sleep(tools.payload.pause_s)
        return Go("exported")
