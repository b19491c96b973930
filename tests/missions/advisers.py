"""Missions that agents of tests call: one that says what it is told to say, and one that must not be called."""

from typing import Any

from pydantic import BaseModel, Field

from backend_loop.mission import Mission, state
from backend_loop.outcomes import Fail, Go, Outcome
from backend_loop.toolbox import Toolbox
from tests.missions.tally import tally

Tools = Toolbox[Any, Any]


class Letter(Mission):
    """Read a letter that somebody has sent."""

    type = "test.letter"
    table = {"READING": {"read": "SUCCEEDED"}}

    class Payload(BaseModel):
        """What stands in it, and how often."""

        text: str = ""
        times: int = Field(1, ge=0, le=100_000)
        torn: bool = False

    @state("READING")
    async def read(self, tools: Tools) -> Outcome:
        tally(tools)
        if tools.payload.torn:
            return Fail("it is torn")
        return Go("read", result={"text": tools.payload.text * tools.payload.times})


class Danger(Mission):
    """What nobody has allowed."""

    type = "test.danger"
    table = {"EXPLODING": {"exploded": "SUCCEEDED"}}

    class Payload(BaseModel):
        """How loud."""

        loud: int = 0

    @state("EXPLODING")
    async def explode(self, tools: Tools) -> Outcome:
        tally(tools, "danger")
        return Go("exploded")
