"""A mission that asks where it is."""

from typing import Any

from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome
from backend_loop.toolbox import Toolbox


class Household(Mission):
    """Tells what its worker knows of the home."""

    type = "test.household"
    table = steps("LOOKING")

    @state("LOOKING")
    async def look(self, tools: Toolbox[Any, Any]) -> Outcome:
        home = tools.home
        return Go("done", result={"revision": home.revision, "areas": [area.id for area in home.areas]})
