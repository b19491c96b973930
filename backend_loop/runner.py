"""Drives one claimed mission: pure reaction, guarded commit, handler; until it ends, waits, or is not ours any more."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from backend_loop import decoding, document, entries
from backend_loop.handling import Handling
from backend_loop.machine import HOLD_MS, Course, Reaction, fold
from backend_loop.mission import MissionType, StateSpec, UndoSpec
from backend_loop.outcomes import (
    Deadline,
    Fail,
    Go,
    Outcome,
    Retry,
    Signal,
    Sleep,
    Spawned,
    Superseded,
    WaitFor,
    WaitForChildren,
    Wake,
)
from backend_loop.rows import rows_of
from backend_loop.store import Claimed, Commit, Move, Store, prepare
from backend_loop.toolbox import Outside, Toolbox
from shared import logs
from shared.status import DEAD_LETTERS, ErrorCode, Status, WaitingFor
from shared.telemetry import Trace, mission_span, state_span

log = logs.get(__name__)

SPAWN: Final = (Go, Sleep, WaitFor, WaitForChildren)
"""Outcomes with which children begin: a try that failed has none."""


class _Write(NamedTuple):
    """A commit, and what holds once it is written."""

    commit: Commit
    course: Course
    document: bytes
    move: Move
    act: bool


def _never() -> bool:
    return False


class Runner:
    """One mission under one lease.

    Args:
        claimed: what claim answered.
        definition: its type.
        store: of its shard.
        outside: what handlers may use.
        full: whether others wait for a slot here: then a bulk mission offers its own at each commit (P9).
    """

    _context: BaseModel | None
    """None: it could not be read."""

    def __init__(
        self,
        claimed: Claimed,
        definition: MissionType,
        store: Store,
        outside: Outside,
        full: Callable[[], bool] = _never,
    ) -> None:
        """Nothing runs yet: see `run`.

        Set `draining`, and it hands the mission on at its next commit; call `drop` before you cancel its task. While it
        is `committing`, leave it alone after that if you can: then the answer says what became of the write.
        """
        self.claimed, self._definition, self._store, self._outside = claimed, definition, store, outside
        self._plan, self._full = definition.plan, full
        self._handling = Handling(definition, outside)
        self._rev = claimed.rev
        self._entries: tuple[bytes, ...] = claimed.unread
        self._lines: logs.bound
        self._signalled = False
        self._place: Move = "stay"  # what the last commit made of it
        self._doubtful = False  # whether Redis still has it so is not known
        self._entered: tuple[str, int] | None = None  # the acting state that no newer intent kept us from (P11)
        self.draining = self.committing = False
        self._course: Course
        self._context = None
        self._read: decoding.Decoded
        self._written = claimed.document
        self._spawned: Spawned | None = None

    @property
    def dropped(self) -> bool:
        """Whether `drop` was called."""
        return self._handling.dropped

    def drop(self) -> None:
        """Nothing more is made of it: its task is about to be cancelled."""
        self._handling.dropped = True

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
                self._read.envelope.traceparent,
                mission_type=claimed.type,
                lane=self._read.envelope.priority,
                task_id=claimed.task_id,
                correlation_id=claimed.correlation_id,
            ) as trace:
                await self._drive(trace)

    async def _drive(self, trace: Trace) -> None:
        if self._late() and not self._course.undoing:
            # a command past its deadline is not run (P14); what was said of it while it was paused counts first
            await self._advance([], [Deadline()])
        else:
            await self._advance([], [Wake()])
        while self._place == "stay" and self._course.runs and not self.draining:
            if self._late() and not self._course.undoing:
                await self._advance([], [Deadline()])
            else:
                await self._step(trace)
        if self._place == "stay" or self._doubtful:
            await self._store.release(self.claimed.owner, [(self.claimed.task_id, self.claimed.fence)])

    async def _step(self, trace: Trace) -> None:
        """Run the handler of the present state once, or its undo, and commit what it answers."""
        course, admission = self._course, self._outside.admission
        spec = self._definition.spec(course)
        if (refused := await admission.enter(self.claimed, course, spec, self._definition)) is not None:
            await self._advance([refused], [])
            return
        if not await self._may_begin():
            admission.unused(self.claimed, spec)
            return
        with state_span(
            trace,
            mission_type=self.claimed.type,
            state=course.state,
            attempt=course.attempt,
            undo=course.undoing,
        ) as span:
            outcome = await self._handle(spec, span)
            if self._handling.began and not isinstance(outcome, Go):
                self._course = course._replace(begun=True)  # a Go leaves the state behind
            if isinstance(outcome, (Fail, Retry)):
                span.fail(outcome.code, outcome.message)
        await admission.left(self.claimed, spec, outcome)
        spawned = [self._spawned] if self._spawned is not None and isinstance(outcome, SPAWN) else []
        await self._advance([*spawned, outcome] if outcome is not None else [], [])

    async def _may_begin(self) -> bool:
        """Whether the handler is still to be run: nothing interrupts, and no newer intent keeps it from its act."""
        if self._is_to_enter():
            await self._advance([], [], act=True)
            if self._place != "stay" or self._is_to_enter() or not self._acts(self._course):
                return False
        while self._signalled:  # last: what is posted from here on cuts the handler
            self._signalled = False
            if await self._is_interrupted():
                await self._advance([], [])
                return False
        return True

    def _late(self) -> bool:
        return self.claimed.deadline <= self._outside.clock.now_ms()

    def _acts(self, course: Course) -> bool:
        """Whether a newer intent may keep it from the state it is in."""
        return bool(self.claimed.intent) and course.status is Status.RUNNING and self._plan.states[course.state].acting

    def _limited(self, course: Course) -> bool:
        """Whether it may have to wait for a permit yet: what it wants counts as acted once it has one."""
        return self._outside.admission.limits(self.claimed, self._definition.spec(course), self._definition)

    def _is_to_enter(self) -> bool:
        """It is about to act, and nobody has asked since the claim whether a newer intent exists."""
        course = self._course
        return self._acts(course) and self._entered != (course.state, course.visit)

    async def signal(self) -> None:
        """Something was posted to the inbox: if it interrupts, the handler is cut at its next await."""
        if not self._handling.running:
            self._signalled = True  # between two handlers: the next one looks before it begins
        elif await self._is_interrupted():
            self._handling.interrupt()

    async def _is_interrupted(self) -> bool:
        unread = await self._store.inbox(self.claimed.task_id)
        kinds = entries.INTERRUPTS_AN_UNDO if self._course.undoing else entries.INTERRUPTS
        if any(isinstance(entries.read(entry), kinds) for entry in unread):
            self._entries = unread
            return True
        return False

    def _decode(self) -> Fail | None:
        """Read the record; what cannot be read ends the mission, not the worker."""
        self._course = Course(self.claimed.state, Status.RUNNING)
        decoded = decoding.decode(self.claimed, self._definition)
        if isinstance(decoded, Fail):
            return decoded
        self._read, self._context, self._course = decoded, decoded.context, decoded.course
        return None

    async def _advance(self, before: Sequence[Signal], after: Sequence[Signal], *, act: bool = False) -> None:
        """Make the reaction to signals and entries durable; what comes in meanwhile is reacted to as well (P3)."""
        chance, given_up = random.random(), False  # noqa: S311  jitter, not a secret
        while True:
            unread = self._entries
            posted = [signal for entry in unread if (signal := entries.read(entry)) is not None] if unread else []
            try:
                reaction = fold(
                    self._course, self._plan, [*before, *posted, *after], self._outside.clock.now_ms(), chance
                )
                if not act and not unread and not reaction.transitions and reaction.course.runs:
                    self._course = reaction.course
                    return
                write = self._prepare(reaction, len(unread), act=act)
            except (PydanticSerializationError, ValueError, TypeError, OverflowError) as error:
                if given_up:
                    raise  # it is not what the handler left: released, as after any fault of ours
                given_up = True
                before, after = [self._unkept(f"cannot be written as JSON: {error}", ErrorCode.PERMANENT)], []
                continue
            # refused once: entries and our own verdict are bounded, and what the last commit left was not too much
            if before and not given_up and write.commit.size > self._outside.max_output:
                given_up = True
                detail = f"has {write.commit.size} bytes, of {self._outside.max_output} allowed"
                before, after = [self._unkept(detail, ErrorCode.TOO_LARGE)], []
                continue
            self.committing = True
            answer = await self._store.commit(write.commit)
            self.committing = False
            if self.dropped:
                raise asyncio.CancelledError
            if answer.word == "signalled":
                self._entries = answer.entries
            elif answer.word == "superseded":
                after = [*after, Superseded()]
            else:
                self._entries = ()
                self._doubtful = answer.word == "doubtful"
                self._written_by(write if answer.word == "written" else write._replace(move="yield"))
                return

    def _unkept(self, why: str, code: ErrorCode) -> Fail:
        """What a handler left cannot be kept: its context is that of the last commit, but what it did it has done."""
        self._context = decoding.context_of(self._written, self.claimed, self._definition)
        self._course = self._course._replace(begun=True)
        return Fail(f"the outcome of {self._course.state} {why}", code)

    def _prepare(self, reaction: Reaction, consumed: int, *, act: bool) -> _Write:
        course, definition = reaction.course, self._definition
        text = self._written
        if self._context is not None:
            text = document.write(course, self._context, definition.version, self.claimed.run)
        changed = text if text != self._written else b""
        acts = self._acts(course) and (act or not self._limited(course))
        move = self._move(reaction, act=acts)
        acts = acts and move == "stay"  # what rests first asks when it comes back, and has replaced nothing until then
        commit = prepare(
            self.claimed,
            reaction,
            rev=self._rev,
            consumed=consumed,
            move=move,
            document=changed,
            version=definition.version if changed and definition.version != self.claimed.version else None,
            act=("begins" if act else "enters") if acts else "",
            rows=self._rows(reaction) if reaction.begin or reaction.tell else (),
        )
        return _Write(commit, course, text, move, acts)

    def _rows(self, reaction: Reaction) -> Sequence[bytes]:
        envelope = None if self._context is None else self._read.envelope
        return rows_of(reaction, self.claimed, envelope, self._outside.clock.now_ms())

    def _written_by(self, write: _Write) -> None:
        course = self._course = write.course
        self._rev += 1
        self._written = write.document
        self._place = "stay" if write.move == "offer" else write.move  # nobody wanted the slot
        self._entered = (course.state, course.visit) if write.act else None
        if course.wake_at is not None and not course.status.terminal:
            self._outside.wakes((course.wake_at - self._outside.clock.now_ms()) / 1000)
        if course.status.terminal:
            log.often("end", status=course.status, rev=self._rev)
        else:
            log.debug("commit", state=course.state, status=course.status, rev=self._rev)

    def _move(self, reaction: Reaction, *, act: bool) -> Move:
        course, end = reaction.course, reaction.end
        if course.status.terminal:
            error = end.error if end is not None else None
            return "bury" if error is not None and error["code"] in DEAD_LETTERS else "end"
        if reaction.paused:
            return "pause"
        if course.runs:
            if self.draining:
                return "yield"
            return "offer" if self.claimed.bulk and not act and self._full() else "stay"
        soon = course.wake_at is not None and course.wake_at - self._outside.clock.now_ms() < HOLD_MS
        return "wait" if course.waiting_for in (WaitingFor.RETRY, WaitingFor.PERMIT) and soon else "leave"

    async def _handle(self, spec: StateSpec | UndoSpec, trace: Trace) -> Outcome | None:
        """Run a handler; None: it was interrupted, and why is among the unread entries."""
        tools: Toolbox[Any, Any] = Toolbox(
            claimed=self.claimed,
            course=self._course,
            envelope=self._read.envelope,
            payload=self._read.payload,
            context=self._context,
            outside=self._outside,
            trace=trace,
        )
        self._lines.also(state=self._course.state)
        outcome = await self._handling.run(spec, tools)
        self._spawned = Spawned(tools.spawned) if tools.spawned else None
        self._context = tools.context  # another one, where the handler ran on a copy
        return outcome
