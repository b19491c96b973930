"""A mission that kills every process it runs in, and gets a little further each time."""

import os
import signal
from typing import Any

from pydantic import BaseModel

from backend_loop.mission import Mission, state, steps, undo
from backend_loop.outcomes import Go, Outcome
from backend_loop.toolbox import Toolbox
from tests.missions.tally import tally


class Creeping(Mission):
    """Books, and then writes a checkpoint with something new before it kills its process, every time."""

    type = "test.creeping"
    table = steps("BOOKING", "WORKING")

    class Context(BaseModel):
        """How often it has begun."""

        begun: int = 0

    @state("BOOKING")
    async def book(self, _tools: Toolbox[Any, Context]) -> Outcome:
        return Go("done")

    @undo("BOOKING")
    async def unbook(self, tools: Toolbox[Any, Context]) -> None:
        tally(tools, "unbooked")

    @state("WORKING", timeout_s=600)
    async def work(self, tools: Toolbox[Any, Context]) -> Outcome:
        tools.context.begun += 1
        await tools.checkpoint()
        tally(tools, f"begin-{os.getpid()}")
        os.kill(os.getpid(), signal.SIGKILL)
        return Go("done")
