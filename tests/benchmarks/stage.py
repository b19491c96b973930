"""What a benchmark runs on: a Redis server with the product's own options, and processes of the product beside it."""

import contextlib
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import redis

from dualloop.lifeline import ends_with_parent
from dualloop.parts import free_port
from dualloop.redis_program import Program
from tests.missions.tally import VARIABLE
from tests.waiting import until

OPTIONS: Final = ("--port", "0", "--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
MISSIONS: Final = "tests.missions.plain"
LOCAL: Final = "127.0.0.1"
END_S: Final = 20.0


class Stage:
    """A server, a folder, and what is started in it; made by ``stage``."""

    def __init__(self, server: subprocess.Popen[bytes], folder: Path) -> None:
        self.server, self.folder = server, folder
        self.socket = folder / "s"
        self.url = f"unix://{self.socket}"
        self.tally = folder / "tally"
        self.redis = redis.Redis.from_url(self.url)

    def empty(self) -> None:
        """Forget everything of the measurement before."""
        self.redis.flushall()
        self.tally.write_bytes(b"")

    @contextlib.contextmanager
    def process(self, *argv: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
        """A Python process with nothing of the caller's own settings; ended by SIGTERM, at last by SIGKILL."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                (sys.executable, *argv),
                env=inherited | {VARIABLE: str(self.tally)} | env,
                preexec_fn=ends_with_parent(),  # noqa: PLW1509  benchmarks run in the main thread
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield process
        finally:
            end(process)

    @contextlib.contextmanager
    def part(self, command: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
        """A process of the product, as ``dualloop COMMAND`` runs it."""
        given = {
            "DUALLOOP_REDIS_URL": self.url,
            "DUALLOOP_STATE_DIR": str(self.folder),
            "DUALLOOP_MISSIONS": MISSIONS,
        }
        with self.process("-m", "dualloop", command, **given | env) as process:
            yield process

    @contextlib.contextmanager
    def foreground(self, **env: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
        """A foreground that is ready, and its port."""
        port = free_port(LOCAL)
        with self.part("foreground", DUALLOOP_PORT=str(port), **env) as process:
            self.answers(process, port, "/readyz")
            yield port, process

    @contextlib.contextmanager
    def background(self, **env: str) -> Iterator[subprocess.Popen[bytes]]:
        """A background process that has announced its types; its lane may be filled before or after."""
        with self.part("background", **env) as process:
            until(lambda: self._owners() or process.poll() is not None, within=30, what="the background claims")
            self._alive(process)
            yield process

    def listens(self, process: subprocess.Popen[bytes], port: int) -> None:
        """Wait until a web server takes connections there."""
        until(lambda: process.poll() is not None or _status(port, "/"), within=30, what="the server listens")
        self._alive(process)

    def serves(self, port: int, type_: str) -> None:
        """Wait until the foreground knows the type."""
        until(lambda: _status(port, f"/v1/mission-types/{type_}") == 200, within=30, what=f"{type_} is announced")

    def waiting(self, priority: str) -> int:
        """How many missions are ready in that lane."""
        return int(self.redis.zcard(f"dl:{{s0}}:lane:{priority}:default:default"))  # type: ignore[arg-type]  # as _owners

    def answers(self, process: subprocess.Popen[bytes], port: int, path: str) -> None:
        """Wait until a web server answers 200 there."""
        until(lambda: process.poll() is not None or _status(port, path) == 200, within=30, what=f"{path} answers")
        self._alive(process)

    def _owners(self) -> int:
        return int(self.redis.zcard("dl:{s0}:owners"))  # type: ignore[arg-type]  # its stub covers the asyncio client too

    def _alive(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is not None:
            raise RuntimeError(f"a process ended at once:\n{(self.folder / 'log').read_text()[-3000:]}")


@contextlib.contextmanager
def stage(program: Program) -> Iterator[Stage]:
    """A fresh server in a folder of its own, gone with it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="dl-bench-"))  # short: a socket's path has ~100 characters at most
    server = subprocess.Popen(
        (program.path, "--dir", str(folder), "--unixsocket", str(folder / "s"), *OPTIONS),
        preexec_fn=ends_with_parent(),  # noqa: PLW1509  benchmarks run in the main thread
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        made = Stage(server, folder)
        until(lambda: _answers(made.redis) or server.poll() is not None, what=f"{program} answers")
        with contextlib.closing(made.redis):
            yield made
    finally:
        end(server)
        shutil.rmtree(folder)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end; make it, if it does not."""
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def _status(port: int, path: str) -> int:
    with contextlib.suppress(OSError, http.client.HTTPException):
        connection = http.client.HTTPConnection(LOCAL, port, timeout=2)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().status
    return 0
