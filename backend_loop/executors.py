"""Handlers outside of the event loop: in a thread, or in a warm child process that can be killed.

The loop stays free, so leases, cancels and deadlines work while such a handler computes (B17, B18).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from backend_loop.mission import Mission, StateSpec, UndoSpec
from backend_loop.outcomes import ONE_OF_THEM, Fail, Outcome, Retry
from backend_loop.redis_clock import boottime
from backend_loop.step_frames import Frame, heard, pack
from backend_loop.step_lines import ChildLine, ThreadLine
from backend_loop.step_processes import ROOM, BrokenError, Child, Children, DiedError, TooMuchError
from backend_loop.step_threads import Threads
from backend_loop.step_tools import REFUSALS, CutError, Facts, StepTools
from backend_loop.toolbox import Toolbox
from shared.logs import get
from shared.settings import Settings
from shared.status import ErrorCode

log = get(__name__)


class Executors:
    """The threads and child processes of one worker; made once, handed to runners as ``Outside.executors``."""

    def __init__(self, settings: Settings) -> None:
        """Nothing is started yet: threads and children begin when they are needed."""
        self._grace_s = settings.cut_grace_s
        self._limit = ROOM * settings.max_output
        self._threads = Threads(settings.slots + settings.urgent_slots)
        self._children = Children(settings)

    async def call(
        self, spec: StateSpec | UndoSpec, mission: Mission, tools: Toolbox[Any, Any], begins: Callable[[], None]
    ) -> Any:
        """Run a handler whose ``spec.runs`` is ``"thread"`` or ``"process"``; awaited where a loop handler would be.

        To cut it, cancel the awaiting task. A thread is then told by `check` or `checkpoint`, a child gets SIGTERM;
        both have ``cut_grace_s`` to end, and further cancels change nothing meanwhile. If the handler still gives an
        outcome, it is returned; else CancelledError is raised: at once when it has ended, at the latest after the
        grace, when a child is killed with all it has started, and a thread is left behind with a log line that names
        the handler; whatever it answers later is dropped.

        The handler works on a copy of the context; after it has ended ``tools.context`` is what it left.

        Args:
            spec: the state's.
            mission: an instance of the type.
            tools: the run's; the handler gets a `StepTools` with the same facts.
            begins: called when the handler really begins: a thread or child was free, and is ready. The time-out counts
                from there.

        Returns:
            What the handler returned; from a child always an outcome, or None.

        Raises:
            CancelledError: it was cut.
            DeadlinePassedError, LapsedError: the handler asked `check`, and let pass what it said.
            Exception: what a handler in a thread raised, as a loop handler would. What one in a child raises comes back
                as the outcome that `mission.outcome_of` makes of it; a child that dies is a Retry.
        """
        if spec.runs == "thread":
            return await self._in_thread(spec, mission, tools, begins)
        return await self._in_process(spec, mission, tools, begins)

    async def close(self) -> None:
        """End all children, now; threads are left to the end of the process, which does not wait for them."""
        await self._children.close()

    async def _in_thread(
        self, spec: StateSpec | UndoSpec, mission: Mission, tools: Toolbox[Any, Any], begins: Callable[[], None]
    ) -> Any:
        line, context = ThreadLine(tools), tools.context.model_copy(deep=True)
        handed: StepTools[Any, Any] = StepTools(
            Facts.of(tools), envelope=tools.envelope, payload=tools.payload, context=context, line=line
        )
        name = spec.handler.__qualname__
        ended = await self._threads.begin(name, lambda: spec.handler(mission, handed), begins)
        try:
            await asyncio.wait({ended})
        except asyncio.CancelledError:
            line.cut()
            if not await _settled(ended, self._grace_s):
                self._left(name)
                raise
        line.tell()
        tools.context = handed.context
        returned, error = ended.result()
        if error is None:
            return returned
        if line.is_cut and isinstance(error, CutError):
            raise asyncio.CancelledError
        raise error

    def _left(self, name: str) -> None:
        why = 'it was cut and went on: call tools.check() now and then, or use runs="process"'
        log.error("handler left behind", handler=name, after_s=self._grace_s, why=why)

    async def _in_process(
        self, spec: StateSpec | UndoSpec, mission: Mission, tools: Toolbox[Any, Any], begins: Callable[[], None]
    ) -> Any:
        name, request = spec.handler.__qualname__, _request(spec, type(mission), tools)
        try:
            child = await self._children.borrow(type(mission).__module__)
        except (DiedError, BrokenError, OSError) as error:
            return Retry(f"no child process for {spec.name}: {error}")
        begins()
        line = ChildLine(tools)
        answering = asyncio.ensure_future(child.run(request, line.answer, self._limit))
        usable = False
        try:
            answer = await self._answer(name, child, answering, line)
            usable = not child.cut and answer.get("refused") != "cut"
        except DiedError as error:
            if child.cut:
                raise asyncio.CancelledError from None
            log.warning("child process died", handler=name, attempt=tools.attempt, why=str(error))
            return Retry(f"the child process of {spec.name} died: {error}")
        except TooMuchError as error:
            return Fail(f"the outcome of {spec.name} {error}", ErrorCode.TOO_LARGE)
        finally:
            self._children.back(child, usable=usable)
        line.heard(answer)
        return _heard(spec, answer, tools, cut=child.cut)

    async def _answer(self, name: str, child: Child, answering: asyncio.Future[Frame], line: ChildLine) -> Frame:
        """What the child says; if we are cut meanwhile, what it still says within the grace."""
        try:
            await asyncio.wait({answering})
        except asyncio.CancelledError:
            line.cut()
            child.terminate()
            if not await _settled(answering, self._grace_s):
                log.warning("handler killed", handler=name, after_s=self._grace_s)
                child.kill()
                if not await _settled(answering, self._grace_s):  # a busy machine has not buried it yet
                    answering.cancel()
                    raise
        return answering.result()


def _request(spec: StateSpec | UndoSpec, kind: type[Mission], tools: Toolbox[Any, Any]) -> bytes:
    names = {name for base in kind.__mro__ for name, value in vars(base).items() if value is spec.handler}
    run = {
        "module": kind.__module__,
        "class": kind.__qualname__,
        "handler": min(names),
        "state": spec.name,
        "facts": Facts.of(tools).document(),
        "payload": tools.payload,
        "context": tools.context,
        "envelope": tools.envelope,
    }
    return pack({"run": run})


def _heard(spec: StateSpec | UndoSpec, answer: Frame, tools: Toolbox[Any, Any], *, cut: bool) -> Outcome | None:
    """What a handler in a child returned; its context and its traceback."""
    if "context" in answer:
        tools.context = type(tools.context).model_validate(answer["context"])
    if "traceback" in answer:
        *stack, sentence = answer["traceback"].splitlines()
        told = {"exception": answer["traceback"]} if stack and tools.attempt == 1 else {}  # as of a handler in the loop
        log.warning("handler failed", attempt=tools.attempt, error=sentence, **told)
    if "refused" in answer:
        if answer["refused"] != "cut":
            raise REFUSALS[answer["refused"]]
        if cut:
            raise asyncio.CancelledError
        return Retry(f"the child process of {spec.name} was told to end")
    if "returned" in answer:
        sentence = f"the handler of {spec.name} returned {answer['returned']}"
        return Fail(f"{sentence}: {ONE_OF_THEM}")
    return None if answer["outcome"] is None else heard(answer["outcome"])


async def _settled(future: asyncio.Future[Any], within_s: float) -> bool:
    """Whether it is done within this time, whoever cancels us meanwhile."""
    end = boottime() + within_s
    while not future.done() and (left := end - boottime()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait({future}, timeout=left)
    return future.done()
