"""The product as real processes on one Redis: foregrounds and workers, to be killed, stopped, frozen and restarted.

    async with running(redis_url, tmp_path, foregrounds=2, DUALLOOP_RETENTION_S="5") as stack:
        stack.foregrounds[0].kill()
        await stack.workers[0].stop()

Each process writes to ``NAME.log`` in the folder; pytest keeps the folders of its last runs.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import httpx
import redis

from shared import keys
from shared.clock import now_ms
from tests.forge import Forked, forked
from tests.ports import unused_port
from tests.waiting import eventually

LOCAL = "127.0.0.1"
MISSIONS = "tests.missions.plain"
START_S = 120.0  # generous: several test runs may share two cores


class Part:
    """One process; a restart keeps its name and its port."""

    def __init__(self, command: str, name: str, folder: Path, env: dict[str, str]) -> None:
        self.command, self.name, self.env = command, name, env
        self.log = folder / f"{name}.log"
        self.port = unused_port()
        self.url = f"http://{LOCAL}:{self.port}"
        self.ws = f"ws://{LOCAL}:{self.port}/v1/ws"
        self.process: Forked | subprocess.Popen[bytes] | None = None
        self.module = "dualloop"
        """Run in its place: one that does the same, and what a test wants besides."""

    @property
    def running(self) -> Forked | subprocess.Popen[bytes]:
        assert self.process is not None, f"{self.name} was not started"
        return self.process

    def spawn(self, **env: str) -> None:
        """Start it without waiting; ``env`` holds from now on, restarts included."""
        assert self.process is None or self.process.poll() is not None, f"{self.name} runs already"
        self.env |= env
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
        port = "DUALLOOP_PORT" if self.command == "foreground" else "DUALLOOP_HEALTH_PORT"
        with self.log.open("ab") as log:
            self.process = forked(
                ("-m", self.module, self.command),
                env=inherited | self.env | {port: str(self.port)},
                stdout=log,
                stderr=log,
                session=True,
                death=signal.SIGKILL,
            )

    async def ready(self) -> None:
        """Wait until it says that it is."""
        async with httpx.AsyncClient(trust_env=False, timeout=10) as client:

            async def answers() -> bool:
                if self.running.poll() is not None:
                    return True
                with contextlib.suppress(httpx.HTTPError):
                    return (await client.get(f"{self.url}/readyz")).status_code == 200
                return False

            try:
                await eventually(answers, START_S, f"{self.name} is ready")
            except AssertionError as error:
                raise AssertionError(f"{error}; its log ends with:\n{self.tail()}") from None
        assert self.running.poll() is None, f"{self.name} ended with {self.running.returncode}:\n{self.tail()}"

    async def tells_types(self) -> bool:
        """Whether this foreground knows of any mission type; it looks once a second."""
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            return bool((await client.get(f"{self.url}/v1/mission-types")).json()["mission_types"])

    async def start(self, **env: str) -> None:
        self.spawn(**env)
        await self.ready()

    async def stop(self, within: float = 60.0) -> int:
        """SIGTERM; the exit code."""
        self.running.send_signal(signal.SIGTERM)
        await eventually(lambda: self.running.poll() is not None, within, f"{self.name} ends on SIGTERM")
        return self.running.wait()

    async def restart(self, **env: str) -> None:
        """Start it again, after a clean stop if it still runs."""
        if self.running.poll() is None:
            await self.stop()
        await self.start(**env)

    def kill(self) -> None:
        """SIGKILL: it does nothing any more, from one instruction to the next."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def freeze(self) -> None:
        """SIGSTOP."""
        self.running.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT."""
        self.running.send_signal(signal.SIGCONT)

    def tail(self, characters: int = 3000) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else ""


class Stack:
    """Made by ``running``."""

    def __init__(self, redis_url: str, folder: Path, env: dict[str, str]) -> None:
        self.redis_url, self.folder = redis_url, folder
        self.foregrounds: list[Part] = []
        self.workers: list[Part] = []
        self.env = {
            "DUALLOOP_REDIS_URL": redis_url,
            "DUALLOOP_STATE_DIR": str(folder),
            "DUALLOOP_MISSIONS": MISSIONS,
            "DUALLOOP_LOG_FORMAT": "json",
        } | env

    @property
    def url(self) -> str:
        """Base URL of the first foreground."""
        return self.foregrounds[0].url

    @property
    def ws(self) -> str:
        """Socket URL of the first foreground."""
        return self.foregrounds[0].ws

    def foreground(self, **env: str) -> Part:
        """One more, not started."""
        part = Part("foreground", f"foreground-{len(self.foregrounds)}", self.folder, self.env | env)
        self.foregrounds.append(part)
        return part

    def worker(self, **env: str) -> Part:
        """One more, not started."""
        part = Part("background", f"worker-{len(self.workers)}", self.folder, self.env | env)
        self.workers.append(part)
        return part

    async def start(self, parts: Iterable[Part]) -> None:
        """All of them at the same time; with a worker among them, until its types are announced."""
        parts = tuple(parts)
        for part in parts:
            part.spawn()
        for part in parts:
            await part.ready()
        if any(part in self.workers for part in parts):
            with redis.Redis.from_url(self.redis_url) as client:
                await eventually(lambda: client.exists(keys.CATALOGUE), START_S, "the workers' types are announced")
            for part in self.foregrounds:
                if part.process is not None and part.process.poll() is None:
                    await eventually(part.tells_types, START_S, f"{part.name} has heard of the types")

    def expire(self, task_id: str) -> None:
        """Its deadline has come: for tests that want it in the middle of something, however slow the machine is."""
        with redis.Redis.from_url(self.redis_url) as client:
            now = now_ms()
            client.hset(keys.mission(0, task_id), "deadline", now)
            client.zadd(f"{keys.prefix(0)}deadlines", {task_id: now})

    def end(self) -> None:
        for part in (*self.foregrounds, *self.workers):
            part.kill()


@contextlib.asynccontextmanager
async def running(
    redis_url: str, folder: Path, *, foregrounds: int = 1, workers: int = 1, **env: str
) -> AsyncIterator[Stack]:
    """So many processes, all ready; ``env`` is theirs. Killed at the end, whatever the test did to them."""
    stack = Stack(redis_url, folder, env)
    parts = [stack.foreground() for _ in range(foregrounds)] + [stack.worker() for _ in range(workers)]
    try:
        await stack.start(parts)
        yield stack
    finally:
        stack.end()
