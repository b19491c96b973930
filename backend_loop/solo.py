"""A suspect mission alone in a process: ``python -m backend_loop.solo PARENT``, all else as JSON on stdin (P8).

It renews a lease of its own, hears signals, and runs this one mission as any worker would. It exits 0 however the
mission fares: ended, waiting, handed back, taken over. Any other end is the mission's doing, but `UNABLE`.
"""

import asyncio
import base64
import importlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

import uvloop
from pydantic_core import from_json, to_json

from backend_loop.admission import Admission
from backend_loop.blocking import BlockWatch
from backend_loop.breakers import Breakers
from backend_loop.devices.configured import device_of, kept
from backend_loop.devices.http import http_client
from backend_loop.executors import Executors
from backend_loop.files import Files
from backend_loop.inventory import HomeBook
from backend_loop.lease import Lease, Renewal
from backend_loop.lifeline import die_with, take_along
from backend_loop.mission import Mission, MissionType
from backend_loop.model import model_of
from backend_loop.outside import Outside
from backend_loop.redis_clock import RedisClock
from backend_loop.runner import Runner
from backend_loop.services import Services
from backend_loop.sessions import Sessions
from backend_loop.solo_verbs import SoloVerbs
from backend_loop.spawning import Spawning
from backend_loop.speech.ears import Ears
from backend_loop.store import Claimed, LostError, Store
from backend_loop.webhooks.sender import Webhooks
from shared import keys, logs, telemetry
from shared.catalogue import Catalogue
from shared.errors import RedisAwayError
from shared.fleet import Fleet
from shared.redis import Link
from shared.settings import Settings

log = logs.get(__name__)

UNABLE: Final = 69
"""Exit status (EX_UNAVAILABLE): it could not begin, which says nothing of the mission."""

BROKEN: Final = 70
"""Exit status (EX_SOFTWARE): the runner failed."""

CUT_S: Final = 1.0
"""How long a handler may take to end once it is cut."""


READY: Final = b"ready\n"
"""What the child says once it could run the mission: only then is the mission moved to its owner."""


class Facts(NamedTuple):
    """What a child needs to know before it has its mission.

    Attributes:
        module, name: of the mission class.
    """

    shard: int
    module: str
    name: str
    settings: Settings
    redis_url: str

    def pack(self) -> bytes:
        """A line of JSON."""
        return to_json({**self._asdict(), "settings": self.settings.opened(), "path": sys.path}) + b"\n"

    @classmethod
    def unpack(cls, line: bytes) -> "Facts":
        """What was packed; takes over the import path."""
        facts: dict[str, Any] = from_json(line)
        sys.path[:] = facts.pop("path")
        return cls(**{**facts, "settings": Settings(**facts["settings"])})


def packed(claimed: Claimed) -> bytes:
    """A mission as claim answered it, under the child's own owner: a line of JSON, what may be any bytes in base64."""
    texts = {name: _text(getattr(claimed, name)) for name in ("document", "envelope")}
    return to_json({**claimed._asdict(), **texts, "unread": [_text(entry) for entry in claimed.unread]}) + b"\n"


def unpacked(line: bytes) -> Claimed:
    """What was packed."""
    fields: dict[str, Any] = from_json(line)
    texts = {name: base64.b64decode(fields[name]) for name in ("document", "envelope")}
    return Claimed(**{**fields, **texts, "unread": tuple(base64.b64decode(entry) for entry in fields["unread"])})


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


