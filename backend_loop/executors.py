"""Handlers outside of the event loop: in a thread, or in a warm child process that can be killed.

The loop stays free, so leases, cancels and deadlines work while such a handler computes (B17, B18).
"""

from collections.abc import Callable
from typing import Any

from backend_loop.mission import Mission, StateSpec
from backend_loop.outcomes import Outcome
from backend_loop.toolbox import Toolbox
from shared.settings import Settings


class Executors:
    """The threads and child processes of one worker; made once, handed to runners as ``Outside.executors``."""

    def __init__(self, settings: Settings) -> None:
        """Nothing is started yet: threads and children begin when they are needed."""
        self._settings = settings

    async def call(
        self, spec: StateSpec, mission: Mission, tools: Toolbox[Any, Any], begins: Callable[[], None]
    ) -> Outcome:
        """Run a handler whose ``spec.runs`` is ``"thread"`` or ``"process"``; awaited where a loop handler would be.

        To cut it, cancel the awaiting task. A thread is then told by `StepTools.check`, a child gets SIGTERM; both have
        ``cut_grace_s`` to end, and further cancels change nothing meanwhile. If the handler still gives an outcome, that
        is returned; else CancelledError is raised: at once when it has ended, at the latest after the grace, when a
        child is killed with all it has started, and a thread is left behind with a log line that names the handler;
        whatever it answers later is dropped.

        The handler works on a copy of the context; after it has ended ``tools.context`` is what it left.

        Args:
            spec: the state's.
            mission: an instance of the type.
            tools: the run's; the handler gets a `StepTools` with the same facts.
            begins: called when the handler really begins: a thread or child was free, and is ready. The time-out counts
                from there.

        Raises:
            CancelledError: it was cut.
            DeadlinePassedError, LapsedError: the handler asked `check`, and let pass what it said.
            Exception: what a handler in a thread raised, as a loop handler would. What one in a child raises comes back
                as the outcome that `mission.outcome_of` makes of it; a child that dies is a Retry.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """End all children, now; threads are left to the end of the process, which does not wait for them."""
