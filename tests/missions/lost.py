"""What a lost worker leaves behind: tries that are used up, one that is not, and the key that all of them carry."""

import asyncio
from typing import Any

from pydantic import BaseModel

from backend_loop.mission import Mission, state
from backend_loop.outcomes import Go, Outcome, Retry
from backend_loop.retry import Retry as Policy
from backend_loop.toolbox import Toolbox
from tests.missions.tally import tally


class Worn(Mission):
    """Fails twice of three times, then hangs until its worker is lost; twice through the same state."""

    type = "test.worn"
    table = {"TRYING": {"again": "RESTING", "done": "SUCCEEDED"}, "RESTING": {"rested": "TRYING"}}

    class Context(BaseModel):
        """How often it was here."""

        rounds: int = 0

    @state("TRYING", timeout_s=600, retry=Policy(tries=3, base_s=0.01, cap_s=0.02))
    async def attempt(self, tools: Toolbox[Any, "Worn.Context"]) -> Outcome:
        tally(tools, tools.key)
        if tools.attempt < 3:
            return Retry("as told")
        if tools.context.rounds == 0 and not tools.taken_over:
            await asyncio.Event().wait()
        tools.context.rounds += 1
        return Go("again" if tools.context.rounds == 1 else "done", result={"attempt": tools.attempt})

    @state("RESTING")
    async def rest(self, tools: Toolbox[Any, "Worn.Context"]) -> Outcome:
        tally(tools, tools.key)
        return Go("rested")