class Solo:
    """The process' life."""

    def __init__(self, facts: Facts, definition: MissionType, claimed: Claimed) -> None:
        """Nothing is opened yet."""
        self._facts, self._settings, self._claimed = facts, facts.settings, claimed
        limit = facts.settings.max_transitions
        self._definition = replace(definition, plan=replace(definition.plan, max_transitions=limit))
        self._lease = Lease(facts.shard, facts.settings.lease_s, self._lost, claimed.owner)
        self._watch = BlockWatch([self._definition], facts.settings.lease_s / 2)
        self._cut, self._draining = asyncio.Event(), False
        self._runner: Runner
        self._running: asyncio.Task[None]

    async def live(self) -> int:
        """Run the mission; the exit status."""
        facts, settings, clock = self._facts, self._settings, RedisClock()
        link = await Link(facts.redis_url, timeout_s=settings.redis_timeout_s).open()
        store = Store(link, facts.shard, self._lease, settings, clock)
        home = HomeBook()
        fleet, spawning = await _spawning(link, settings, self._definition, home)
        if not await SoloVerbs(link, facts.shard, settings).renew(self._lease, clock):
            log.info("lease lost before it began", owner=self._lease.owner)
            await link.close()
            return 0
        executors, client = Executors(settings), http_client()
        device = device_of(settings, client, lambda: home.current().bindings())
        ears = Ears(settings, client, home.current)
        outside = Outside(
            clock=clock,
            lease=self._lease,
            admission=Admission(link, facts.shard, settings, clock, Breakers(link, settings.shards)),
            executors=executors,
            wakes=lambda _seconds: None,
            max_output=settings.max_output,
            device=device,
            services=Services(settings.outside_url, client) if settings.outside_url else None,
            model=model_of(settings, client),
            ears=ears,
            home=home.current,
            webhooks=Webhooks.of(settings),
            sessions=Sessions(link, fleet, settings),
            spawning=spawning,
            files=Files(settings.files_path, settings.max_files_bytes),
            database=settings.database_url,
            data=settings.data_dir.absolute(),
            ran=self._ran,
            reports=store.reports,
        )
        self._runner = Runner(self._claimed, self._definition, store, outside)
        try:
            async with kept(device):
                return await self._hearing(store)
        finally:
            await executors.close()
            await ears.close()
            await client.aclose()
            await link.close()

    async def _hearing(self, store: Store) -> int:
        """With all that may interrupt a mission: signals of its inbox, of the system, and the loss of its lease."""
        url, settings, loop = self._facts.redis_url, self._settings, asyncio.get_running_loop()
        renewal = Renewal(url, [self._lease], settings.lease_s, loop)
        watch = self._watch
        renewal.overslept = watch.overslept
        await self._runner.signal()  # looks into the inbox before the handler begins
        self._running = loop.create_task(self._runner.run())
        self._lease.signalled = self._signalled
        hints = await Link(
            url,
            timeout_s=settings.redis_timeout_s,
            channels=(keys.signal(self._facts.shard, self._lease.owner),),
            on_message=lambda _channel, message: self._signalled(message.decode()),
        ).open()
        for signum in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signum, self._drain)
        renewal.begin()
        watch.begin(renewal.ticked)
        try:
            return await self._end(store)
        finally:
            watch.stop()
            await renewal.stop()
            await hints.close()

    async def _end(self, store: Store) -> int:
        """Wait for it; what its end makes of this process."""
        claimed, running = self._runner.claimed, self._running
        cut = asyncio.ensure_future(self._cut.wait())
        await asyncio.wait({running, cut}, return_when=asyncio.FIRST_COMPLETED)
        cut.cancel()
        if self._cut.is_set():
            self._runner.drop()
            running.cancel()
            await asyncio.wait({running}, timeout=CUT_S)
        status = _status(running) if running.done() and not self._runner.dropped else 0
        if status != BROKEN:
            # what it does not hold any more is left alone; who does not let go is fenced from here on
            await store.release(claimed.owner, [(claimed.task_id, claimed.fence)])
            await store.resign()
        return status

    def _ran(self, handler: Callable[..., Any]) -> None:
        """It has survived this one: the next one is any worker's, and the place here another suspect's."""
        self._watch.ran(handler)
        self._runner.draining = True

    def _drain(self) -> None:
        """First signal: to the next commit. Second, or no commit in time: now."""
        if self._draining:
            self._cut.set()
            return
        log.info("drain", grace_s=self._settings.drain_s)
        self._draining = self._runner.draining = True
        asyncio.get_running_loop().call_later(self._settings.drain_s, self._cut.set)

    def _lost(self, _owner: str) -> None:
        self._cut.set()

    def _signalled(self, _task_id: str) -> None:
        if not self._running.done():
            self._hearing_of = asyncio.ensure_future(self._runner.signal())


def _status(running: asyncio.Task[None]) -> int:
    error = asyncio.CancelledError() if running.cancelled() else running.exception()
    if error is None:
        return 0
    if isinstance(error, LostError):
        log.warning("stale_writes_rejected", why=str(error))
        return 0
    log.error("runner failed", exc_info=error)
    return BROKEN


AGAIN_S: Final = 0.1
"""How long what makes children waits for a Redis that refuses."""


async def _spawning(link: Link, settings: Settings, definition: MissionType, home: HomeBook) -> tuple[Fleet, Spawning]:
    """The fleet, and what makes its children, however long Redis is away; the home is read besides."""
    fleet, catalogue = Fleet(settings.shards), Catalogue()
    while True:
        try:
            await link.up()
            await fleet.join(link)
            await catalogue.refresh(link)
            await home.refresh(link)
            return fleet, Spawning(fleet, [definition], catalogue, settings.deadline_s)
        except RedisAwayError:
            await asyncio.sleep(AGAIN_S)


def main() -> int:
    """Run the mission that stdin names; the exit status."""
    die_with(int(sys.argv[1]))
    let_go = take_along()
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        facts = Facts.unpack(sys.stdin.buffer.readline())
        logs.configure(facts.settings, "background")
        telemetry.configure(facts.settings, "dualloop-background")
        mission: type[Mission] = attrgetter(facts.name)(importlib.import_module(facts.module))
        os.write(1, READY)
        os.dup2(2, 1)  # what handlers print belongs to the log
        claimed = unpacked(sys.stdin.buffer.readline())
    except Exception as error:  # noqa: BLE001  whatever a module does at import
        log.warning("a suspect was not begun", error=f"{type(error).__name__}: {error}")
        return UNABLE
    try:
        # not asyncio.run, which would wait for a handler that swallows every cancel
        return loop.run_until_complete(Solo(facts, mission.definition, claimed).live())
    finally:
        telemetry.shutdown()
        let_go()


if __name__ == "__main__":
    sys.exit(main())
