"""What a handler outside of the event loop is given: the facts of its run, and the question whether it may go on."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from pydantic import BaseModel

from backend_loop.files import NO_FILES, File, Files
from backend_loop.redis_clock import boottime
from backend_loop.reporting import Progress, progress
from backend_loop.store import LapsedError
from backend_loop.toolbox import DeadlinePassedError, Toolbox
from shared.envelope import Envelope

LOOK_S: Final = 1.0
"""How often a run that writes without checkpoints is asked how much it has written."""

P = TypeVar("P", bound=BaseModel)
C = TypeVar("C", bound=BaseModel)


class CutError(BaseException):
    """This run was cut: a cancel, its deadline or time-out, a lost lease or the end of the worker.

    Like `asyncio.CancelledError` it is no `Exception`: let it pass. What was to be tidied up may be, within the grace.
    """


REFUSALS: Final[Mapping[str, type[BaseException]]] = {
    "cut": CutError,
    "deadline": DeadlinePassedError,
    "lapsed": LapsedError,
}
"""Why a handler may not go on, by the words that a worker and its child use for it."""


def refused(refusal: BaseException) -> str:
    """The word of a refusal."""
    return next(word for word, kind in REFUSALS.items() if isinstance(refusal, kind))


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run before it begins; goes to a child process as it is.

    Args:
        ends_at: the mission's deadline, seconds on `redis_clock.boottime`, which all processes of a machine share.
        received: data of the outside event that led into the state.
        files: the folder of the files that missions make; None: there is none. max_files: bytes that one's may have.
        database: URL of the database.
        data: folder of the files that missions may read.
    """

    task_id: str
    correlation_id: str
    key: str
    fence: int
    attempt: int
    visit: int
    taken_over: bool
    may_have_happened: bool
    received: Any
    traceparent: str
    ends_at: float
    max_files: int
    files: str | None = None
    database: str = ""
    data: str = "data"

    @classmethod
    def of(cls, tools: Toolbox[Any, Any]) -> "Facts":
        """The facts that a toolbox tells; taken in the event loop."""
        return cls(
            task_id=tools.task_id,
            correlation_id=tools.correlation_id,
            key=tools.key,
            fence=tools.fence,
            attempt=tools.attempt,
            visit=tools.visit,
            taken_over=tools.taken_over,
            may_have_happened=tools.may_have_happened,
            received=tools.received,
            traceparent=tools.traceparent,
            ends_at=boottime() + tools.remaining_s(),
            files=None if tools.files.folder is None else str(tools.files.folder),
            database=tools.database,
            data=str(tools.data),
            max_files=tools.files.most,
        )

    def document(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)


class Line(Protocol):
    """What a `StepTools` hands on; called from any thread of the handler's."""

    def check(self) -> None:
        """Raise why it may not go on, if it may not."""

    def progress(self, said: Progress) -> None:
        """Tell how far it is."""

    def checkpoint(self, context: BaseModel) -> None:
        """Return when this is kept, or raise why the handler is to end."""


class StepTools(Generic[P, C]):
    """One run of a handler with ``runs="thread"`` or ``runs="process"``; the same for both.

    It has what a `Toolbox` has, but what awaits, and the home: devices are the matter of states with ``runs="loop"``.

    Attributes:
        payload: the command's, validated by the type's model.
        context: the mission's own; what the handler changes is committed with its outcome.
        envelope: all else the front knew: ``snapshot session area actor``.
        received: data of the outside event that led into this state, if one did.
        attempt: try of this state, from 1. visit: how often the state was entered, from 1.
        taken_over: an earlier worker was lost in this state, so that an effect may have happened already.
        may_have_happened: in an undo: the state never said that it was done, so look before undoing it.
        key: of this state's effect: the same for all tries and takeovers of one visit (P21).
        fence: rises with every claim in the shard (P2).
        traceparent: W3C trace context to hand on to whatever is called.
        database: URL of the database, for `backend_loop.database.connect`.
        data: folder of the files that missions may read.
        files: the folder of the files that missions make: `find` there what another one has published, by its link.
    """

    __slots__ = (
        "_ends_at",
        "_line",
        "_look_at",
        "attempt",
        "context",
        "correlation_id",
        "data",
        "database",
        "envelope",
        "fence",
        "files",
        "key",
        "may_have_happened",
        "payload",
        "received",
        "taken_over",
        "task_id",
        "traceparent",
        "visit",
    )

    def __init__(self, facts: Facts, *, envelope: Envelope, payload: P, context: C, line: Line) -> None:
        """Made by the executors, per run of a handler."""
        self.task_id, self.correlation_id = facts.task_id, facts.correlation_id
        self.key, self.fence, self.traceparent = facts.key, facts.fence, facts.traceparent
        self.attempt, self.visit, self.taken_over = facts.attempt, facts.visit, facts.taken_over
        self.may_have_happened = facts.may_have_happened
        self.received: Any = facts.received
        self.envelope, self.payload, self.context = envelope, payload, context
        self._ends_at, self._line, self._look_at = facts.ends_at, line, 0.0
        self.database, self.data = facts.database, Path(facts.data)
        self.files = NO_FILES if facts.files is None else Files(Path(facts.files), facts.max_files)

    @property
    def undoes(self) -> str:
        """In an undo: the key under which the state has had its effect, if it had one (P21)."""
        return self.key.replace(":UNDO_", ":", 1)

    def file(self, name: str) -> File:
        """A file to be made, which whoever has this mission's id may download once it is published.

        Args:
            name: letters, digits, ``.``, ``_`` and ``-``, a hundred at most, no dot first.

        Raises:
            FileNameError: it cannot be called so.
            OSError: the folder cannot be written.
        """
        return self.files.file(self.task_id, name, self.fence, self.check)

    def remaining_s(self) -> float:
        """Seconds until the mission's deadline, by Redis' clock; negative once it has passed."""
        return self._ends_at - boottime()

    def check(self) -> None:
        """Ask whether this run may go on: now and then in a long computation, and last thing before an effect.

        A handler in a thread can be stopped here only; one in a process is stopped anyway.

        Raises:
            CutError: the run was cut.
            DeadlinePassedError: the deadline has come; the runner ends the mission.
            LapsedError: the lease has run out, as far as this process knows; the runner gives the mission back.
            FilesTooLargeError: the mission's files are, which is looked at once a second; it ends the mission.
        """
        self._line.check()
        if (now := time.monotonic()) >= self._look_at:
            self._look_at = now + LOOK_S
            self.files.bound(self.task_id)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Say how far this is, as `Toolbox.progress`. Cheap: call it for each item.

        Raises:
            ValueError: a number that is negative or not finite.
        """
        self._line.progress(progress(done, total, message))

    def checkpoint(self) -> None:
        """Keep `context` as it is now, as `Toolbox.checkpoint`; returns when it is kept.

        Raises:
            CutError: it is kept, and the handler is to end here: the mission is to pause, its worker to end, or its
                slot is wanted. Or the run was cut before, or the mission is not ours any more. Let it pass.
            CheckpointError: the context is too large, or no JSON; let through, it ends the mission.
            FilesTooLargeError: so are the mission's files; likewise.
        """
        self.files.bound(self.task_id)
        self._line.checkpoint(self.context)
