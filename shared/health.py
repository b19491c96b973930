"""Health of a process: ``/livez`` (it runs), ``/readyz`` (it can do its work, or the sentence why not), ``/startupz``.

A process adds its checks when it is up; until then it has not started, and is not ready.
"""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from shared import logs
from shared.errors import RedisAwayError
from shared.loops import Loops
from shared.redis import ReplyError

CHECK_S = 1.0  # a check that takes longer has failed
STOP_S = 2.0  # how long the health server may take to end

_log = logs.get("health")


class NotReady(Exception):  # noqa: N818  an answer, not a fault
    """What a check raises: a sentence that says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    name: str
    ok: bool
    detail: str | None


Check = Callable[[], Awaitable[str | None]]


class Checks:
    """The named checks of one process."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._draining = False

    @property
    def started(self) -> bool:
        """Whether the process is up: it has its checks."""
        return bool(self._checks)

    def add(self, name: str, check: Check) -> None:
        """Ask this too: it returns a detail or None if all is well, and raises ``NotReady`` if not."""
        self._checks[name] = check

    def drain(self) -> None:
        """Be not ready from now on: the process takes in nothing more and will end."""
        self._draining = True

    async def findings(self) -> list[Finding]:
        """Run all checks at the same time; none can take longer than ``CHECK_S`` or break the others."""
        if self._draining:
            return [Finding("process", ok=False, detail="It is draining and will end.")]
        if not self._checks:
            return [Finding("process", ok=False, detail="It has not started yet.")]
        return await asyncio.gather(*(_find(name, check) for name, check in self._checks.items()))


async def _find(name: str, check: Check) -> Finding:
    try:
        async with asyncio.timeout(CHECK_S):
            return Finding(name, ok=True, detail=await check())
    except NotReady as reason:
        sentence = str(reason)
    except TimeoutError:
        sentence = f"No answer within {CHECK_S:g} s."
    except Exception as error:  # noqa: BLE001  a broken check says so, and breaks nothing else
        sentence = f"The check itself failed: {type(error).__name__}: {error}"
    return Finding(name, ok=False, detail=logs.redact(sentence))


class Calls(Protocol):
    """What can send one command to Redis: a ``Link``."""

    def call(self, *args: str) -> Awaitable[Any]:
        """The answer of Redis."""


def redis_check(link: Calls) -> Check:
    """Redis answers, is a master, and will not throw missions away when it is full."""

    async def check() -> str:
        try:
            await link.call("PING")
            role = await _info(link, "replication", "role")
            policy = await _policy(link)
        except RedisAwayError as error:
            raise NotReady(f"Redis cannot be used: {error}. Start it, or correct DUALLOOP_REDIS_URL.") from error
        if role not in {None, "master"}:
            raise NotReady("This Redis is a replica, which takes no writes. Let DUALLOOP_REDIS_URL name the master.")
        if policy not in {None, "noeviction"}:
            raise NotReady(
                f"Redis throws missions away when it is full: its maxmemory-policy is {policy}. Say CONFIG SET "
                "maxmemory-policy noeviction, and write it into its configuration."
            )
        if policy is None:
            return "Redis does not tell its maxmemory-policy; make sure that it is noeviction."
        return f"{role or 'role unknown'}, {policy}"

    return check


async def _policy(link: Calls) -> str | None:
    """The maxmemory-policy, or None if Redis does not tell (CONFIG is often forbidden where it is rented)."""
    try:
        answer = await link.call("CONFIG", "GET", "maxmemory-policy")
    except ReplyError:
        return await _info(link, "memory", "maxmemory_policy")
    pairs = list(answer.items()) if isinstance(answer, dict) else list(zip(answer[::2], answer[1::2], strict=True))
    return _text(pairs[0][1]) if pairs else None


async def _info(link: Calls, section: str, name: str) -> str | None:
    try:
        lines = _text(await link.call("INFO", section)).splitlines()
    except ReplyError:
        return None
    return next((line.partition(":")[2] for line in lines if line.startswith(f"{name}:")), None)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def loops_check(loops: Loops) -> Check:
    """No vital loop of the process is stuck, or has failed for long."""

    async def check() -> str:
        stuck = loops.stuck(time.monotonic())
        if stuck:
            raise NotReady("; ".join(stuck) + ". Restart the process if this stays.")
        return f"{sum(loop.alive for loop in loops)} loops run"

    return check


def is_probe(scope: Mapping[str, Any]) -> bool:
    """Whether a request (its ASGI scope) asks for health: asked every few seconds, worth neither span nor log line."""
    return scope.get("path") in {"/livez", "/readyz", "/startupz"}


def routes(checks: Checks) -> list[Route]:
    """``/livez /readyz /startupz``; only ``/readyz`` asks anybody."""

    async def livez(_: Request) -> JSONResponse:
        return _answer(200, {"status": "live"})

    async def startupz(_: Request) -> JSONResponse:
        return _answer(200, {"status": "started"}) if checks.started else _answer(503, {"status": "starting"})

    async def readyz(_: Request) -> JSONResponse:
        findings = await checks.findings()
        ready = all(finding.ok for finding in findings)
        told = {"status": "ready" if ready else "not_ready", "checks": [asdict(finding) for finding in findings]}
        return _answer(200 if ready else 503, told)

    return [Route("/livez", livez), Route("/readyz", readyz), Route("/startupz", startupz)]


def _answer(status: int, told: dict[str, Any]) -> JSONResponse:
    return JSONResponse(told, status, headers={"cache-control": "no-store"})


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process that this is only a part of."""
        yield


async def serve(checks: Checks, host: str, port: int, port_file: Path | None = None) -> None:
    """Serve the health of a process that serves nothing else, until cancelled.

    Args:
        checks: what to tell.
        host: address to listen on.
        port: port to listen on; 0: a free one.
        port_file: where the port is written once it can be reached; removed at the end.

    Raises:
        OSError: the port is taken.
    """
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        _log.error("fail", error=str(error), host=host, port=port)
        raise
    app = Starlette(routes=routes(checks))
    config = uvicorn.Config(
        app, lifespan="off", ws="none", log_config=None, access_log=False, timeout_graceful_shutdown=1
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]), name="health")
    try:
        if port_file is not None:
            _write(port_file, str(listening.getsockname()[1]))
        await asyncio.wait({serving})
        serving.result()
    finally:
        server.should_exit = True
        if port_file is not None:
            _remove(port_file)
        try:
            await asyncio.wait({serving}, timeout=STOP_S)
        finally:
            serving.cancel()
            listening.close()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(path)  # whoever reads it sees the whole port or no file


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
