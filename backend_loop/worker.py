"""LoopWorker: an arq worker whose missions come from our lanes, woken instead of polled.

arq keeps the process life: signals, start-up and shut-down hooks, user functions and cron on arq's own keys, burst.
What is replaced is what costs latency and safety: polling, claiming, finishing, stopping.
"""

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, NoReturn
from uuid import uuid4

from arq.connections import RedisSettings, create_pool
from arq.worker import Worker, func

from backend_loop.admission import Admission
from backend_loop.arq_pool import let_go
from backend_loop.blocking import BlockWatch
from backend_loop.breakers import Breakers
from backend_loop.burst import burst
from backend_loop.carrier import Carrier
from backend_loop.debugger import held
from backend_loop.devices.protocol import Device
from backend_loop.executors import Executors
from backend_loop.inventory import HomeBook
from backend_loop.lease import Lease, Renewal
from backend_loop.loops import audit
from backend_loop.loops.announce import Announcer
from backend_loop.loops.cleaning import Cleaning
from backend_loop.loops.schedules import Schedules
from backend_loop.loops.warming import Warming
from backend_loop.mission_type import MissionType, pools_of
from backend_loop.model import Model
from backend_loop.redis_clock import RedisClock, boottime
from backend_loop.services import Services
from backend_loop.sessions import Sessions
from backend_loop.shard_loop import CUT_S, ShardLoop
from backend_loop.slots import Slots
from backend_loop.spawning import Spawning
from backend_loop.speech.ears import Ears
from backend_loop.store import Store
from backend_loop.suspects import Suspects
from shared import health, keys, schedules
from shared.catalogue import Catalogue
from shared.errors import RedisAwayError
from shared.fleet import Fleet
from shared.leader import Leader
from shared.logs import get
from shared.loop import Answer, Idle, Loop
from shared.loops import Loops
from shared.redis import Link
from shared.sessions import TYPE as SPOKEN
from shared.settings import Settings
from shared.watchdog import STUCK, Watchdog

log = get(__name__)

JOIN_AGAIN_S: Final = 0.2
DOUBLED_S: Final = 0.3
"""Process managers send a signal twice; a person does not within this time."""
LEAVE_S: Final = 5.0
"""How long a stop may take besides the drain, before a process whose loop was stuck waits for it no more."""


class _StoppedError(Exception):
    """The way out of the loops' task group; no error."""


