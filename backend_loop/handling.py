"""Runs one handler at a time, in the loop or beside it, and cuts it when something interrupts."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from backend_loop.midway import CheckpointError
from backend_loop.mission import MissionType, StateSpec, UndoSpec, foreseen, outcome_of
from backend_loop.outcomes import ONE_OF_THEM, UNDONE, Fail, Outcome, Retry
from backend_loop.outside import Outside
from backend_loop.spawning import SpawnError
from backend_loop.store import LostError
from backend_loop.toolbox import DeadlinePassedError, Toolbox
from shared.logs import get
from shared.status import ErrorCode

log = get(__name__)

AGAIN_S: Final = 1.0
"""A handler that goes on although it was cut is cut again so often."""


class Handling:
    """The handlers of one mission, one after the other.

    Set `dropped` before you cancel its task: then the cancel goes through, and nothing is made of it. `began`: the last
    one did, rather than wait for a thread or a child until it was cut.
    """

    def __init__(self, definition: MissionType, outside: Outside) -> None:
        """Nothing runs yet."""
        self._definition, self._outside = definition, outside
        self._task: asyncio.Task[Any] | None = None
        self._cut = ""  # why we cancelled the handler that runs: "entry" or "timeout"
        self._limit: asyncio.TimerHandle | None = None
        self._timeout_s = self._held_s = 0.0
        self.dropped = self.began = False

    @property
    def running(self) -> bool:
        """Whether a handler runs now."""
        return self._task is not None

    def interrupt(self) -> None:
        """Cut the handler that runs, if one does, since something in the inbox says so."""
        self._cancel("entry")

    def _cancel(self, why: str) -> None:
        """Again and again, since a handler may swallow a cancel."""
        task = self._task
        if task is None:
            return
        self._cut = why if why == "entry" else self._cut or why
        task.cancel()
        self._unlimited()
        self._limit = task.get_loop().call_later(AGAIN_S, self._cancel, why)

    def hold(self) -> float | None:
        """Stop the time-out while a checkpoint is made, which may have to wait for Redis; seconds that were left."""
        if self._limit is None or self._cut:
            return None
        self._limit.cancel()
        left_s = self._limit.when() - asyncio.get_running_loop().time()
        return max(0.0, left_s + self._outside.lease.held_s - self._held_s)

    def limit(self, seconds: float | None) -> None:
        """Go on with so many seconds; None: the time-out counts anew."""
        if self._task is not None and not self._cut:
            seconds = self._timeout_s if seconds is None else seconds
            # by hand: asyncio.timeout costs four times as much, and what cuts a handler is at home here anyway
            self._held_s = self._outside.lease.held_s
            self._limit = self._task.get_loop().call_later(seconds, self._out_of_time)

    def _out_of_time(self) -> None:
        """Cut it, but for the time that a person has held it at a breakpoint since the time-out began to count."""
        held_s = self._outside.lease.held_s - self._held_s
        if held_s > 0:
            self.limit(held_s)
        else:
            self._cancel("timeout")

    def _unlimited(self) -> None:
        if self._limit is not None:
            self._limit.cancel()

    async def run(self, spec: StateSpec | UndoSpec, tools: Toolbox[Any, Any]) -> Outcome | None:
        """The handler's outcome, whatever it does; None: it was interrupted, and why is among the unread entries.

        Raises:
            LostError: the mission is not ours any more.
            CancelledError: it was dropped.
        """
        task = self._task = _this_task()
        self._cut, self.began, self._timeout_s = "", False, spec.timeout_s

        def begins() -> None:
            self.began = True
            self.limit(None)

        try:
            return await self._call(spec, tools, begins)
        except asyncio.CancelledError:
            if self.dropped:
                raise
            if not self._cut:
                return Retry(f"{spec.name} was cancelled from within")
            if self._cut == "entry":
                return None
            return Retry(f"{spec.name} took longer than {spec.timeout_s:g} s", ErrorCode.TIMEOUT)
        finally:
            self._unlimited()
            self._task = None
            self._outside.ran(spec.handler)
            # ours is taken back, also where the handler swallowed it; so is what a task group in it left raised (3.11)
            while task.cancelling() and not self.dropped:
                task.uncancel()

    async def _call(self, spec: StateSpec | UndoSpec, tools: Toolbox[Any, Any], begins: Callable[[], None]) -> Outcome:
        mission = self._definition.mission()
        try:
            if spec.runs == "loop":
                begins()
                outcome: Any = await spec.handler(mission, tools)
            else:
                outcome = await self._outside.executors.call(spec, mission, tools, begins)
        except (SpawnError, CheckpointError, DeadlinePassedError) as error:
            return _refused(error, spec.name)
        except (LostError, asyncio.CancelledError):
            raise
        except BaseException as error:
            # where it comes from is told once a visit, and not at all of what the type foresees
            told = tools.attempt > 1 or foreseen(error, self._definition)
            sentence = f"{type(error).__name__}: {error}"
            log.warning("handler failed", attempt=tools.attempt, error=sentence, exc_info=not told)
            return outcome_of(error, self._definition)
        if isinstance(outcome, Outcome):
            return outcome
        if outcome is None and isinstance(spec, UndoSpec):
            return UNDONE
        return Fail(f"the handler of {spec.name} returned {outcome!r}: {ONE_OF_THEM}")


def _refused(error: SpawnError | CheckpointError | DeadlinePassedError, name: str) -> Fail:
    """What is made of a refusal of ours that a handler has let through."""
    if isinstance(error, DeadlinePassedError):
        return Fail(f"the deadline came while in {name}", ErrorCode.DEADLINE)
    return Fail(str(error), error.code if isinstance(error, CheckpointError) else ErrorCode.PERMANENT)


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise AssertionError("a runner runs in a task")
    return task
