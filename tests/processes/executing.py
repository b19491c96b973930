"""Executors without a worker around them: one handler at a time, with the toolbox that a runner would make."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from pydantic_core import from_json

from backend_loop.course import Course
from backend_loop.executors import Executors
from backend_loop.lease import Lease
from backend_loop.midway import Kept, Midway
from backend_loop.mission import Mission
from backend_loop.outside import Outside
from backend_loop.redis_clock import RedisClock, boottime
from backend_loop.store import Claimed
from backend_loop.toolbox import Toolbox
from shared.envelope import Envelope
from shared.settings import Settings
from shared.status import Status
from shared.telemetry import Trace
from tests.missions.heavy import Notes, Work
from tests.waiting import eventually

if TYPE_CHECKING:
    from backend_loop.reporting import Progress

NONE = cast("Any", None)  # what these handlers never ask for


async def _goes_on() -> Kept:
    return Kept(news=True, goes_on=True)


class Run:
    """One run of the only state of a mission type, as its runner would begin it."""

    def __init__(self, executors: Executors, mission: type[Mission], work: Work, left_s: float) -> None:
        lease = Lease(0, 60.0, lambda _owner: None)
        lease.renewed(lease.owner, boottime())
        self.lease, clock = lease, RedisClock()
        self.said: list[Progress] = []
        self.midway = Midway(self, self._keep, self.said.append)
        self.kept: list[dict[str, Any]] = []
        self.keeping: Callable[[], Awaitable[Kept]] = _goes_on
        deadline = clock.now_ms() + round(left_s * 1000)
        text: dict[str, Any] = {"type": mission.type, "task_id": "m", "correlation_id": "m", "source": "http"}
        envelope = Envelope(**text, v=1, payload_version=1, payload={}, created_at="", session="kitchen")
        row = (
            mission.type,
            1,
            "WORKING",
            b"",
            b"",
            deadline,
            0,
            1,
            1,
            "",
            0,
            "",
            "normal:default:default",
            "",
            False,
            (),
        )
        outside = Outside(clock=clock, lease=lease, admission=NONE, executors=executors, wakes=NONE)
        self.tools: Toolbox[Work, Notes] = Toolbox(
            claimed=Claimed("m", lease.owner, 7, 0, 1, *row),
            course=Course("WORKING", Status.RUNNING, attempt=2),
            envelope=envelope,
            payload=work,
            context=Notes(done=["before"]),
            outside=outside,
            trace=Trace(),
            midway=self.midway,
        )
        self.began = asyncio.Event()
        assert work.mark is not None
        self._mark = work.mark
        spec = mission.definition.states["WORKING"]
        self.task = asyncio.ensure_future(executors.call(spec, mission(), self.tools, self.began.set))

    async def _keep(self, context: bytes) -> Kept:
        self.kept.append(from_json(context))
        return await self.keeping()

    def interrupt(self) -> None:
        """As `Handling` does it."""
        self.task.cancel()

    def hold(self) -> float | None:
        """It has no time-out."""

    def limit(self, _seconds: float | None) -> None:
        """It has no time-out."""

    async def runs(self) -> None:
        """Wait until the handler's own code has begun."""
        await eventually(self._mark.exists)

    def may_hear(self) -> None:
        """One that is deaf is so no longer."""
        self._mark.unlink()

    async def end(self) -> Any:
        """What the call gives."""
        return await self.task


class Bench:
    """Starts runs on executors of its own."""

    def __init__(self, folder: Path, **settings: float) -> None:
        self._folder = folder
        self.executors = Executors(Settings.model_validate({"cut_grace_s": 0.5, **settings}))

    def run(self, mission: type[Mission], how: str, seconds: float = 600.0, left_s: float = 600.0) -> Run:
        """Begin; cancel `task` to cut it."""
        mark = self._folder / uuid4().hex
        return Run(self.executors, mission, Work(how=how, seconds=seconds, mark=mark), left_s)


@contextlib.asynccontextmanager
async def executing(**settings: float) -> AsyncIterator[Bench]:
    """Executors that are closed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), **settings)
        try:
            yield bench
        finally:
            await bench.executors.close()
