"""A mission whose author has left a breakpoint in it."""

import asyncio
from typing import Any

from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome
from backend_loop.toolbox import Toolbox


class Stops(Mission):
    """Stops for a person to look."""

    type = "test.stops"
    table = steps("LOOKING")

    @state("LOOKING", timeout_s=2.0)
    async def look(self, tools: Toolbox[Any, Any]) -> Outcome:
        breakpoint()  # noqa: T100  what this is about
        await asyncio.sleep(0.1)  # where a handler would be cut
        return Go("done", result={"attempt": tools.attempt, "fence": tools.fence})
