"""A mission that no process of its own can run: its module says no to being imported there."""

import os
import signal
import sys
from typing import Any

from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Outcome
from backend_loop.toolbox import Toolbox

if getattr(sys.modules["__main__"].__spec__, "name", "") == "backend_loop.solo":
    raise ImportError("not here")


class Unborn(Mission):
    """Kills its worker."""

    type = "test.unborn"
    table = steps("WORKING")

    @state("WORKING")
    async def work(self, tools: Toolbox[Any, Any]) -> Outcome:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError(tools.task_id)
