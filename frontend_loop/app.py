"""The foreground process: FastAPI around the door, the feed and the results."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from frontend_loop import problems
from frontend_loop.bodies import Bodies
from frontend_loop.connection import Parts
from frontend_loop.control import Control
from frontend_loop.dead_letters import DeadLetters
from frontend_loop.door import Door
from frontend_loop.feed import AGAIN_S, Feed
from frontend_loop.home_file import HomeFile
from frontend_loop.hosts import HostCheck
from frontend_loop.ingress import http, ws
from frontend_loop.ingress.batch import batch_router
from frontend_loop.ingress.files import files_router
from frontend_loop.ingress.home import home_router
from frontend_loop.ingress.inventory import inventory_router
from frontend_loop.ingress.schedules import schedules_router
from frontend_loop.ingress.types import types_router
from frontend_loop.ingress.verbs import verbs_router
from frontend_loop.ingress.voice import voice_router
from frontend_loop.inspection import Inspection
from frontend_loop.inventory import Inventories
from frontend_loop.kinds import Kinds
from frontend_loop.listing import Listing
from frontend_loop.one_write import OneWrite
from frontend_loop.operating import Operating
from frontend_loop.operator import dead_letter_router, operator_router
from frontend_loop.replay import Replays
from frontend_loop.results import Results
from frontend_loop.schedules import Schedules
from frontend_loop.serving import KEEP_ALIVE_S, Server, SocketProtocol
from frontend_loop.voice_sessions import VoiceSessions
from shared import catalogue_file, garbage, health, logs, telemetry
from shared.catalogue import Catalogue
from shared.errors import RedisAwayError
from shared.fleet import Fleet, FleetMismatchError
from shared.loop import After, Answer, Idle, Loop
from shared.loops import Loops
from shared.redis import Link
from shared.redis_url import RedisUrlError
from shared.settings import Settings
from shared.watchdog import STUCK, Watchdog

log = logs.get(__name__)

CATALOGUE_S: Final = 1.0
JOIN_S: Final = 2.0
END_S: Final = 5.0
"""How long the loops may take to end, and the rest of a stop besides the drain."""
SERVER: Final[dict[str, Any]] = {
    "loop": "uvloop",
    "http": OneWrite,
    "ws": SocketProtocol,
    "timeout_keep_alive": KEEP_ALIVE_S,
    "ws_per_message_deflate": False,  # frames are small; it would cost more time than it saves
    "log_config": None,
    "access_log": False,
}
"""How uvicorn serves; what it is measured against is served likewise."""


class Foreground:
    """The parts of one foreground, wired; `serve` them by `app`."""

    def __init__(self, settings: Settings, redis_url: str) -> None:
        """Nothing is opened yet.

        Raises:
            CatalogueFileError: the rows for a first start cannot be read.
        """
        self.settings, self.redis_url = settings, redis_url
        self._first_rows = catalogue_file.read(settings.catalogue) if settings.catalogue is not None else {}
        self.link = Link(redis_url, timeout_s=settings.redis_timeout_s)
        self.catalogue, self.fleet = Catalogue(), Fleet(settings.shards)
        self.loops, self.checks = Loops(), health.Checks()
        self.feed = Feed(self.link, settings.shards)
        self.results = Results(self.feed, self.fleet)
        self.control = Control(self.link, settings)
        self.door = Door(self.link, self.fleet, self.catalogue, settings, self.feed.front)
        self.voices = VoiceSessions(self.link, self.feed, settings)
        self.sockets = ws.Sockets(Parts(self.door, self.feed, self.results, self.control, settings), self.voices)
        self.commands = http.Commands(self.door, self.results, settings)
        self.home_file = HomeFile(self.link, settings.home_path, wanted=settings.home_file is not None)
        self.ask_stop: Callable[[], None] = lambda: None  # of whoever serves it
        grace_s = settings.drain_s + END_S
        self.watchdog = Watchdog(self.loops, lambda: self.link.connected, settings.stuck_s, self.stop, grace_s)
        self.checks.add("redis", health.redis_check(self.link))
        self.checks.add("fleet", self._joined)
        self.checks.add("loops", health.loops_check(self.loops))

    def stop(self) -> None:
        """Ask whoever serves it for an orderly end; from any thread."""
        self.ask_stop()

    def mount(self, app: FastAPI) -> None:
        """Add all routes."""
        problems.install(app)
        app.router.routes.extend(health.routes(self.checks))
        app.include_router(http.router(self.commands, self.results, self.settings))
        app.include_router(voice_router(self.door, self.commands, self.settings))
        app.include_router(batch_router(self.door, self.settings))
        app.include_router(types_router(self.catalogue))
        bodies, kinds = Bodies(self.settings), Kinds(self.link, self.catalogue)
        operating = Operating(self.control, kinds)
        app.include_router(verbs_router(self.results, self.control, operating, bodies, self.settings))
        listing, inspection = (
            Listing(self.link, self.fleet),
            Inspection(self.link, self.fleet, self.catalogue, self.settings),
        )
        app.include_router(operator_router(listing, inspection, operating, self.results, bodies))
        letters = DeadLetters(self.link, self.fleet)
        replays = Replays(self.link, kinds, letters, self.fleet, self.settings)
        app.include_router(dead_letter_router(letters, inspection, replays, self.results, bodies))
        schedules = Schedules(self.link, self.fleet, self.door, self.settings)
        app.include_router(schedules_router(schedules, bodies))
        app.include_router(files_router(self.results, self.link, self.settings))
        app.include_router(home_router(self.settings))
        app.include_router(inventory_router(Inventories(self.link, self.home_file, self.settings)))

    @contextlib.asynccontextmanager
    async def open(self, _app: FastAPI) -> AsyncIterator[None]:
        """Connect, join the fleet, and keep the loops running."""
        settings = self.settings
        await self.link.open()
        with contextlib.suppress(TimeoutError, RedisAwayError):
            # without Redis the front answers 503, and joins later
            async with asyncio.timeout(JOIN_S):
                await self.link.up()
                await self._learn()
        await self.feed.open(self.redis_url, settings.redis_timeout_s)
        for loop in self._loops():
            self.loops.add(loop)
        log.info("foreground up", front=self.feed.front, types=len(self.catalogue))
        try:
            async with asyncio.TaskGroup() as group:
                self.loops.start(group)
                self.watchdog.start()
                yield
                self.checks.drain()
                await self.loops.end(END_S / 2)
        finally:
            await self.feed.close()
            await self.link.close()
            self.watchdog.end()
            log.info("foreground down", front=self.feed.front)

    def _loops(self) -> tuple[Loop, ...]:
        return (
            self.feed.loop,
            self.feed.leaving,
            self.sockets.loop,
            self.voices.leaving,
            self.home_file.loop,
            Loop(
                "catalogue",
                self._follow,
                trigger="timed",
                interval_s=CATALOGUE_S,
                describe="joins the fleet, then follows the mission types that workers announce",
                output="this foreground's copy",
                vital=False,
            ),
        )

    async def _follow(self) -> Answer:
        try:
            await self._learn()
        except RedisAwayError:
            return After(AGAIN_S)  # whose link says so in the log; this foreground must be there as soon as Redis is
        return Idle()

    async def _learn(self) -> None:
        """Join the fleet and learn its types; again and again, since Redis may have lost its data."""
        await self.fleet.join(self.link)
        if self.catalogue.revision <= 0 and await catalogue_file.publish(self.link, self._first_rows):
            log.info("catalogue of a first start published", rows=len(self._first_rows))
        await self.catalogue.refresh(self.link)

    async def _joined(self) -> None:
        if not self.fleet.joined:
            raise health.NotReady("this process has not reached Redis since it started")

    def asgi(self) -> ASGIApp:
        """The application that serves it."""
        app = FastAPI(
            title="Dual Loop",
            version="1",
            lifespan=self.open,
            redoc_url=None,
            telemetry={"exclude": health.is_probe, "operation_spans": False},
        )
        self.mount(app)
        return HostCheck(ShortCut(app, self.commands, self.sockets), self.settings.allowed_hosts)

    async def drain(self, within_s: float) -> None:
        """Take in no more and end all streams."""
        self.checks.drain()
        self.results.drain()
        await self.sockets.drain(within_s)


class ShortCut:
    """Takes the hot POST and the socket before the router does, which costs as much as all that the POST does."""

    def __init__(self, app: ASGIApp, commands: ASGIApp, sockets: ASGIApp) -> None:
        """In front of `app`."""
        self._app, self._commands, self._sockets = app, commands, sockets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Two comparisons for everybody else."""
        if scope["type"] == "http" and scope["path"] == http.COMMANDS and scope["method"] == "POST":
            await self._commands(scope, receive, send)
        elif scope["type"] == "websocket" and scope["path"] in ws.PATHS:
            await self._sockets(scope, receive, send)
        else:
            await self._app(scope, receive, send)


