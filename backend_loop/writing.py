"""The commits of one runner: what a reaction makes of the mission becomes durable, or the machine reacts once more."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_core import to_json

from backend_loop import decoding, document, entries, giving_up
from backend_loop.machine import HOLD_MS, Course, Reaction, fold
from backend_loop.midway import UNWRITABLE, CheckpointError, Kept
from backend_loop.mission import MissionType
from backend_loop.outcomes import Checkpoint, Fail, Signal, Superseded
from backend_loop.outside import Outside
from backend_loop.reporting import Progress
from backend_loop.rows import rows_of
from backend_loop.store import Act, Claimed, Commit, Move, Store, Written, prepare
from shared import logs
from shared.status import DEAD_LETTERS, ErrorCode, Status, WaitingFor

if TYPE_CHECKING:
    from pydantic import BaseModel

    from shared.envelope import Envelope

log = logs.get(__name__)


class _Write(NamedTuple):
    """A commit, and what holds once it is written; `rows`: bytes of what it causes elsewhere."""

    commit: Commit
    rows: int
    course: Course
    document: bytes
    context: bytes | None
    move: Move
    act: bool
    said: Progress | None


class Writing:
    """Where a mission is under one lease, and each step from there.

    Attributes:
        course, context: of the mission; a context of None could not be read.
        envelope: for the rows of children; None: it could not be read.
        entries: the unread ones, as far as they are known.
        due: one of them ends the handler at a checkpoint.
        place: what the last commit made of it. doubtful: whether Redis still has it so is not known.
        draining: it is handed on at its next commit. dropped: nothing more is made of it.
        committing: a commit is under way.
    """

    def __init__(
        self, claimed: Claimed, definition: MissionType, store: Store, outside: Outside, full: Callable[[], bool]
    ) -> None:
        """Nothing is written yet."""
        self._claimed, self._definition, self._store, self._outside = claimed, definition, store, outside
        self._plan, self._full = definition.plan, full
        self.course = Course(claimed.state, Status.RUNNING)
        self.context: BaseModel | None = None
        self.envelope: Envelope | None = None
        self.entries: tuple[bytes, ...] = claimed.unread
        self.due = self.doubtful = self.draining = self.dropped = self.committing = False
        self.place: Move = "stay"
        self._rev, self._written = claimed.rev, claimed.document
        self._kept: bytes | None = None  # the context in it, once that is known
        self._entered: tuple[str, int] | None = None  # the acting state that no newer intent kept us from (P11)
        self._said: Progress | None = None  # the newest, until a commit carries it
        self._behind: Mapping[str, Any] = {}  # of a record that cannot be read: what is not undone

    def acts(self) -> bool:
        """Whether a newer intent may keep it from the state it is in."""
        return self._acts(self.course)

    def give_up(self, stands: Course) -> None:
        """Its record cannot be read: nothing is undone, which its end says, and its children are told to end."""
        self.course = self.course._replace(children=stands.children)
        self._behind = giving_up.behind(stands, self._definition)

    def is_to_enter(self) -> bool:
        """It is about to act, and nobody has asked since the claim whether a newer intent exists."""
        return self.acts() and self._entered != (self.course.state, self.course.visit)

    def say(self, progress: Progress) -> None:
        """The handler says how far it is: told soon, and with the next commit."""
        self._said, course = progress, self.course
        counts = course.counts or progress.total is not None
        if (course.message, course.counts) != (progress.message, counts):
            self.course = course._replace(message=progress.message, counts=counts)
        if self._outside.reports is not None:
            self._outside.reports.tell(self._claimed, self._rev, progress)

    def _told(self, said: Progress | None) -> None:
        """A commit has carried this; what was said since was said of a commit that is not the last any more."""
        newer = self._said if self._said is not said else None
        self.hush()
        if newer is not None:
            self.say(newer)

    def hush(self) -> None:
        """What its handler has said since the last commit is told no more."""
        if self._said is not None and self._outside.reports is not None:
            self._outside.reports.forget(self._claimed)
        self._said = None

    async def advance(self, before: Sequence[Signal], after: Sequence[Signal], *, act: bool = False) -> None:
        """Make the reaction to signals and entries durable; what comes in meanwhile is reacted to as well (P3)."""
        chance, given_up = random.random(), False  # noqa: S311  jitter, not a secret
        while True:
            unread = self.entries
            try:
                reaction = self._react(before, after, chance)
                if not act and not unread and not reaction.transitions and reaction.course.runs:
                    self.course = reaction.course
                    return
                write = self._prepare(reaction, len(unread), act=act)
            except UNWRITABLE as error:
                if given_up:
                    raise  # it is not what the handler left: released, as after any fault of ours
                given_up = True
                before, after = [self._unkept(f"cannot be written as JSON: {error}", ErrorCode.PERMANENT)], []
                continue
            # refused once: entries and our own verdict are bounded, and what the last commit left was not too much
            if before and not given_up and (why := self._too_much(write)):
                given_up = True
                before, after = [self._unkept(why, ErrorCode.TOO_LARGE)], []
                continue
            answer = await self._send(write)
            if self.dropped:
                raise asyncio.CancelledError
            if answer.word == "superseded":
                after = [*after, Superseded()]
            elif answer.word != "signalled":
                return

    async def keep(self, context: bytes) -> Kept:
        """Write a checkpoint, if there is anything new in the context, or something ends the handler (P3).

        Raises:
            CheckpointError: it is too large.
            LostError: the mission is not ours any more.
        """
        news, course = self._is_new(context), self.course
        if not news and not self.due:
            return Kept(news=False, goes_on=not self.draining)
        self.course = course._replace(begun=True)  # its handler runs: what it was to do may have happened (P21)
        before, after = [Checkpoint()] if news else [], list[Signal]()
        chance = random.random()  # noqa: S311  jitter, not a secret
        while True:
            reaction = self._react(before, after, chance)
            midway: Act = "kept" if news else "runs"
            goes_on = _same_run(course, reaction.course) and not reaction.paused
            write = self._prepare(reaction, len(self.entries), midway=midway if goes_on else "", context=context)
            if news and (why := self._too_much(write)):
                raise CheckpointError(f"the checkpoint of {course.state} {why}", ErrorCode.TOO_LARGE)
            answer = await self._send(write)
            if self.dropped:
                return Kept(news, goes_on=False)
            if answer.word == "superseded":
                after = [*after, Superseded()]
            elif answer.word != "signalled":
                return Kept(news, goes_on=goes_on and self.place == "stay")

    def _react(self, before: Sequence[Signal], after: Sequence[Signal], chance: float) -> Reaction:
        """What the machine makes of them, and of the entries between them."""
        unread = self.entries
        posted = [signal for entry in unread if (signal := entries.read(entry)) is not None] if unread else []
        signals = [*before, *posted, *after]
        reaction = fold(self.course, self._plan, signals, self._outside.clock.now_ms(), chance)
        if not self._behind or reaction.end is None:
            return reaction
        return reaction._replace(end=reaction.end._replace(error={**(reaction.end.error or {}), **self._behind}))

    def _is_new(self, context: bytes) -> bool:
        """Whether the last commit has kept another context."""
        if self._kept is None:
            self._kept = to_json(decoding.context_of(self._written, self._claimed, self._definition))
        return context != self._kept

    def _too_much(self, write: _Write) -> str:
        """A sentence, where it is larger than may be."""
        size, most = write.commit.size, self._outside.max_output
        if size <= most:
            return ""
        children, said = write.course.children, f"has {size} bytes, of {most} allowed"
        if write.rows + len(to_json(children)) <= size / 2:
            return said
        if len(children) == 1:
            return f"{said}, most of them about its child: give it less"
        advice = "wait with a bound, give them less, or spawn missions that spawn"
        return f"{said}, most of them about {len(children)} children: {advice}"

    def _unkept(self, why: str, code: ErrorCode) -> Fail:
        """What a handler left cannot be kept: its context is that of the last commit, but what it did it has done."""
        self.context = decoding.context_of(self._written, self._claimed, self._definition)
        self.course = self.course._replace(begun=True)
        return Fail(f"the outcome of {self.course.state} {why}", code)

    async def _send(self, write: _Write) -> Written:
        """Have it written, unless something is unread of which nothing was known, or a newer intent forbids it."""
        self.committing = True
        try:
            answer = await self._store.commit(write.commit)
        finally:
            self.committing = False
        if answer.word == "signalled":
            self.entries = answer.entries
        elif answer.word != "superseded":
            self.entries, self.due = (), False
            self.doubtful = answer.word == "doubtful"
            self._written_by(write if answer.word == "written" else write._replace(move="yield"))
        return answer

    def _prepare(
        self,
        reaction: Reaction,
        consumed: int,
        *,
        act: bool = False,
        midway: Act = "",
        context: bytes | None = None,
    ) -> _Write:
        course, definition = reaction.course, self._definition
        text = self._written
        if self.context is not None:
            context = to_json(self.context) if context is None else context
            text = document.write(course, context, definition.version, self._claimed.run)
        changed = text if text != self._written else b""
        acts = not midway and self._acts(course) and (act or not self._limited(course))
        move = self._move(reaction, act=acts)
        acts = acts and move == "stay"  # what rests first asks when it comes back, and has replaced nothing until then
        rows = list[bytes]()
        if reaction.begin or reaction.tell:
            rows = rows_of(reaction, self._claimed, self.envelope, self._outside.clock.now_ms())
        commit = prepare(
            self._claimed,
            reaction,
            rev=self._rev,
            consumed=consumed,
            move=move,
            document=changed,
            version=definition.version if changed and definition.version != self._claimed.version else None,
            act=midway or (("begins" if act else "enters") if acts else ""),
            rows=rows,
            progress=self._progress(reaction),
        )
        return _Write(commit, sum(map(len, rows)), course, text, context, move, acts, self._said)

    def _progress(self, reaction: Reaction) -> bytes:
        """Of the children that it waits for, or what its handler has said since the last commit."""
        if reaction.progress is not None:
            return Progress(*reaction.progress, self.course.message).told()
        return b"" if self._said is None else self._said.told()

    def _written_by(self, write: _Write) -> None:
        course = self.course = write.course
        self._rev += 1
        self._written, self._kept = write.document, write.context
        self.place = "stay" if write.move == "offer" else write.move  # nobody wanted the slot
        self._entered = (course.state, course.visit) if write.act else None
        if self._said is not None:
            self._told(write.said)
        if course.wake_at is not None and not course.status.terminal:
            self._outside.wakes((course.wake_at - self._outside.clock.now_ms()) / 1000)
        if course.status.terminal:
            log.often("end", status=course.status, rev=self._rev)
        else:
            log.debug("commit", state=course.state, status=course.status, rev=self._rev)

    def _acts(self, course: Course) -> bool:
        return bool(self._claimed.intent) and course.status is Status.RUNNING and self._plan.states[course.state].acting

    def _limited(self, course: Course) -> bool:
        """Whether it may have to wait for a permit yet: what it wants counts as acted once it has one."""
        return self._outside.admission.limits(self._claimed, self._definition.spec(course), self._definition)

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
            return "offer" if self._claimed.bulk and not act and self._full() else "stay"
        if not course.undoing and self._definition.states[course.state].holds:
            return "wait"
        soon = course.wake_at is not None and course.wake_at - self._outside.clock.now_ms() < HOLD_MS
        return "wait" if course.waiting_for in (WaitingFor.RETRY, WaitingFor.PERMIT) and soon else "leave"


def _same_run(before: Course, after: Course) -> bool:
    """Whether the handler that ran is the one that is to run."""
    same = (after.status, after.state, after.visit) == (before.status, before.state, before.visit)
    return same and after.runs
