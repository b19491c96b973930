"""The worker's side of its child processes: start, ask, cut, kill, keep warm, end."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

from backend_loop.redis_clock import boottime
from backend_loop.step_frames import ENDS, HEAD, Frame, pack, unpack
from shared.logs import get
from shared.settings import Settings

log = get(__name__)

START_S: Final = 60.0
"""How long a child may take to start and to import a mission module."""

ROOM: Final = 4
"""An answer may be so many times as long as what a step may commit; what is longer is not even read."""


class DiedError(Exception):
    """The child ended before it answered; the sentence says how."""


class TooMuchError(Exception):
    """The answer is longer than allowed."""


class BrokenError(Exception):
    """The child lives, and cannot run this handler."""


class Child:
    """One warm process; it runs one handler at a time."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Made by `start`."""
        self._process, self._reader, self._writer = process, reader, writer
        self.runs = 0
        self.cut = False
        self.idle_since = 0.0

    @classmethod
    async def start(cls, settings: Settings, program: str) -> "Child":
        """A fresh process of that module. Called in the main thread: the kernel ends the child with its thread.

        Raises:
            OSError: the system has no room for one.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                command = (sys.executable, "-m", program, str(theirs.fileno()), str(os.getpid()))
                process = await asyncio.create_subprocess_exec(
                    *command, stdin=asyncio.subprocess.DEVNULL, pass_fds=(theirs.fileno(),), start_new_session=True
                )
            reader, writer = await asyncio.open_connection(sock=ours)
        except BaseException:
            ours.close()
            raise
        child = cls(process, reader, writer)
        hello = {"path": sys.path, "log_format": settings.log_format, "log_level": settings.log_level}
        writer.write(pack({**hello, "service": "background"}))
        return child

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None and not self._reader.at_eof()

    async def load(self, module: str) -> None:
        """Have it import a module, unless it has.

        Raises:
            DiedError, BrokenError: it did not.
        """
        try:
            async with asyncio.timeout(START_S):
                self._writer.write(pack({"load": module}))
                answer = await self._read(1 << 20)
        except TimeoutError:
            raise DiedError(f"it was not ready within {START_S:g} s") from None
        if "broken" in answer:
            raise BrokenError(answer["broken"])

    async def run(self, request: bytes, reply: Callable[[Frame], Awaitable[Frame | None]], limit: int) -> Frame:
        """Run a handler.

        Args:
            request: a packed frame with what `step_process` takes as ``run``.
            reply: answers what the handler asks while it runs; None where it only tells.
            limit: bytes that the answer may have.

        Raises:
            DiedError: the process ended first.
            TooMuchError: the answer is longer than that.
        """
        self.runs += 1
        self._writer.write(request)
        while True:
            frame = await self._read(limit)
            if frame.keys() & ENDS:
                return frame
            if (answer := await reply(frame)) is not None:
                self._writer.write(pack(answer))

    async def _read(self, limit: int) -> Frame:
        try:
            size: int = HEAD.unpack(await self._reader.readexactly(HEAD.size))[0]
            if size > limit:
                raise TooMuchError(f"has {size} bytes, of {limit} allowed")
            return unpack(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise DiedError(await self._fate()) from None
        except ValueError as error:
            raise DiedError(f"it said what is no JSON: {error}") from error

    async def _fate(self) -> str:
        """How it ended; one that closed its pipe and lives on is ended."""
        try:
            async with asyncio.timeout(1.0):
                code = await self._process.wait()
        except TimeoutError:
            return "it closed the pipe to its worker"
        if code < 0:
            return f"it was ended by {_name(-code)}"
        return f"it exited with {code}"

    def terminate(self) -> None:
        """Cut the handler and all that it has started: SIGTERM; it may answer yet."""
        self.cut = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the process and all it has started."""
        self._signal(signal.SIGKILL)

    async def end(self) -> None:
        """Kill it; returns when it is gone."""
        self.kill()
        await self._process.wait()
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    def _signal(self, signum: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signum)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Children:
    """At most so many processes, kept warm while there is work.

    Args:
        settings: how long they are kept.
        program: module that is run, and speaks `step_frames`; the default runs handlers.
        most: processes at a time; None: as many as settings say of handlers.
    """

    def __init__(self, settings: Settings, program: str = "backend_loop.step_process", most: int | None = None) -> None:
        """None is started yet."""
        self._settings, self._program = settings, program
        self._places = asyncio.Semaphore(most or settings.processes)
        self._all: set[Child] = set()
        self._idle: list[Child] = []
        self._chores: set[asyncio.Task[Any]] = set()
        self._tidying: asyncio.TimerHandle | None = None

    async def borrow(self, module: str) -> Child:
        """A child that has imported this module; waits while all are busy. Give it back by `back`.

        Raises:
            DiedError, BrokenError, OSError: there is none.
        """
        await self._places.acquire()
        try:
            while True:
                child, fresh = await self._any()
                try:
                    await child.load(module)
                except DiedError:
                    self._drop(child)
                    if fresh:
                        raise
                except BaseException:
                    self._drop(child)
                    raise
                else:
                    return child
        except BaseException:
            self._places.release()
            raise

    async def _any(self) -> tuple[Child, bool]:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child, False
            self._drop(child)
        # to its end, whatever becomes of us: half a start would leave a process that nobody knows
        starting = self._chore(Child.start(self._settings, self._program))
        try:
            child = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(self._unwanted)
            raise
        self._all.add(child)
        return child, True

    def _unwanted(self, starting: asyncio.Task[Child]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._drop(starting.result())

    def back(self, child: Child, *, usable: bool) -> None:
        """Take a child back: kept for the next handler, or ended."""
        if usable and child.alive and child.runs < self._settings.process_runs:
            child.idle_since = boottime()
            self._idle.append(child)
            self._look_later()
        else:
            self._drop(child)
        self._places.release()

    def _drop(self, child: Child) -> None:
        self._all.discard(child)
        self._chore(child.end())

    def _chore(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task

    def _look_later(self) -> None:
        if self._tidying is None:
            loop = asyncio.get_running_loop()
            self._tidying = loop.call_later(self._settings.process_idle_s, self._tidy)

    def _tidy(self) -> None:
        """End who had no work for so long."""
        self._tidying = None
        since = boottime() - self._settings.process_idle_s
        for child in [one for one in self._idle if one.idle_since <= since]:
            self._idle.remove(child)
            self._drop(child)
        if self._idle:
            self._look_later()

    async def close(self) -> None:
        """End them all, busy or not."""
        if self._tidying is not None:
            self._tidying.cancel()
        self._idle.clear()
        for child in list(self._all):
            self._drop(child)
        while self._chores:
            await asyncio.wait(self._chores)
