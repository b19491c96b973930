"""What a handler is given: its context, the facts of its run, and guarded ways to the outside."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from backend_loop.devices.protocol import Command, Device, DeviceUnreachable, Reading
from backend_loop.lease import Lease
from backend_loop.machine import Course
from backend_loop.outcomes import LONGEST_S
from backend_loop.redis_clock import RedisClock
from backend_loop.store import Claimed, LapsedError
from shared.envelope import Envelope
from shared.telemetry import Trace

if TYPE_CHECKING:
    from backend_loop.admission import Admission
    from backend_loop.executors import Executors

P = TypeVar("P", bound=BaseModel)
C = TypeVar("C", bound=BaseModel)


class DeadlinePassedError(Exception):
    """The mission's deadline came before the act: nothing was sent."""


def _nothing(_handler: Callable[..., Any]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Outside:
    """What the worker has to offer.

    Args:
        clock: Redis' time.
        lease: of the shard.
        admission: asked before each handler, of permits and breakers.
        executors: for handlers that run in a thread or a process.
        wakes: told in how many seconds a mission that now waits is due, so that nobody sleeps through it.
        max_output: bytes that a commit's document, result and events may have together.
        device: the way to devices, if there is one.
        ran: told of each handler that has answered, before that is committed.
    """

    clock: RedisClock
    lease: Lease
    admission: "Admission"
    executors: "Executors"
    wakes: Callable[[float], None]
    max_output: int = 1024 * 1024
    device: Device | None = None
    ran: Callable[[Callable[..., Any]], None] = _nothing


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
    """

    __slots__ = (
        "_claimed",
        "_key",
        "_outside",
        "_trace",
        "_undoing",
        "attempt",
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
    ) -> None:
        """Made by the runner, per run of a handler."""
        self._claimed, self._outside, self._trace = claimed, outside, trace
        self._undoing = course.undoing
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

    def _device(self) -> Device:
        if self._outside.device is None:
            raise DeviceUnreachable(
                "no home is configured: set DUALLOOP_HOME_URL, or start everything with `dualloop up`"
            )
        return self._outside.device
