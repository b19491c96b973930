"""What has to queue: one at a time of a type, and a shop that is closed."""

import asyncio
from typing import Any, Final

from backend_loop.dependency import Breaker, Dependency
from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome, Retry
from backend_loop.retry import Retry as Policy
from backend_loop.toolbox import Toolbox

SHOP: Final = Dependency("shop", breaker=Breaker(failures=1, open_s=600))


class Desk(Mission):
    """One at a time, over all workers; it is served for as long as nobody cancels it."""

    type = "test.desk"
    concurrency = 1
    table = steps("SERVING")

    @state("SERVING", timeout_s=600)
    async def serve(self, _tools: Toolbox[Any, Any]) -> Outcome:
        await asyncio.Event().wait()
        return Go("done")


class Shopping(Mission):
    """The shop is closed, so it is left alone after the first try."""

    type = "test.shopping"
    table = steps("BUYING")

    @state("BUYING", uses=(SHOP,), retry=Policy(tries=100, base_s=0.01, cap_s=0.01))
    async def buy(self, tools: Toolbox[Any, Any]) -> Outcome:
        return Retry("closed") if tools.attempt < 100 else Go("done")
