"""What cannot be read says where and why in its one sentence: that is all that a terminal shows."""

import pytest
from pydantic import BaseModel, field_validator

from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome
from backend_loop.testing import Bench
from backend_loop.toolbox import Toolbox


class Even(Mission):
    """Take two even numbers."""

    type = "test.even"
    table = steps("TAKING")

    class Payload(BaseModel):
        n: int
        m: int = 0

        @field_validator("n", "m")
        @classmethod
        def _even(cls, number: int) -> int:
            if number % 2:
                raise ValueError(f"{number} is odd")
            return number

    @state("TAKING")
    async def take(self, tools: Toolbox[Payload, BaseModel]) -> Outcome:
        return Go("done", result={"n": tools.payload.n})


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"n": 3}, "/payload/n: 3 is odd"),
        ({"n": 3, "m": 5}, "/payload/n: 3 is odd, and 1 more"),
    ],
)
def test_the_sentence_names_the_first_fault(payload: dict[str, int], said: str) -> None:
    """A rule that no JSON Schema can say is met behind the door only."""
    mission = Bench(Even).run(payload)
    assert mission.error is not None
    assert (mission.error["code"], mission.error["message"]) == ("undecodable", said)