async def _try_join(settings: Settings, redis_url: str) -> None:
    """Find out before serving whether this process belongs to its fleet; without Redis that has to wait."""
    link = Link(redis_url, timeout_s=settings.redis_timeout_s)
    with contextlib.suppress(RedisAwayError):
        await link.open(wait_s=JOIN_S)
        await Fleet(settings.shards).join(link)
    await link.close()


def server(foreground: Foreground) -> Server:
    """What serves a foreground, and ends within the drain."""
    settings = foreground.settings
    options = SERVER | {"host": settings.host, "port": settings.port, "ws_max_size": settings.max_body + ws.FRAME_ROOM}
    made = Server(uvicorn.Config(foreground.asgi(), **options), foreground.drain, settings.drain_s)

    def stop() -> None:
        made.should_exit = True

    foreground.ask_stop = stop
    return made


def serve(foreground: Foreground) -> None:
    """Serve it until told to stop; blocks.

    Raises:
        SystemExit: a loop of its own was stuck.
    """
    serving = server(foreground)
    garbage.settle()
    serving.run()
    if foreground.watchdog.fault is not None:
        raise SystemExit(STUCK)


def run(settings: Settings) -> None:
    """Run a foreground until SIGTERM or SIGINT; blocks.

    Raises:
        SystemExit: with a sentence, where the configuration is wrong; with `STUCK`, where a loop of its own was stuck.
    """
    logs.configure(settings, "foreground")
    telemetry.configure(settings, "dualloop-foreground")
    if settings.redis_url is None:
        raise SystemExit("DUALLOOP_REDIS_URL is not set: set it, or start everything with `dualloop up`")
    # uvicorn drains, then raises the signal again: what was asked for is no failure
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        asyncio.run(_try_join(settings, settings.redis_url))
        serve(Foreground(settings, settings.redis_url))
    except (FleetMismatchError, RedisUrlError, catalogue_file.CatalogueFileError) as error:
        raise SystemExit(str(error)) from None
    finally:
        telemetry.shutdown()
