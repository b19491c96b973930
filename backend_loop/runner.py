"""Drives one claimed mission: pure reaction, guarded commit, handler; until it ends, waits, or is not ours any more."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from backend_loop import document
from backend_loop.machine import HOLD_MS, Course, Reaction, fold
from backend_loop.mission import MissionType, StateSpec
from backend_loop.outcomes import Cancel, Deadline, Fail, Go, Happened, Outcome, Retry, Signal, Wake
from backend_loop.store import Claimed, Commit, LostError, Move, Store, prepare
from backend_loop.toolbox import DeadlinePassedError, Outside, Toolbox
from shared import logs
from shared.envelope import Envelope
from shared.status import ErrorCode, Reason, Status, WaitingFor
from shared.telemetry import Trace, mission_span, state_span

log = logs.get(__name__)

INTERRUPTS = (Cancel, Deadline)
"""What cuts a running handler short; other entries are reacted to at its next commit."""


AGAIN_S: Final = 1.0
"""A handler that goes on although it was cut is cut again so often."""


class _Write(NamedTuple):
    """A commit, and what holds once it is written."""

    commit: Commit
    course: Course
    document: bytes
    move: Move


class Runner:
    """One mission under one lease.

    Args:
        claimed: what claim answered.
        definition: its type.
        store: of its shard.
        outside: what handlers may use.
    """

    def __init__(self, claimed: Claimed, definition: MissionType, store: Store, outside: Outside) -> None:
        """Nothing runs yet: see `run`.

        Set `draining`, and it hands the mission on at its next commit; set `dropped` before you cancel its task.
        """
        self.claimed, self._definition, self._store, self._outside = claimed, definition, store, outside
        self._plan = definition.plan
        self._rev = claimed.rev
        self._entries: tuple[bytes, ...] = claimed.unread
        self._handling: asyncio.Task[Any] | None = None
        self._cut = ""  # why we cancelled the handler that runs: "entry" or "timeout"
        self._limit: asyncio.TimerHandle
        self._lines: logs.bound
        self._signalled = False
        self._kept = True
        self.draining = self.dropped = False
        self._course: Course
        self._context: BaseModel | None = None  # None: could not be read
        self._payload: BaseModel
        self._envelope: Envelope
        self._written = claimed.document

    async def run(self) -> None:
        """Drive the mission.

        Raises:
            LostError: it is not ours any more; nothing more was or will be written.
        """
        claimed = self.claimed
        ids = {"correlation_id": claimed.correlation_id, "task_id": claimed.task_id}
        with logs.bound(type=claimed.type, **ids) as self._lines:
            refusal = self._decode()
            if refusal is not None:
                await self._advance([refusal], [])
                return
            with mission_span(
                self._envelope.traceparent,
                mission_type=claimed.type,
                lane=self._envelope.priority,
                task_id=claimed.task_id,
                correlation_id=claimed.correlation_id,
            ) as trace:
                await self._drive(trace)

    async def _drive(self, trace: Trace) -> None:
        if self._late():
            await self._advance([Deadline()], [])  # a command past its deadline is not run (P14)
        else:
            await self._advance([], [Wake()])
        while self._course.status is Status.RUNNING and not self.draining:
            if self._late():
                await self._advance([Deadline()], [])
                continue
            with state_span(
                trace, mission_type=self.claimed.type, state=self._course.state, attempt=self._course.attempt
            ) as span:
                outcome = await self._handle(span)
                if not isinstance(outcome, Go):
                    self._course = self._course._replace(begun=True)  # a Go leaves the state behind
                if isinstance(outcome, (Fail, Retry)):
                    span.fail(outcome.code, outcome.message)
            await self._advance([outcome] if outcome is not None else [], [])
        if self._kept:
            await self._store.release(self.claimed.owner, [(self.claimed.task_id, self.claimed.fence)])

    def _late(self) -> bool:
        return self.claimed.deadline <= self._outside.clock.now_ms()

    async def signal(self) -> None:
        """Something was posted to the inbox: if it interrupts, the handler is cut at its next await."""
        if self._handling is None:
            self._signalled = True  # between two handlers: the next one looks before it begins
        elif await self._is_interrupted():
            self._cancel("entry")

    def _cancel(self, why: str) -> None:
        """Cut the handler that runs, if one does; again and again, since a handler may swallow a cancel."""
        if self._handling is None:
            return
        self._cut = why if why == "entry" else self._cut or why
        self._handling.cancel()
        self._limit.cancel()
        self._limit = self._handling.get_loop().call_later(AGAIN_S, self._cancel, why)

    async def _is_interrupted(self) -> bool:
        entries = await self._store.inbox(self.claimed.task_id)
        if any(isinstance(_signal(entry), INTERRUPTS) for entry in entries):
            self._entries = entries
            return True
        return False

    def _decode(self) -> Fail | None:
        """Read record, envelope, payload and context; what cannot be read ends the mission, not the worker."""
        claimed, mission = self.claimed, self._definition.mission
        self._course = Course(claimed.state, Status.RUNNING)
        try:
            self._envelope = Envelope.model_validate_json(claimed.envelope)
            self._payload = mission.Payload.model_validate(self._envelope.payload)
            course, context = document.read(claimed.document, claimed.state)
            self._context = mission.Context.model_validate(context)
            # leased before and not committed since: its handler may have run, and with a death a worker was lost in it
            begun = course.begun or course.status is Status.RUNNING or claimed.deaths > 0
            lost = course.lost or claimed.deaths > 0
            self._course = course._replace(begun=begun, lost=lost) if begun or lost else course
        except ValidationError as error:
            at = "/payload" if error.title == mission.Payload.__name__ else ""
            errors = tuple(
                {"pointer": at + "".join(f"/{part}" for part in fault["loc"]), "detail": fault["msg"]}
                for fault in error.errors(include_url=False, include_context=False, include_input=False)[:20]
            )
            return Fail(f"{error.error_count()} faults in {error.title}", ErrorCode.UNDECODABLE, errors=errors)
        except Exception as error:  # noqa: BLE001  an author's validator may raise anything
            return Fail(f"the record cannot be read: {_sentence(error)}", ErrorCode.UNDECODABLE)
        return None

    async def _advance(self, before: Sequence[Signal], after: Sequence[Signal]) -> None:
        """Make the reaction to signals and entries durable; what comes in meanwhile is reacted to as well (P3)."""
        chance = random.random()  # noqa: S311  jitter, not a secret
        while True:
            entries = self._entries
            posted = [signal for entry in entries if (signal := _signal(entry)) is not None] if entries else []
            signals = [*before, *posted, *after]
            try:
                reaction = fold(self._course, self._plan, signals, self._outside.clock.now_ms(), chance)
                if not entries and not reaction.transitions and reaction.course.status is Status.RUNNING:
                    self._course = reaction.course
                    return
                write = self._prepare(reaction, len(entries))
            except (PydanticSerializationError, ValueError, TypeError, OverflowError) as error:
                # what a handler left cannot be kept; the context is again what the last commit wrote
                before, after = [Fail(f"the outcome of {self._course.state} cannot be written as JSON: {error}")], []
                self._context = self._kept_context()
                continue
            if write.commit.size > self._outside.max_output:
                detail = f"the outcome of {self._course.state} has {write.commit.size} bytes"
                before, after = [Fail(f"{detail}, of {self._outside.max_output} allowed", ErrorCode.TOO_LARGE)], []
                self._context = self._kept_context()
                continue
            answer = await self._store.commit(write.commit)
            if answer.word != "signalled":
                self._entries = ()
                self._written_by(write)
                return
            self._entries = answer.entries

    def _kept_context(self) -> BaseModel:
        """The context of the last commit: what a handler has changed since is gone."""
        return self._definition.mission.Context.model_validate(document.read(self._written, self._course.state)[1])

    def _prepare(self, reaction: Reaction, consumed: int) -> _Write:
        course = reaction.course
        text = document.write(course, self._context) if self._context is not None else self._written
        changed = text if text != self._written else b""
        move = self._move(course)
        commit = prepare(self.claimed, reaction, rev=self._rev, consumed=consumed, move=move, document=changed)
        return _Write(commit, course, text, move)

    def _written_by(self, write: _Write) -> None:
        course = self._course = write.course
        self._rev += 1
        self._written = write.document
        self._kept = write.move == "stay"
        if course.wake_at is not None and not course.status.terminal:
            self._outside.wakes((course.wake_at - self._outside.clock.now_ms()) / 1000)
        if write.move == "end":
            log.often("end", status=course.status, rev=self._rev)
        else:
            log.debug("commit", state=course.state, status=course.status, rev=self._rev)

    def _move(self, course: Course) -> Move:
        if course.status.terminal:
            return "end"
        if course.status is Status.RUNNING:
            return "yield" if self.draining else "stay"
        soon = course.wake_at is not None and course.wake_at - self._outside.clock.now_ms() < HOLD_MS
        return "wait" if course.waiting_for is WaitingFor.RETRY and soon else "leave"

    async def _handle(self, trace: Trace) -> Outcome | None:
        """Run the state's handler; None: it was interrupted, and why is among the unread entries."""
        while self._signalled:
            self._signalled = False
            if await self._is_interrupted():
                return None
        course, spec = self._course, self._definition.states[self._course.state]
        tools: Toolbox[Any, Any] = Toolbox(
            claimed=self.claimed,
            course=course,
            envelope=self._envelope,
            payload=self._payload,
            context=self._context,
            outside=self._outside,
            trace=trace,
        )
        task = self._handling = _this_task()
        self._cut = ""
        self._lines.also(state=course.state)
        # by hand: asyncio.timeout costs four times as much, and what cuts a handler is at home here anyway
        self._limit = task.get_loop().call_later(spec.timeout_s, self._cancel, "timeout")
        try:
            return await self._call(spec, tools)
        except asyncio.CancelledError:
            if self.dropped:
                raise
            if not self._cut:
                return Retry(f"{spec.name} was cancelled from within")
            if self._cut == "entry":
                return None
            return Retry(f"{spec.name} took longer than {spec.timeout_s:g} s", ErrorCode.TIMEOUT)
        finally:
            self._limit.cancel()
            self._handling = None
            # ours is taken back, also where the handler swallowed it; so is what a task group in it left raised (3.11)
            while task.cancelling() and not self.dropped:
                task.uncancel()

    async def _call(self, spec: StateSpec, tools: Toolbox[Any, Any]) -> Outcome:
        """The handler's answer, whatever the handler does."""
        try:
            outcome: Any = await spec.handler(self._definition.mission(), tools)
        except DeadlinePassedError:
            return Fail(f"the deadline came while in {spec.name}", ErrorCode.DEADLINE)
        except LostError:
            raise
        except TimeoutError as error:
            return Retry(_sentence(error))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            log.warning("handler failed", attempt=tools.attempt, exc_info=True)
            return Retry(_sentence(error))
        if isinstance(outcome, Outcome):
            return outcome
        return Fail(f"the handler of {spec.name} returned {outcome!r}: return Go, Retry, Fail, Sleep, WaitFor or Stop")


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise AssertionError("a runner runs in a task")
    return task


def _signal(entry: bytes) -> Signal | None:
    """An inbox entry as the machine knows it; one of a later release that it does not know is consumed and ignored."""
    try:
        content: Mapping[str, Any] = from_json(entry)
        match content.get("entry"):
            case "cancel":
                return Cancel(Reason(content.get("reason", Reason.REQUESTED)))
            case "deadline":
                return Deadline()
            case "event":
                return Happened(content["event"], content.get("data") or {})
    except (ValueError, KeyError, AttributeError):
        pass
    log.error("inbox entry ignored", entry=to_json(entry.decode(errors="replace")).decode()[:200])
    return None


def _sentence(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
