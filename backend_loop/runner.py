"""Drives one claimed mission: pure reaction, guarded commit, handler; until it ends, waits, or is not ours any more."""

from collections.abc import Callable
from typing import Any, Final

from backend_loop import decoding, entries, giving_up
from backend_loop.child_missions import children_of
from backend_loop.handling import Handling
from backend_loop.midway import Kept, Midway
from backend_loop.mission import MissionType, StateSpec, UndoSpec
from backend_loop.outcomes import (
    Deadline,
    Fail,
    Go,
    Outcome,
    Pause,
    Retry,
    Sleep,
    Spawned,
    WaitFor,
    WaitForChildren,
    Wake,
)
from backend_loop.outside import Outside
from backend_loop.store import Claimed, Store
from backend_loop.toolbox import Toolbox
from backend_loop.writing import Writing
from shared import logs
from shared.telemetry import Trace, mission_span, state_span

SPAWN: Final = (Go, Sleep, WaitFor, WaitForChildren)
"""Outcomes with which children begin: a try that failed has none."""


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
        self._clear = outside.clear if claimed.bulk else None
        self._handling = Handling(definition, outside)
        self._writing = Writing(claimed, definition, store, outside, full)
        self._lines: logs.bound
        self._signalled = False
        self._read: decoding.Decoded
        self._tools: Toolbox[Any, Any]
        self._spawned: Spawned | None = None

    @property
    def draining(self) -> bool:
        """Whether it is to be handed on at its next commit."""
        return self._writing.draining

    @draining.setter
    def draining(self, value: bool) -> None:
        self._writing.draining = value

    @property
    def committing(self) -> bool:
        """Whether a commit is under way."""
        return self._writing.committing

    @property
    def dropped(self) -> bool:
        """Whether `drop` was called."""
        return self._handling.dropped

    def drop(self) -> None:
        """Nothing more is made of it: its task is about to be cancelled."""
        self._handling.dropped = self._writing.dropped = True

    async def run(self) -> None:
        """Drive the mission.

        Raises:
            LostError: it is not ours any more; nothing more was or will be written.
        """
        if self._clear is not None:
            await self._clear()
        claimed = self.claimed
        ids = {"correlation_id": claimed.correlation_id, "task_id": claimed.task_id}
        with logs.bound(type=claimed.type, **ids) as self._lines:
            refusal = self._decode()
            if refusal is not None:
                await self._writing.advance([refusal], [])
                return
            with mission_span(
                self._read.envelope.traceparent,
                mission_type=claimed.type,
                lane=self._read.envelope.priority,
                task_id=claimed.task_id,
                correlation_id=claimed.correlation_id,
            ) as trace:
                try:
                    await self._drive(trace)
                finally:
                    self._writing.hush()

    async def _drive(self, trace: Trace) -> None:
        if self._late() and not self._writing.course.undoing:
            # a command past its deadline is not run (P14); what was said of it while it was paused counts first
            await self._writing.advance([], [Deadline()])
        else:
            await self._writing.advance([], [Wake()])
        while self._writing.place == "stay" and self._writing.course.runs and not self.draining:
            if self._late() and not self._writing.course.undoing:
                await self._writing.advance([], [Deadline()])
            else:
                await self._step(trace)
                if self._clear is not None and self._writing.place == "stay":
                    await self._clear()
        if self._writing.place == "stay" or self._writing.doubtful:
            await self._store.release(self.claimed.owner, [(self.claimed.task_id, self.claimed.fence)])

    async def _step(self, trace: Trace) -> None:
        """Run the handler of the present state once, or its undo, and commit what it answers."""
        course, admission = self._writing.course, self._outside.admission
        spec = self._definition.spec(course)
        if (refused := await admission.enter(self.claimed, course, spec, self._definition)) is not None:
            await self._writing.advance([refused], [])
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
            outcome, over = await self._handle(spec, span)
            if isinstance(outcome, (Fail, Retry)):
                span.fail(outcome.code, outcome.message)
        await admission.left(self.claimed, spec, outcome)
        if over:
            return
        if self._handling.began and not isinstance(outcome, Go):  # a Go leaves the state behind
            self._writing.course = self._writing.course._replace(begun=True)
        spawned = [self._spawned] if self._spawned is not None and isinstance(outcome, SPAWN) else []
        await self._writing.advance([*spawned, outcome] if outcome is not None else [], [])

    async def _may_begin(self) -> bool:
        """Whether the handler is still to be run: nothing interrupts, and no newer intent keeps it from its act."""
        if self._writing.is_to_enter():
            await self._writing.advance([], [], act=True)
            if self._writing.place != "stay" or self._writing.is_to_enter() or not self._writing.acts():
                return False
        while self._signalled:  # last: what is posted from here on cuts the handler
            self._signalled = False
            if await self._is_interrupted():
                await self._writing.advance([], [])
                return False
        return True

    def _late(self) -> bool:
        return self.claimed.deadline <= self._outside.clock.now_ms()

    async def signal(self) -> None:
        """Something was posted to the inbox: if it interrupts, the handler is cut at its next await."""
        if not self._handling.running:
            self._signalled = True  # between two handlers: the next one looks before it begins
        elif await self._is_interrupted():
            self._signalled = True  # once more: a checkpoint may hear later that it was written before this was posted
            self._handling.interrupt()

    async def _is_interrupted(self) -> bool:
        writing, unread = self._writing, await self._store.inbox(self.claimed.task_id)
        signals = [entries.read(entry) for entry in unread]
        interrupting = entries.INTERRUPTS_AN_UNDO if writing.course.undoing else entries.INTERRUPTS
        interrupted = any(isinstance(signal, interrupting) for signal in signals)
        writing.due = interrupted or any(isinstance(signal, Pause) for signal in signals)
        if writing.due:
            writing.entries = unread
        return interrupted

    def _decode(self) -> Fail | None:
        """Read the record; what cannot be read ends the mission, not the worker."""
        decoded = decoding.decode(self.claimed, self._definition)
        writing = self._writing
        if isinstance(decoded, Fail):
            writing.give_up(giving_up.course_of(self.claimed, self._definition))
            return decoded
        self._read = decoded
        writing.envelope, writing.context, writing.course = decoded.envelope, decoded.context, decoded.course
        return None

    async def _handle(self, spec: StateSpec | UndoSpec, trace: Trace) -> tuple[Outcome | None, bool]:
        """Run a handler. None: it was interrupted, and why is among the unread entries.

        True: a checkpoint of it has led the mission elsewhere, and nothing is made of what it answered.
        """
        writing = self._writing
        midway = Midway(self._handling, self._keep, writing.say)
        tools: Toolbox[Any, Any] = Toolbox(
            claimed=self.claimed,
            course=writing.course,
            envelope=self._read.envelope,
            payload=self._read.payload,
            context=writing.context,
            outside=self._outside,
            trace=trace,
            midway=midway,
        )
        self._tools = tools
        self._lines.also(state=writing.course.state)
        try:
            outcome = await self._handling.run(spec, tools)
            await midway.settled()
        except BaseException:
            midway.drop()
            raise
        self._spawned = Spawned(tools.spawned) if tools.spawned else None
        writing.context = tools.context  # another one, where the handler ran on a copy
        return (None, True) if midway.over else (outcome, False)

    async def _keep(self, context: bytes) -> Kept:
        kept = await self._writing.keep(context)
        self._tools.children = children_of(self._writing.course)
        return kept