class LoopWorker(Worker):
    """One background process.

    Args:
        types: the mission types it knows, by ``type@version``.
        settings: of the process. redis_url: where its Redis is.
        device: the way to devices, for handlers that observe and act.
        services, model, ears: the ways to outside services, to a language model, to what listens, for those that ask.
        home: this process' copy of the home's inventory, kept fresh here.
        arq: further arguments of ``arq.Worker``: ``functions cron_jobs on_startup on_shutdown burst handle_signals``.
    """

    def __init__(  # noqa: PLR0913  wired in one place
        self,
        types: Mapping[str, MissionType],
        settings: Settings,
        redis_url: str,
        *,
        device: Device | None = None,
        services: Services | None = None,
        model: Model | None = None,
        ears: Ears | None = None,
        home: HomeBook | None = None,
        **arq: Any,
    ) -> None:
        """Wire the process; nothing is opened yet."""
        self.serves_arq = bool(arq.get("functions") or arq.get("cron_jobs"))
        if not self.serves_arq:
            arq["functions"] = [func(_nothing, name="dualloop_nothing")]  # arq refuses to start without one
        self.instance = uuid4().hex[:12]
        super().__init__(
            health_check_key=f"arq:health:{self.instance}",  # arq's own is shared, and one worker's stop removes it
            redis_settings=RedisSettings.from_dsn(redis_url),
            max_jobs=settings.slots,
            job_completion_wait=max(1, round(settings.drain_s)),
            **arq,
        )
        limit = settings.max_transitions
        self.types = {kind: replace(one, plan=replace(one.plan, max_transitions=limit)) for kind, one in types.items()}
        pools = settings.pools or pools_of(types.values())
        self.settings, self.redis_url = settings.model_copy(update={"pools": pools}), redis_url
        self.device, self.services, self.model, self.ears = device, services, model, ears
        self.home = home or HomeBook()
        self.loops, self.checks, self._fleet = Loops(), health.Checks(), Fleet(settings.shards)
        self.shards: list[ShardLoop] = []
        self._catalogue = Catalogue()
        self.ready = asyncio.Event()
        self._slots = Slots(settings)
        self._stopping, self._haste, self._told_at = asyncio.Event(), asyncio.Event(), 0.0
        self._watchdog: Watchdog | None = None
        self._block_watch = BlockWatch(self.types.values(), settings.lease_s / 2)

    @property
    def running(self) -> int:
        """Missions under way in this process."""
        return sum(shard.running for shard in self.shards)

    async def main(self) -> None:
        """Run until told to stop; in burst mode, until nothing is ready."""
        settings = self.settings
        link = await Link(self.redis_url, timeout_s=settings.redis_timeout_s, on_up=self._doubt).open()
        await self._until_stopped(self._join(link))
        if self._stopping.is_set():
            await link.close()
            return
        self._wire(link)
        hints = self._hints = await self._listen()
        renewal = Renewal(self.redis_url, [shard.lease for shard in self.shards], settings.lease_s, self.loop)
        renewal.begin()
        renewal.overslept = self._block_watch.overslept
        self._block_watch.begin(renewal.ticked)
        if self.serves_arq:
            self._pool = self.ctx["redis"] = await create_pool(RedisSettings.from_dsn(self.redis_url))
        if self.on_startup:
            await self.on_startup(self.ctx)
        self.checks.add("redis", health.redis_check(link))
        self.checks.add("loops", health.loops_check(self.loops))
        log.info("background up", instance=self.instance, types=len(self.types), pools=",".join(settings.pools))
        watchdog = self._watch(link)
        try:
            async with asyncio.TaskGroup() as group:
                self.loops.start(group)
                watchdog.start()
                await self._stop()
        except* _StoppedError:
            pass
        finally:
            self._block_watch.stop()
            await self._leave(link, renewal, hints)
            if watchdog.fault is None:
                watchdog.end()  # else not before the process is gone

    def _watch(self, link: Link) -> Watchdog:
        def stop() -> None:
            self.loop.call_soon_threadsafe(self._stopping.set)

        grace_s = self.settings.drain_s + LEAVE_S
        thread = threading.get_ident()

        def there() -> bool:  # at a breakpoint all loops stand still, and are not stuck
            return link.connected and not held(thread)

        self._watchdog = Watchdog(self.loops, there, self.settings.stuck_s, stop, grace_s)
        return self._watchdog

    def run(self) -> None:
        """Run until told to stop; blocks.

        Raises:
            SystemExit: a loop of its own was stuck.
        """
        super().run()
        if self._watchdog is not None and self._watchdog.fault is not None:
            raise SystemExit(STUCK)

    async def _stop(self) -> NoReturn:
        """Once told to stop: drain, then end the loops too, wherever they wait."""
        await self._stopping.wait()
        await self._drain()
        raise _StoppedError

    async def _until_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this, unless told to stop meanwhile."""
        stopped = asyncio.ensure_future(self._stopping.wait())
        doing = asyncio.ensure_future(work)
        await asyncio.wait([stopped, doing], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if doing.done():
            doing.result()
        doing.cancel()

    async def _join(self, link: Link) -> None:
        """Join the fleet, however long Redis lets us wait."""
        joined = False
        while not joined:
            await link.up()
            try:
                await self._fleet.join(link)
                await self.home.refresh(link)  # before any handler asks what is called how
                joined = True
            except RedisAwayError as error:
                log.warning("fleet not joined yet", error=str(error))
                await asyncio.sleep(JOIN_AGAIN_S)

    def _wire(self, link: Link) -> None:
        clock, breakers = RedisClock(), Breakers(link, self.settings.shards)
        self._link, self._executors = link, Executors(self.settings)
        suspects = Suspects(self.settings, self.redis_url, link)
        spawning = Spawning(self._fleet, self.types.values(), self._catalogue, self.settings.deadline_s)
        for shard in range(self.settings.shards):
            lease = Lease(shard, self.settings.lease_s, partial(self._lost, shard))
            store = Store(link, shard, lease, self.settings, clock)
            shard_loop = ShardLoop(
                store=store,
                types=self.types,
                slots=self._slots,
                clock=clock,
                admission=Admission(link, shard, self.settings, clock, breakers),
                executors=self._executors,
                device=self.device,
                services=self.services,
                model=self.model,
                ears=self.ears,
                home=self.home.current,
                spawning=spawning,
                sessions=Sessions(link, self._fleet, self.settings),
                carrier=Carrier(link, shard, self._fleet, self.settings),
                suspects=suspects,
                watch=self._block_watch,
                settings=self.settings,
                freed=self._freed,
            )
            lease.signalled = shard_loop.signal
            self.shards.append(shard_loop)
            for loop in shard_loop.loops:
                self.loops.add(loop)
        for loop in (*self._own_loops(), *self._led_loops(link)):
            self.loops.add(loop)

    def _led_loops(self, link: Link) -> Iterator[Loop]:
        """What one process of the fleet does for all, each in an office of its own, and what campaigns for these."""
        auditor, scheduler = (
            Leader(link, office, self.settings.lease_s) for office in (audit.OFFICE, schedules.OFFICE)
        )
        self._leaders = (auditor, scheduler)
        yield from (leader.loop for leader in self._leaders)
        yield from audit.audits(link, auditor, self.settings)
        self._schedules = Schedules(link, self._fleet, scheduler, self.settings)
        yield self._schedules.loop

    def _own_loops(self) -> Iterator[Loop]:
        yield Announcer(self._link, self.types, self._catalogue, self.settings, self.ready).loop
        yield Cleaning(self._link, self._fleet, self.settings).loop
        self._home_loop = self.home.following(self._link)
        yield self._home_loop
        if any(one.type == SPOKEN for one in self.types.values()):
            yield Warming(self.home.current).loop
        if self.serves_arq:
            yield Loop(
                "arq",
                self._arq,
                trigger="timed",
                interval_s=self.poll_delay_s,
                describe="runs arq functions and cron jobs of the user's own",
                output="arq results",
            )
        if self.burst:
            yield burst(self._link, self.settings, self._busy, self.stop)

    async def _listen(self) -> Link:
        settings = self.settings
        wakes = {
            keys.wake(shard, pool).encode(): self.shards[shard].claim
            for shard in range(settings.shards)
            for pool in settings.pools
        }
        wakes |= {keys.carry(shard.lease.shard).encode(): shard.carry for shard in self.shards}
        wakes |= {keys.vacant(leader.office).encode(): leader.loop for leader in self._leaders}
        wakes |= {keys.PLANNED.encode(): self._schedules.loop, keys.FURNISHED.encode(): self._home_loop}
        by_prefix = {keys.prefix(shard).encode(): self.shards[shard] for shard in range(settings.shards)}

        def hear(channel: bytes, message: bytes) -> None:
            if (woken := wakes.get(channel)) is not None:
                woken.wake()
            else:
                by_prefix[channel[: channel.index(b"}") + 2]].signal(message.decode())

        channels = [*(channel.decode() for channel in wakes)]
        channels += [keys.signal(shard.lease.shard, shard.lease.owner) for shard in self.shards]
        link = Link(
            self.redis_url,
            timeout_s=settings.redis_timeout_s,
            channels=tuple(channels),
            on_message=hear,
            on_up=self._freed,
        )
        return await link.open()

    def _lost(self, shard: int, owner: str) -> None:
        self._hints.subscribe(keys.signal(shard, self.shards[shard].lease.owner))
        self.shards[shard].lost(owner)

    def _doubt(self) -> None:
        for shard in self.shards:
            shard.doubt()

    def _freed(self) -> None:
        """Look for work again: a slot is free, or hints were lost."""
        for shard in self.shards:
            shard.claim.wake()

    async def _arq(self) -> Answer:
        await self._poll_iteration()
        return Idle()

    async def _busy(self) -> bool:
        """Whether anything is under way here, or in arq's own queue."""
        queued = await self.pool.zcard(self.queue_name) if self.serves_arq else 0
        return bool(queued or self.running or self.tasks)

    def handle_sig_wait_for_completion(self, signum: signal.Signals) -> None:
        """First signal: drain. Second: now."""
        if not self._stopping.is_set():
            log.info("drain", on=signal.Signals(signum).name, running=self.running, grace_s=self.settings.drain_s)
            self._told_at = boottime()
            self._stopping.set()
        elif boottime() - self._told_at > DOUBLED_S and not self._haste.is_set():  # heard wherever the drain is by now
            log.warning("drain cut short", on=signal.Signals(signum).name, running=self.running)
            self._haste.set()

    def stop(self) -> None:
        """Drain and end `main`, as the first signal would."""
        self._stopping.set()

    async def _drain(self) -> None:
        """Claim no more; let missions come to their next commit; hand back what does not in time (B28)."""
        self.checks.drain()
        self._slots.open = False
        self.allow_pick_jobs = False
        for shard in self.shards:
            shard.drain()

        await asyncio.gather(*map(self._resign, self._leaders))

        async def empty() -> None:
            await asyncio.gather(*(shard.wait() for shard in self.shards), *self.tasks.values())

        drained, hurried = asyncio.ensure_future(empty()), asyncio.ensure_future(self._haste.wait())
        await asyncio.wait({drained, hurried}, timeout=self.settings.drain_s, return_when=asyncio.FIRST_COMPLETED)
        for task in (drained, hurried, *self.tasks.values()):
            task.cancel()
        try:
            async with asyncio.timeout(CUT_S + self.settings.redis_timeout_s):
                await asyncio.gather(*(shard.cut() for shard in self.shards))
        except (RedisAwayError, TimeoutError) as error:
            log.warning("drain incomplete, leases will lapse", error=str(error))

    async def _resign(self, leader: Leader) -> None:
        try:
            async with asyncio.timeout(self.settings.redis_timeout_s):
                await leader.resign()
        except (RedisAwayError, TimeoutError) as error:
            log.warning("office kept, its term will lapse", office=leader.office, error=str(error))

    async def _leave(self, link: Link, renewal: Renewal, hints: Link) -> None:
        await self._executors.close()
        await renewal.stop()
        try:
            async with asyncio.timeout(self.settings.redis_timeout_s):
                for shard in self.shards:
                    await shard.resign()
        except (RedisAwayError, TimeoutError) as error:
            log.warning("resign failed, the lease will lapse", error=str(error))
        if self.on_shutdown:
            await self.on_shutdown(self.ctx)
        await hints.close()
        await link.close()
        log.info("background down", instance=self.instance)

    async def close(self) -> None:
        """What arq still holds, after `main` has ended."""
        if self._pool is not None:
            await let_go(self._pool, self.tasks.values(), self.health_check_key, self.settings.redis_timeout_s)
            self._pool = None


async def _nothing(ctx: dict[Any, Any]) -> None:
    """Never called: there is no queue of arq's to find it in."""
