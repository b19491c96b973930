"""One worker's life: its event loop, its lease, and the real runners that it drives, to rest or to its death."""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx

from backend_loop.admission import Admission
from backend_loop.course import Course
from backend_loop.devices.http import HttpDevice
from backend_loop.executors import Executors
from backend_loop.lease import Lease
from backend_loop.mission import Mission, MissionType, StateSpec, UndoSpec
from backend_loop.model import Model
from backend_loop.outcomes import NoPermit, Outcome
from backend_loop.outside import Outside
from backend_loop.redis_clock import RedisClock
from backend_loop.runner import Runner
from backend_loop.services import Services
from backend_loop.store import Claimed, Commit, LostError, Store, Written
from backend_loop.testing import home, script
from backend_loop.testing.points import KilledError
from backend_loop.testing.sessions import KitSessions
from backend_loop.testing.shard import Write
from backend_loop.testing.skipping import SkippingLoop, spin
from backend_loop.toolbox import Toolbox
from shared.settings import Settings

if TYPE_CHECKING:
    from backend_loop.testing.world import World

AnySpec = TypeVar("AnySpec", StateSpec, UndoSpec)

STATE: Final[ContextVar[str]] = ContextVar("dualloop_kit_state", default="")
"""The handler that runs: a state, or ``UNDO_STATE``."""


class Shelf(Store):
    """A worker's verbs on the shard in memory; each commit is a place to be killed at."""

    def __init__(self, world: "World", owner: str) -> None:
        """Nothing is written yet."""
        self._world, self._owner = world, owner

    async def commit(self, commit: Commit) -> Written:
        """See `Store`."""
        world, write = self._world, Write._make(commit.item)
        await asyncio.sleep(0)  # it is on its way
        number = world.commits + 1
        await world.reach("before", "commit", number)
        world.meddler.before(write)
        answer = world.shard.commit(commit.owner, write)
        if answer.word == "written":
            world.committed()
            await world.reach("after", "commit", number)
        return answer

    async def release(self, owner: str, held: Sequence[tuple[str, int]]) -> None:
        """See `Store`."""
        self._world.shard.release(owner, held)

    async def inbox(self, task_id: str) -> tuple[bytes, ...]:
        """See `Store`."""
        return tuple(self._world.shard.records[task_id].inbox)


class OpenDoor(Admission):
    """Every handler may begin, with the commits of one that had to ask."""

    def __init__(self) -> None:
        """Nobody has asked yet."""

    async def enter(
        self,
        claimed: Claimed,  # noqa: ARG002  of the base
        course: Course,  # noqa: ARG002  of the base
        spec: StateSpec | UndoSpec,  # noqa: ARG002  of the base
        definition: MissionType,  # noqa: ARG002  of the base
    ) -> NoPermit | None:
        """See `Admission`."""
        return None

    def limits(
        self,
        claimed: Claimed,  # noqa: ARG002  of the base
        spec: StateSpec | UndoSpec,
        definition: MissionType,
    ) -> bool:
        """See `Admission`."""
        return bool(spec.uses) or definition.mission.concurrency is not None

    def unused(self, claimed: Claimed, spec: StateSpec | UndoSpec) -> None:
        """See `Admission`."""

    async def left(self, claimed: Claimed, spec: StateSpec | UndoSpec, outcome: Outcome | None) -> None:
        """See `Admission`."""


class Threads(Executors):
    """Handlers beside the loop, all of them in threads; time flows while one is at work."""

    def __init__(self, settings: Settings, loop: SkippingLoop) -> None:
        """None is started yet."""
        super().__init__(settings)
        self._loop = loop

    async def call(
        self, spec: StateSpec | UndoSpec, mission: Mission, tools: Toolbox[Any, Any], begins: Callable[[], None]
    ) -> Any:
        """See `Executors`."""
        with self._loop.working():
            return await self._in_thread(spec, mission, tools, begins)


