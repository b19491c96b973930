"""The Redis that comes along: one server per state folder, held by one process, joined by others.

Two locks tell the whole story. ``holder.lock`` belongs to the process that may run the server. ``server.lock`` is
inherited by the server itself, so it stays taken until a server whose holder was killed is truly gone: two servers
never write one folder. The record beside them says where the server listens and which program wrote the data.
"""

import contextlib
import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import redis
from pydantic import BaseModel

from dualloop.errors import Refusal
from dualloop.lifeline import ends_with_parent
from dualloop.redis_program import Program, find_program
from dualloop.state_folder import private_folder, state_folder, write_whole
from shared.file_lock import try_lock

LONGEST_SOCKET_PATH = 99  # the kernels' limit is 103 to 107 bytes; stay clear of it
_STEP_S = 0.01
_LEFTOVER_S = 10.0  # what a server may take to end after its holder
_START_S = 60.0  # without any answer; loading much data answers LOADING and may take longer
_OPTIONS = (
    *("--port", "0", "--unixsocketperm", "600", "--daemonize", "no", "--always-show-logo", "no"),
    *("--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--maxmemory-policy", "noeviction"),
)


class _Record(BaseModel):
    url: str
    brand: str
    version: tuple[int, int, int]
    holder: int


@dataclass(frozen=True)
class HeldRedis:
    """The right to run the one server of a state folder, until ``close``."""

    folder: Path
    program: Program
    socket: Path
    locks: tuple[int, int]

    @property
    def url(self) -> str:
        """Where the server listens once it runs."""
        return f"unix://{quote(str(self.socket))}"

    @property
    def argv(self) -> tuple[str, ...]:
        """The command that runs the server; give it ``inherited`` too."""
        return (str(self.program.path), "--dir", str(self.folder), "--unixsocket", str(self.socket), *_OPTIONS)

    @property
    def inherited(self) -> tuple[int, ...]:
        """Descriptors that the server must inherit: its own lock."""
        return self.locks[1:]

    def record(self) -> None:
        """Tell joiners and later holders, once the server answers: where it is, and who writes the data now."""
        brand, version = self.program.brand, self.program.version
        told = _Record(url=self.url, brand=brand, version=version, holder=os.getpid())
        write_whole(self.folder / "server.json", told.model_dump_json())

    def close(self) -> None:
        """Give the right back; the server, if it still runs, keeps its lock."""
        for lock in self.locks:
            os.close(lock)


def hold_redis(state_dir: Path, chosen: Path | None = None) -> HeldRedis | None:
    """Take the right to run the state folder's server; None: another process holds it.

    Raises:
        Refusal: no usable server program, data that it cannot read, or a folder or leftover server in the way.
    """
    folder = private_folder(state_folder(state_dir) / "redis")
    if (holder := try_lock(folder / "holder.lock")) is None:
        return None
    try:
        program = find_program(chosen)
        _refuse_unreadable(folder, program)
        return HeldRedis(folder, program, _socket_path(folder), (holder, _leftover_gone(folder)))
    except BaseException:
        os.close(holder)
        raise


def running_url(state_dir: Path) -> str | None:
    """URL of the state folder's server if it runs and answers, else None."""
    record = _record(state_dir.absolute() / "redis")
    return record.url if record and answers(record.url) else None


def is_held(state_dir: Path) -> bool:
    """Whether the state folder's server is there, be it that it does not answer."""
    lock = state_dir.absolute() / "redis" / "server.lock"
    if not lock.exists():
        return False
    if (taken := try_lock(lock)) is None:
        return True
    os.close(taken)
    return False


@contextlib.contextmanager
def embedded_redis(state_dir: Path, chosen: Path | None = None) -> Iterator[str]:
    """Run the state folder's server while the context is open, or join the one that runs; gives its URL.

    Call it in the main thread: on Linux the server ends with the thread that started it.

    Raises:
        Refusal: as ``hold_redis``, or the server did not start.
    """
    end = time.monotonic() + _START_S
    while (held := hold_redis(state_dir, chosen)) is None:
        if (url := running_url(state_dir)) is not None:
            yield url
            return
        if time.monotonic() > end:
            raise Refusal(f"Another process holds the Redis of {state_dir}, and it does not answer.")
        time.sleep(_STEP_S)  # its holder is starting it, or ending
    with contextlib.closing(held), _served(held):
        yield held.url


def answers(url: str) -> bool:
    """Whether a Redis answers there, now."""
    with contextlib.suppress(redis.RedisError), redis.Redis.from_url(url, socket_timeout=2) as client:
        return bool(client.ping())
    return False


@contextlib.contextmanager
def _served(held: HeldRedis) -> Iterator[None]:
    log = held.folder / "server.log"
    with log.open("ab") as output:
        server = subprocess.Popen(  # noqa: S603  the program was checked
            held.argv,
            pass_fds=held.inherited,
            preexec_fn=ends_with_parent(),  # noqa: PLW1509  the main thread, as the docstring asks
            start_new_session=True,  # a Ctrl-C is for the holder, which stops the server last
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        while not answers(held.url):
            if server.poll() is not None:
                raise Refusal(f"{held.program} ended at once (exit code {server.returncode}); {log} says why.")
            time.sleep(_STEP_S)
        held.record()
        yield
    finally:
        server.terminate()
        try:
            server.wait(_LEFTOVER_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _leftover_gone(folder: Path) -> int:
    """The server's lock, as soon as the server of a holder that was killed has ended; asked to, if need be."""
    record = _record(folder)
    start, asked = time.monotonic(), False
    while (lock := try_lock(folder / "server.lock")) is None:
        waited = time.monotonic() - start
        if waited > _LEFTOVER_S:
            raise Refusal(f"A Redis server without an owner still runs in {folder}: stop it, then try again.")
        if not asked and record and waited > _LEFTOVER_S / 10:
            asked = True
            with contextlib.suppress(redis.RedisError), redis.Redis.from_url(record.url, socket_timeout=2) as client:
                client.shutdown()  # one that is frozen does not even answer
        time.sleep(_STEP_S)
    return lock


def _refuse_unreadable(folder: Path, program: Program) -> None:
    if (record := _record(folder)) is None:
        return
    wrote = record.version[:2]
    same_brand = record.brand == program.brand
    if same_brand and program.version[:2] >= wrote:
        return
    if not same_brand and record.brand == "Redis" and wrote <= (7, 2):  # the formats parted after it
        return
    raise Refusal(
        f"The data in {folder} was written by {record.brand} {'.'.join(map(str, record.version))}, which {program} "
        "cannot read: name a server that can in DUALLOOP_REDIS_SERVER, or another folder in DUALLOOP_STATE_DIR."
    )


def _record(folder: Path) -> _Record | None:
    with contextlib.suppress(FileNotFoundError):
        return _Record.model_validate_json((folder / "server.json").read_bytes())
    return None


def _socket_path(folder: Path) -> Path:
    """In the folder; where that is too deep for a socket, in a short private folder of the user's."""
    near = folder / "s"
    if len(os.fsencode(near)) <= LONGEST_SOCKET_PATH:
        return near
    name = f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}.s"
    for base in (Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108  the folder below is checked to be private
        far = base / f"dualloop-{os.getuid()}" / name
        if len(os.fsencode(far)) <= LONGEST_SOCKET_PATH:
            private_folder(far.parent)
            return far
    raise Refusal(f"{folder} is too deep for a unix socket: choose a shorter DUALLOOP_STATE_DIR.")
