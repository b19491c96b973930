"""What a handler is given: its context, the facts of its run, and guarded ways to the outside."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from backend_loop.child_missions import ChildMission, children_of
from backend_loop.children import Child
from backend_loop.devices.protocol import Command, Device, DeviceUnreachable, Reading
from backend_loop.files import File, Files
from backend_loop.machine import Course
from backend_loop.midway import Midway
from backend_loop.outcomes import LONGEST_S
from backend_loop.outside import Outside
from backend_loop.services import Services, ServiceUnavailable, Stamp
from backend_loop.sessions import Sessions
from backend_loop.spawning import Brood, Parent, SpawnError
from backend_loop.speech.ears import Heard
from backend_loop.store import Claimed, LapsedError
from backend_loop.thought import Function, Thought
from shared.catalogue import Row
from shared.envelope import Envelope
from shared.home import Inventory
from shared.status import Priority
from shared.telemetry import Trace

__all__ = ["ChildMission", "DeadlinePassedError", "Toolbox"]

P = TypeVar("P", bound=BaseModel)
C = TypeVar("C", bound=BaseModel)


class DeadlinePassedError(Exception):
    """The mission's deadline came before the act: nothing was sent."""


class Toolbox(Generic[P, C]):
    """One run of one state's handler.

    Attributes:
        payload: the command's, validated by the type's model.
        context: the mission's own; what the handler changes is committed with its outcome.
        envelope: all else the front knew: ``snapshot session area actor``.
        received: data of the outside event that led into this state, if one did.
        attempt: try of this state, from 1. visit: how often the state was entered, from 1.
        taken_over: an earlier worker was lost in this state, so that an effect may have happened already.
        may_have_happened: in an undo: the state never said that it was done, so look before undoing it.
        children: the missions that this one has spawned, in that order, as of the last commit or checkpoint.
    """

    __slots__ = (
        "_brood",
        "_claimed",
        "_course",
        "_key",
        "_midway",
        "_outside",
        "_trace",
        "_undoing",
        "attempt",
        "children",
        "context",
        "envelope",
        "may_have_happened",
        "payload",
        "received",
        "taken_over",
        "visit",
    )

    def __init__(  # noqa: PLR0913  made by the runner only
        self,
        *,
        claimed: Claimed,
        course: Course,
        envelope: Envelope,
        payload: P,
        context: C,
        outside: Outside,
        trace: Trace,
        midway: Midway,
    ) -> None:
        """Made by the runner, per run of a handler."""
        self._claimed, self._outside, self._trace, self._midway = claimed, outside, trace, midway
        self._undoing, self._course = course.undoing, course
        self._brood: Brood | None = None
        self.children = children_of(course)
        self.payload, self.context, self.envelope = payload, context, envelope
        self.received: Any = None if course.undoing else course.received
        self.attempt, self.visit = course.attempt, course.visit
        self.taken_over, self.may_have_happened = course.lost, course.may_have_happened
        undo = "UNDO_" if course.undoing else ""
        self._key = f"{claimed.task_id}:{claimed.key_run}:{undo}{course.state}:{course.visit}"

    @property
    def task_id(self) -> str:
        """The mission's id."""
        return self._claimed.task_id

    @property
    def correlation_id(self) -> str:
        """The root's id, which the client has."""
        return self._claimed.correlation_id

    @property
    def key(self) -> str:
        """The key of this state's effect: the same for all tries and takeovers of one visit (P21)."""
        return self._key

    @property
    def undoes(self) -> str:
        """In an undo: the key under which the state has had its effect, if it had one (P21)."""
        return self._key.replace(":UNDO_", ":", 1)

    @property
    def fence(self) -> int:
        """Rises with every claim in the shard, also from one mission to the next on a target (P2)."""
        return self._claimed.fence

    @property
    def traceparent(self) -> str:
        """W3C trace context to hand on to whatever is called."""
        return self._trace.child_header()

    def remaining_s(self) -> float:
        """Seconds until the mission's deadline, by Redis' clock; negative once it has passed. An undo has none."""
        if self._undoing:
            return LONGEST_S
        return (self._claimed.deadline - self._outside.clock.now_ms()) / 1000

    def check(self) -> None:
        """Ask last thing before an effect whether it may still begin (P6, P14).

        Raises:
            DeadlinePassedError: the deadline has come; the runner ends the mission.
            LapsedError: the lease has run out, as far as this process knows; the runner gives the mission back.
        """
        if not self._outside.lease.good() or self._outside.lease.owner != self._claimed.owner:
            raise LapsedError("the lease has run out")
        if self.remaining_s() <= 0:
            raise DeadlinePassedError

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Say how far this is: clients see the newest value, and it stands in the result. Cheap: call it for each item.

        It is told a few times a second at most, and kept by each commit. While the mission waits for its children, so
        many of them as have ended are told, unless this state has said a total itself.

        Args:
            done: in any unit, such as items or bytes.
            total: how much there is in all; None: not known.
            message: what is being done; cut after 200 characters.

        Raises:
            ValueError: a number that is negative or not finite.
        """
        self._midway.progress(done, total, message)

    async def checkpoint(self) -> None:
        """Keep `context` as it is now: whoever has to run this handler again begins with that, not with where it began.

        Call it where all that is done so far is in the context. It costs a commit if the context has changed since the
        last one, and next to nothing if not. With something new in it, tries, deaths and the state's time-out count
        anew. Children that were spawned in this run begin with its outcome only.

        A handler with checkpoints gives way at them: where the mission is to pause, its worker to end, or its slot is
        wanted by something more urgent, this raises CancelledError behind the write. Let it pass: it begins there anew.

        Raises:
            CancelledError: see above.
            CheckpointError: the context is too large, or no JSON; let through, it ends the mission.
            FilesTooLargeError: so are the mission's files; likewise.
            LostError: the mission is not ours any more.
        """
        await self.files.bounded(self.task_id)
        await self.keep()

    async def keep(self) -> None:
        """The rest of a checkpoint: for handlers in threads and processes, who have looked at their files there."""
        await self._midway.checkpoint(self.context)

    @property
    def spawned(self) -> tuple[Child, ...]:
        """What `spawn` has made of its calls; for the runner, which writes it with the outcome."""
        return () if self._brood is None else tuple(self._brood.spawned)

    def spawn(  # noqa: PLR0913  what may be said of a command, may be said of a child
        self,
        type: str,  # noqa: A002  the word of the contract
        payload: Mapping[str, Any] | BaseModel,
        *,
        target: str | None = None,
        name: str | None = None,
        priority: Priority | None = None,
        deadline_s: float | None = None,
    ) -> str:
        """Have a mission of its own begin, together with the outcome of this handler: with none, none begins.

        So it is with Go, Sleep, WaitFor and WaitForChildren; a try that fails spawns nothing, nor does the outcome with
        which the mission ends. What still lives when this mission ends, or begins to undo, is cancelled. It is not
        undone by itself: what children did, undos of their parent undo.

        Args:
            type: of the mission, in its newest version.
            payload: checked by that type, if any worker has announced it.
            target: what it acts on; None: as its type says. A child takes its target like anyone.
            name: by which `children` and the log tell it; within one visit of a state there is one child of a name, and
                who asks for it again gets that one.
            priority: None: that of this mission.
            deadline_s: seconds; None: as its type says. Never later than this mission's.

        Returns:
            Its task_id, the same in each try of this state.

        Raises:
            SpawnError: no such child can be; let through, it ends the mission as `permanent`.
        """
        if self._brood is None:
            self._brood = self._nest()
        return self._brood.spawn(type, payload, target=target, name=name, priority=priority, deadline_s=deadline_s)

    def _nest(self) -> Brood:
        if self._outside.spawning is None:
            raise SpawnError("nothing here makes children")
        claimed, course = self._claimed, self._course
        parent = Parent(
            claimed.task_id,
            claimed.run,
            claimed.key_run,
            f"UNDO_{course.state}" if self._undoing else course.state,
            self.visit,
            self.envelope.tenant,
            self.envelope.priority,
            None if self._undoing else claimed.deadline,
            self._outside.clock.now_ms(),
            self.traceparent,
            course.children,
        )
        return Brood(self._outside.spawning, parent)

    @property
    def home(self) -> Inventory:
        """The home's inventory as this process knows it now: what is where, and what people call it."""
        return self._outside.home()

    @property
    def files(self) -> Files:
        """The folder of the files that missions make: `find` there what another one has published, by its link."""
        return self._outside.files

    @property
    def database(self) -> str:
        """URL of the database, for `backend_loop.database.connect`, in a state with ``runs="thread"`` or "process"."""
        return self._outside.database

    @property
    def data(self) -> Path:
        """Folder of the files that missions may read."""
        return self._outside.data

    def file(self, name: str) -> File:
        """A file to be made, which whoever has this mission's id may download once it is published.

        What takes long to write is written by states with ``runs="thread"`` or "process", which have this too.

        Args:
            name: letters, digits, ``.``, ``_`` and ``-``, a hundred at most, no dot first.

        Raises:
            FileNameError: it cannot be called so.
            OSError: the folder cannot be written.
        """
        return self.files.file(self.task_id, name, self.fence, self.check)

    async def observe(self, entity: str, *, within_s: float = 5.0) -> Reading:
        """Read a device now.

        Raises:
            DeviceUnreachable, UnknownEntity: see `backend_loop.devices.protocol`.
        """
        device, deadline = self._device(), time.monotonic() + min(within_s, max(0.0, self.remaining_s()))
        return await device.observe(entity, deadline=deadline, traceparent=self.traceparent)

    async def act(self, command: Command, *, within_s: float = 5.0) -> None:
        """Tell a device, with this state's key and fence, unless lease or deadline are gone.

        Raises:
            DeviceUnreachable, ActUnknown, DeviceRefused, UnknownEntity, OldFence: see `backend_loop.devices.protocol`.
            DeadlinePassedError, LapsedError: see `check`.
        """
        device = self._device()
        self.check()
        deadline = time.monotonic() + min(within_s, self.remaining_s())
        await device.act(command, key=self.key, fence=self.fence, deadline=deadline, traceparent=self.traceparent)

    async def ask(self, path: str, *, within_s: float = 5.0) -> dict[str, Any]:
        """Read something of an outside service now, such as ``stock/items/lamp``.

        Raises:
            ServiceUnavailable, ServiceRefused: see `backend_loop.services`.
        """
        return await self._services().get(path, within_s=self._within(within_s), traceparent=self.traceparent)

    async def order(self, path: str, body: Mapping[str, Any], *, within_s: float = 5.0) -> dict[str, Any]:
        """Have an outside service do something, with this state's key and fence, unless lease or deadline are gone.

        The services do it once per key, and answer a second try as they did the first: what they say counts, not what
        was asked. One such call a state, since a state has one key.

        Raises:
            ServiceUnavailable, ServiceRefused: see `backend_loop.services`.
            DeadlinePassedError, LapsedError: see `check`.
        """
        services = self._services()
        self.check()
        stamp = Stamp(self.key, self.fence, self.traceparent)
        return await services.post(path, body, within_s=self._within(within_s), stamp=stamp)

    async def think(
        self, messages: Sequence[Mapping[str, Any]], *, functions: Sequence[Function] = (), within_s: float = 60.0
    ) -> Thought:
        """Ask the language model, unless lease or deadline are gone. What it wants done is for the handler to judge.

        Another try, or another worker after a kill, asks again: few servers know the key that goes along, so it may be
        paid for twice, and may answer otherwise. What counts is the answer that is committed.

        Raises:
            ServiceUnavailable, ServiceRefused: see `backend_loop.model`.
            DeadlinePassedError, LapsedError: see `check`.
        """
        model = self._outside.model
        if model is None:
            raise ServiceUnavailable("no model is configured: set DUALLOOP_MODEL_URL, or start all with `dualloop up`")
        self.check()
        return await model.think(
            messages, functions, within_s=self._within(within_s), key=self.key, traceparent=self.traceparent
        )

    async def deliver(self, url: str, body: str, *, within_s: float = 15.0) -> int:
        """Send a signed webhook, with this state's key as its id, unless lease or deadline are gone.

        Returns:
            The status of success that was answered.

        Raises:
            ServiceUnavailable, ServiceRefused: see `backend_loop.webhooks.sender`.
            DeadlinePassedError, LapsedError: see `check`.
        """
        if self._outside.webhooks is None:
            raise ServiceUnavailable("nothing here sends webhooks")
        self.check()
        return await self._outside.webhooks.send(url, body, key=self.key, within_s=self._within(within_s))

    @property
    def sessions(self) -> Sessions:
        """What the commands of a speaker have in common, and what one of them says to another.

        Raises:
            ServiceUnavailable: nothing here keeps sessions.
        """
        if self._outside.sessions is None:
            raise ServiceUnavailable("nothing here keeps sessions")
        return self._outside.sessions

    async def listen(self, task_id: str, rate: int | None, language: str) -> Heard | None:
        """What is said in the recording that a command came with, see `Ears`; None: it is not kept any more.

        Raises:
            ServiceUnavailable, ServiceRefused: see `backend_loop.speech.ears`.
        """
        recording = await self.sessions.recording(task_id)
        if recording is None:
            return None
        if self._outside.ears is None:
            raise ServiceUnavailable("nothing here listens to speech")
        return await self._outside.ears.listen(recording, rate, language)

    def announced(self, type: str) -> Row | None:  # noqa: A002  the word of the contract
        """What is known of a mission type in its newest version, here or by a live worker; None: nothing."""
        return None if self._outside.spawning is None else self._outside.spawning.row(type)

    def _within(self, within_s: float) -> float:
        return min(within_s, max(0.0, self.remaining_s()))

    def _services(self) -> Services:
        if self._outside.services is None:
            raise ServiceUnavailable(
                "no outside services are configured: set DUALLOOP_OUTSIDE_URL, or start everything with `dualloop up`"
            )
        return self._outside.services

    def _device(self) -> Device:
        if self._outside.device is None:
            raise DeviceUnreachable(
                "no home is configured: set DUALLOOP_HOME_URL, or start everything with `dualloop up`"
            )
        return self._outside.device