class Life:
    """A worker of a world."""

    def __init__(self, world: "World", number: int) -> None:
        """Not begun."""
        self._world, self.owner = world, f"worker-{number}"
        self.loop = SkippingLoop(world.time, lambda: bool(self._runs))
        self._runs: dict[str, tuple[Runner, asyncio.Task[None]]] = {}
        self._woken = asyncio.Event()
        self._lease = Lease(0, world.settings.lease_s, lambda _owner: None, self.owner)
        self._lease.renewed(self.owner, math.inf)
        self._store = Shelf(world, self.owner)
        self._outside: Outside

    def live(self, until_ms: int | None) -> None:
        """Until nothing moves any more, or, if that is later, until this time.

        Raises:
            KilledError: it was killed.
        """
        spin(self.loop, self._work(until_ms))

    def die(self) -> None:
        """From the next turn of its loop on nothing happens."""
        self.loop.end(KilledError())

    async def _work(self, until_ms: int | None) -> None:
        world = self._world
        services = httpx.AsyncClient(transport=world.services, trust_env=False)
        devices = httpx.AsyncClient(transport=world.home, trust_env=False)
        async with services, devices:
            self._outside = self._around(services, devices)
            world.shard.posted, world.shard.stirred = self._signal, self._woken.set
            while (pause := self._turn(until_ms)) is not None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause if math.isfinite(pause) else None):
                        await self._woken.wait()

    def _around(self, services: httpx.AsyncClient, devices: httpx.AsyncClient) -> Outside:
        world = self._world
        return Outside(
            clock=RedisClock(),  # unset it is as late as the process' own clock says
            lease=self._lease,
            admission=OpenDoor(),
            executors=Threads(world.settings, self.loop),
            wakes=lambda _seconds: None,
            max_output=world.settings.max_output,
            device=HttpDevice(home.BASE_URL, devices),
            services=Services(script.BASE_URL, services),
            model=Model(f"{script.BASE_URL}/model", services),
            spawning=world.spawning,
            sessions=KitSessions(world),
            home=lambda: world.setting.inventory,
            files=world.files,
            database=world.database,
        )

    def _turn(self, until_ms: int | None) -> float | None:
        """Do what can be done; seconds until something is due again, or None: nothing moves."""
        world, shard, time = self._world, self._world.shard, self._world.time
        self._woken.clear()
        shard.sweep()
        world.carrier.carry()
        for claimed in shard.claim(self.owner):
            self._start(claimed)
        dues = [*shard.dues(), *world.carrier.dues()]
        first = min((due.at for due in dues), default=math.inf)
        if until_ms is not None and time.now_ms() < until_ms:
            first = min(first, until_ms)
        elif not self._runs and (world.rests() or not any(due.only for due in dues)):
            return None
        return first if first == math.inf else time.until(int(first))

    def _start(self, claimed: Claimed) -> None:
        definition = self._watched(self._world.types[claimed.type], claimed.task_id)
        runner = Runner(claimed, definition, self._store, self._outside)
        task = self.loop.create_task(self._run(runner))
        self._runs[claimed.task_id] = runner, task

    def _watched(self, definition: MissionType, task_id: str) -> MissionType:
        """The same, and each handler says that it begins."""

        def watched(spec: AnySpec) -> AnySpec:
            if spec.runs == "loop":

                @wraps(spec.handler)
                async def begins(mission: Any, tools: Any) -> Any:
                    self._begins(task_id, spec.name)
                    return await spec.handler(mission, tools)

                return replace(spec, handler=begins)

            @wraps(spec.handler)
            def begins_beside(mission: Any, tools: Any) -> Any:
                self.loop.call_soon_threadsafe(self._begins, task_id, spec.name)
                return spec.handler(mission, tools)

            return replace(spec, handler=begins_beside)

        states = {name: watched(spec) for name, spec in definition.states.items()}
        undos = {name: watched(spec) for name, spec in definition.undos.items()}
        return replace(definition, states=states, undos=undos)

    def _begins(self, task_id: str, state: str) -> None:
        """What is to happen within this handler, happens at its first await."""
        STATE.set(state)
        for happen in self._world.within(task_id, state):
            self.loop.call_soon(happen)

    async def _run(self, runner: Runner) -> None:
        """As a shard loop does it; but what breaks a runner is told to the test."""
        claimed = runner.claimed
        try:
            await runner.run()
        except LostError:
            self._world.shard.release(claimed.owner, [(claimed.task_id, claimed.fence)])
        except Exception as error:  # noqa: BLE001  whatever it is, it ends the run
            self.loop.end(error)
        finally:
            if self._runs.get(claimed.task_id, (None,))[0] is runner:
                del self._runs[claimed.task_id]
            self._woken.set()

    def _signal(self, task_id: str) -> None:
        if (run := self._runs.get(task_id)) is not None and not run[1].done():
            self._hearing = asyncio.ensure_future(run[0].signal())
