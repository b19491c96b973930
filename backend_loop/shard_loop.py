"""The work of one process on one shard: claim, run, and what keeps the shard tidy."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from backend_loop.admission import Admission
from backend_loop.blocking import BlockWatch
from backend_loop.carrier import Carrier
from backend_loop.devices.protocol import Device
from backend_loop.executors import Executors
from backend_loop.files import Files
from backend_loop.lease import Lease
from backend_loop.mission import MissionType
from backend_loop.model import Model
from backend_loop.outside import Outside
from backend_loop.redis_clock import RedisClock, boottime
from backend_loop.runner import Runner
from backend_loop.services import Services
from backend_loop.sessions import Sessions
from backend_loop.slots import Slots
from backend_loop.spawning import Spawning
from backend_loop.speech.ears import Ears
from backend_loop.store import Claimed, LapsedError, LostError, Store
from backend_loop.suspects import Suspect, Suspects
from backend_loop.suspicion import is_suspect
from backend_loop.webhooks.sender import Webhooks
from shared.errors import RedisAwayError
from shared.home import EMPTY, Inventory
from shared.logs import get
from shared.loop import After, Answer, Idle, Loop
from shared.settings import Settings

log = get(__name__)

RECONCILE_S: Final = 30.0
"""How often a process looks for missions that are leased to it and that it does not run."""

CUT_S: Final = 1.0
"""How long handlers may take to end once they are cut."""

BROKEN_KEPT: Final = 1000

BATCH: Final = 50
"""Missions a claim brings at most."""


class ShardLoop:
    """Claims from one shard and runs what it gets.

    Args:
        store: of the shard.
        types: what this process knows, by ``type@version``.
        slots: shared by all shards.
        clock, admission, executors, device, services, model, ears, home, spawning, sessions: what handlers may use.
        carrier: of its outboxes.
        suspects: those of this worker that run alone.
        watch: over its event loop.
        settings: of the process.
        freed: called when a mission has ended here, so that whoever waits for a slot looks again.
    """

    def __init__(  # noqa: PLR0913  wired in one place
        self,
        *,
        store: Store,
        types: Mapping[str, MissionType],
        slots: Slots,
        clock: RedisClock,
        admission: Admission,
        executors: Executors,
        device: Device | None,
        suspects: Suspects,
        watch: BlockWatch,
        settings: Settings,
        freed: Callable[[], None],
        spawning: Spawning,
        carrier: Carrier,
        services: Services | None = None,
        model: Model | None = None,
        ears: Ears | None = None,
        sessions: Sessions | None = None,
        home: Callable[[], Inventory] = lambda: EMPTY,
    ) -> None:
        """Nothing runs yet: start its `loops`."""
        self._store, self._types, self._slots, self._suspects, self._freed = store, types, slots, suspects, freed
        self._outside = Outside(
            clock=clock,
            lease=store.lease,
            admission=admission,
            executors=executors,
            wakes=self._wakes,
            max_output=settings.max_output,
            device=device,
            services=services,
            model=model,
            ears=ears,
            home=home,
            webhooks=Webhooks.of(settings),
            sessions=sessions,
            spawning=spawning,
            files=Files(settings.files_path, settings.max_files_bytes),
            database=settings.database_url,
            data=settings.data_dir.absolute(),
            ran=watch.ran,
            reports=store.reports,
            clear=slots.way.clear,
        )
        self._idle_s, self._kinds, self._doubtful = settings.poll_s, f",{','.join(sorted(types))},", False
        self._runs, self._broken = dict[str, tuple[Runner | Suspect, asyncio.Task[None]]](), dict[str, int]()
        self.claim, self.carry, self._reconciled_at = self._claiming(settings), carrier.loop, boottime()
        self.loops = (self.claim, self.carry, *self._tidy_loops(settings))

    def _claiming(self, settings: Settings) -> Loop:
        return Loop(
            f"claim-s{self._store.shard}",
            self._claim,
            trigger="woken",
            interval_s=settings.poll_s,
            backoff_cap_s=settings.poll_s,
            describe="renews the lease, moves due timers, takes over from the dead, claims what fits into free slots",
            output="runners",
        )

    def _tidy_loops(self, settings: Settings) -> tuple[Loop, ...]:
        shard = self._store.shard
        return (
            Loop(
                f"sweep-s{shard}",
                self._sweep,
                trigger="woken",
                interval_s=settings.poll_s,
                backoff_cap_s=settings.poll_s,
                describe="ends, or tells the lease holder of, missions whose deadline has come or whose watchers left",
                output="ended missions, inbox entries",
                scale="sharded",
            ),
            Loop(
                f"retire-s{shard}",
                self._retire,
                trigger="timed",
                interval_s=min(10.0, settings.retention_s),
                describe="removes missions whose retention has passed",
                output="nothing left behind",
                scale="sharded",
                vital=False,
            ),
        )

    @property
    def lease(self) -> Lease:
        """Of this process on this shard."""
        return self._store.lease

    @property
    def running(self) -> int:
        """Missions under way here."""
        return len(self._runs)

    def _wakes(self, seconds: float) -> None:
        """A timer was set: claim has to look then, if not before anyway."""
        if seconds < self._idle_s:
            asyncio.get_running_loop().call_later(max(0.0, seconds), self.claim.wake)

    def signal(self, task_id: str) -> None:
        """Something was posted to a mission that runs here."""
        if (run := self._runs.get(task_id)) is not None and not run[1].done():
            task = asyncio.ensure_future(run[0].signal())
            task.add_done_callback(_log_failure)

    def doubt(self) -> None:
        """A connection was lost, and with it perhaps the answer of a claim."""
        self._doubtful = True
        self.claim.wake()

    def lost(self, owner: str) -> None:
        """The lease was taken over: every mission under it is somebody else's."""
        for runner, task in self._runs.values():
            if runner.claimed.owner == owner:
                runner.drop()
                if not runner.committing:
                    task.cancel()
        self.claim.wake()

    def drain(self) -> None:
        """Let every mission be handed on at its next commit."""
        for runner, _ in self._runs.values():
            runner.draining = True

    async def cut(self) -> None:
        """Stop what still runs, now, and hand it back."""
        runs = list(self._runs.values())
        for runner, task in runs:
            runner.drop()
            task.cancel()
        if runs:
            # whoever takes longer is released all the same: its fence keeps it from writing
            await asyncio.wait([task for _, task in runs], timeout=CUT_S)
        by_owner: dict[str, list[tuple[str, int]]] = {}
        for runner, _ in runs:
            by_owner.setdefault(runner.claimed.owner, []).append((runner.claimed.task_id, runner.claimed.fence))
        for owner, held in by_owner.items():
            await self._store.release(owner, held)

    async def resign(self) -> None:
        """End the lease, so that nobody waits for it to lapse."""
        await self._store.resign()

    async def wait(self) -> None:
        """Return when nothing runs here."""
        while self._runs:
            await asyncio.wait([task for _, task in self._runs.values()])

    async def _claim(self) -> Answer:
        await self._store.up()
        slots, urgent_slots = self._slots.free()
        try:
            if self._doubtful or boottime() - self._reconciled_at > RECONCILE_S:
                await self._reconcile()
            answer = await self._store.claim(slots, urgent_slots, self._kinds)
        except RedisAwayError:
            self._doubtful = True
            if self._store.connected:
                raise  # it refuses: again after a pause
            return After(0)  # it is away: again as soon as it is back
        if answer is None:
            return After(0)
        due_s, claimed = answer
        for one in claimed:
            self._start(one)
        if claimed:
            log.debug("claim", shard=self._store.shard, missions=len(claimed))
            full = len(claimed) >= min(BATCH, max(1, slots))
            return After(0) if full and self._slots.free()[0] > 0 else After(min(due_s, self._idle_s))
        return After(due_s) if due_s < self._idle_s else Idle()

    async def _reconcile(self) -> None:
        """What is leased to us and we do not run goes back, or we would renew it for ever (P6).

        So it is after a claim whose answer was lost; now and then it is looked for in any case.
        """
        self._reconciled_at = boottime()
        owner = self.lease.owner
        mine = frozenset(task_id for task_id, (runner, _) in self._runs.items() if runner.claimed.owner == owner)
        if forgotten := await self._store.forgotten(mine):
            log.warning("release", why="leased to this process, which does not run them", missions=len(forgotten))
            await self._store.release(owner, forgotten)
        self._doubtful = False

    def _crowded(self) -> bool:
        return self._slots.full

    def _start(self, claimed: Claimed) -> None:
        definition = self._types[claimed.kind]
        runner: Runner | Suspect
        if is_suspect(claimed.losses):
            runner = Suspect(claimed, definition, self._store, self._suspects)
        else:
            runner = Runner(claimed, definition, self._store, self._outside, self._crowded)
        runner.draining = not self._slots.open
        self._slots.take(urgent=claimed.urgent)
        # the task is kept in _runs until it is done: nothing else refers to it
        task = asyncio.get_running_loop().create_task(self._run(runner))
        self._runs[claimed.task_id] = (runner, task)

    async def _run(self, runner: Runner | Suspect) -> None:
        claimed = runner.claimed
        try:
            await runner.run()
            self._broken.pop(claimed.task_id, None)
        except LapsedError as lapsed:
            log.info("outcome dropped", task_id=claimed.task_id, correlation_id=claimed.correlation_id, why=str(lapsed))
            await self._store.release(claimed.owner, [(claimed.task_id, claimed.fence)])
        except LostError as lost:
            ids = {"task_id": claimed.task_id, "correlation_id": claimed.correlation_id}
            log.warning("stale_writes_rejected", **ids, why=str(lost))
        except asyncio.CancelledError as stray:
            if runner.dropped:
                raise
            await self._give_back(runner.claimed, stray)
        except BaseException as error:  # noqa: BLE001  a bug of ours costs a release, never the others of this process
            await self._give_back(runner.claimed, error)
        finally:
            self._slots.give_back(urgent=claimed.urgent)
            if (run := self._runs.get(claimed.task_id)) is not None and run[0] is runner:
                del self._runs[claimed.task_id]
            free = self._slots.free()[0]
            if free == 1 or free % 8 == 0:
                self._freed()

    async def _give_back(self, claimed: Claimed, error: BaseException) -> None:
        """Release at once (P6); from the second time on after a pause, so that a bug does not spin."""
        times = self._broken.pop(claimed.task_id, 0)
        self._broken[claimed.task_id] = times + 1
        if len(self._broken) > BROKEN_KEPT:
            del self._broken[next(iter(self._broken))]
        ids = {"task_id": claimed.task_id, "correlation_id": claimed.correlation_id}
        log.error("runner failed", **ids, times=times + 1, exc_info=error)
        if times:
            await asyncio.sleep(min(5.0, 0.1 * 2.0**times))
        await self._store.release(claimed.owner, [(claimed.task_id, claimed.fence)])

    async def _sweep(self) -> Answer:
        await self._store.up()
        late, late_s = await self._store.sweep(self._kinds)
        left, left_s = await self._store.abandon()
        if late or left:
            log.info("sweep", shard=self._store.shard, missions=late, abandoned=left)
            return After(0)
        return After(min((seconds for seconds in (late_s, left_s) if seconds >= 0), default=self._idle_s))

    async def _retire(self) -> Answer:
        done, next_s = await self._store.retire()
        if done:
            return After(0)
        return Idle() if next_s < 0 else After(min(next_s, 10.0))


def _log_failure(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("signal failed", error=str(error))
