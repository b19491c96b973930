"""An error that has too much to say is tried again like any other: its text is no reason to give a mission up."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel

from backend_loop.course import TOLD
from backend_loop.mission import Mission, state, undo
from backend_loop.outcomes import Fail, Go, Outcome
from backend_loop.retry import Retry as Policy
from backend_loop.testing import Bench

LONG = "x" * 2_000_000
"""More than a commit may have."""
THRICE = Policy(tries=3, base_s=0.01)


class Loud(Mission):
    """Fails twice with a whole page as its reason, in its second state or in the undo of the first one."""

    type = "test.loud"
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "TAKING": {"done": "GIVING"},
        "GIVING": {"done": "SUCCEEDED"},
    }

    class Payload(BaseModel):
        """Whether it is to be undone."""

        back: bool

    @state("TAKING", acting=True)
    async def take(self, _tools: Any) -> Outcome:
        return Go("done")

    @undo("TAKING", retry=THRICE)
    async def put_back(self, tools: Any) -> None:
        if tools.attempt < THRICE.tries:
            raise OSError(LONG)

    @state("GIVING", retry=THRICE)
    async def give(self, tools: Any) -> Outcome:
        if tools.payload.back:
            return Fail("no")
        if tools.attempt < THRICE.tries:
            raise OSError(LONG)
        return Go("done")


def tries(log: Any) -> list[int]:
    return [len(event["data"]["error"]) for event in log if event["data"] and event["data"].get("event") == "retry"]


def test_a_state_has_all_its_tries() -> None:
    done = Bench(Loud).run({"back": False})
    assert done.status == "SUCCEEDED", done.told()
    assert tries(done.log) == [TOLD + 1] * 2


def test_an_undo_has_all_its_tries() -> None:
    undone = Bench(Loud).run({"back": True})
    assert undone.document is not None
    assert undone.document["error"]["message"] == "no", "it is undone, and ends as it was to end"
    assert tries(undone.log) == [TOLD + 1] * 2
