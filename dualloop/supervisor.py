"""Keeps a list of processes alive, and ends them in order.

Each part is a child with a session of its own, so that a Ctrl-C in the terminal reaches only the supervisor, and on
Linux it cannot outlive the supervisor. A part that ends is started again, with backoff. The supervisor must run in the
main thread: the kernel ties a child's life to the thread that spawned it.
"""

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import SplitResult, unquote, urlsplit

import aiomqtt
import httpx

from dualloop.errors import Refusal
from dualloop.lifeline import ends_with_parent
from shared.mqtt import connect

BACKOFF_S = (0.1, 30.0)
"""First and longest pause before a part is started again; doubles, and starts anew after `STEADY_S`."""
STEADY_S = 30.0
TRIES_TO_START = 3
"""Ends that a part may have before it was ever ready; then the stack gives up."""
LOG_BYTES = 10_000_000
"""A log that is longer becomes ``NAME.log.1``, in place of the one before."""
_PROBE_S = 0.05
_ANSWER_S = 2
_TRIM_S = 60.0


@dataclass(frozen=True)
class Part:
    """A process to keep alive."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    ready: str | None = None
    """What answers once it is ready: ``http://`` below 500, ``unix://`` and ``redis://`` a PING, ``mqtt://`` at all."""
    log: Path | None = None
    """Where its output goes; None: to the terminal."""
    grace_s: float = 10.0
    """What it may take to stop before it is killed."""
    base: bool = False
    """Nothing else starts before it is ready."""
    inherited: tuple[int, ...] = ()
    """Descriptors that it gets."""
    on_ready: Callable[[], None] = lambda: None
    missions: bool = False
    """It runs mission modules, and begins anew when they are edited."""


@dataclass
class _Kept:
    part: Part
    process: asyncio.subprocess.Process | None = None
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """It has been ready once."""
    again: asyncio.Event = field(default_factory=asyncio.Event)
    """Its process ends because a new one is wanted, or is to come without delay."""
    log_from: int = 0
    """Where the output of this process begins in its log."""


class Supervisor:
    """Runs the parts; ``stages`` are in the order of stopping, those of one stage stop together."""

    def __init__(self, stages: Sequence[Sequence[Part]], say: Callable[[str], None]) -> None:
        self._stages = [[_Kept(part) for part in stage] for stage in stages]
        self._say = say
        self.ready = asyncio.Event()
        """All parts have been ready once."""

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Start the parts, call ``on_ready`` once all are ready, keep them alive until cancelled; then ``stop``.

        Raises:
            Refusal: a part ended again and again before it was ever ready, or says that it never will be (EX_CONFIG).
        """
        everything = [kept for stage in self._stages for kept in stage]
        refusal: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_trim([kept.part.log for kept in everything if kept.part.log]))
                for kept in sorted(everything, key=lambda kept: not kept.part.base):
                    group.create_task(self._keep(kept), name=kept.part.name)
                    if kept.part.base:
                        await kept.ready.wait()
                for kept in everything:
                    await kept.ready.wait()
                self.ready.set()
                on_ready()
        except* Refusal as refusals:
            refusal = refusals
            while isinstance(refusal, BaseExceptionGroup):  # a part's own group wraps it once more
                refusal = refusal.exceptions[0]
        if refusal is not None:  # raised here, since early 3.11 wraps what is raised within except*
            raise refusal

    async def restart(self, wanted: Callable[[Part], bool]) -> None:
        """End these parts, each within its grace, and start them again; returns when the old processes are gone."""
        chosen = [kept for stage in self._stages for kept in stage if wanted(kept.part)]
        for kept in chosen:
            kept.again.set()
        await asyncio.gather(*(self._end(kept, asyncio.Event()) for kept in chosen))

    async def stop(self, harsh: asyncio.Event) -> None:
        """End the parts stage by stage, each within its grace; when ``harsh`` is set, what is left is killed."""
        for stage in self._stages:
            await asyncio.gather(*(self._end(kept, harsh) for kept in stage))

    async def _keep(self, kept: _Kept) -> None:
        part, pause, ends, clock = kept.part, BACKOFF_S[0], 0, asyncio.get_running_loop().time
        while True:
            began = clock()
            kept.log_from = part.log.stat().st_size if part.log and part.log.exists() else 0
            process = kept.process = await _spawn(part)
            kept.again.clear()
            code = await self._until_it_ends(kept, process)
            if kept.again.is_set():
                pause = BACKOFF_S[0]
                continue
            ends += 1
            if not kept.ready.is_set() and code == os.EX_CONFIG:
                raise Refusal(f"{part.name} cannot run like this.{_last_words(kept)}")
            if not kept.ready.is_set() and ends >= TRIES_TO_START:
                raise Refusal(f"{part.name} does not start: it {_ended(code)}, {ends} times.{_last_words(kept)}")
            if clock() - began > STEADY_S:
                pause = BACKOFF_S[0]
            words = _last_words(kept) if kept.ready.is_set() else ""  # else they come with the refusal
            self._say(f"{part.name} {_ended(code)}; starting it again in {pause:g} s.{words}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await kept.again.wait()
            pause = min(2 * pause, BACKOFF_S[1])

    async def _until_it_ends(self, kept: _Kept, process: asyncio.subprocess.Process) -> int:
        async with asyncio.TaskGroup() as group:
            probe = group.create_task(self._note_ready(kept))
            code = await process.wait()
            probe.cancel()
        _sweep(process)
        return code

    async def _note_ready(self, kept: _Kept) -> None:
        await _until_ready(kept.part.ready)
        kept.part.on_ready()
        if kept.ready.is_set():
            self._say(f"{kept.part.name} is ready again.")
        kept.ready.set()

    async def _end(self, kept: _Kept, harsh: asyncio.Event) -> None:
        process = kept.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        in_haste = harsh if not kept.part.base else asyncio.Event()  # the data gets its orderly end in any case
        ended, hurry = asyncio.ensure_future(process.wait()), asyncio.ensure_future(in_haste.wait())
        await asyncio.wait({ended, hurry}, timeout=kept.part.grace_s, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not ended.done():
            _sweep(process)
            self._say(f"{kept.part.name} had not stopped {'yet' if in_haste.is_set() else 'in time'}: killed.")
        code = await ended
        _sweep(process)
        if code not in (0, -signal.SIGTERM, -signal.SIGKILL):
            self._say(f"{kept.part.name} {_ended(code)} while it was stopping.{_last_words(kept)}")


async def _spawn(part: Part) -> asyncio.subprocess.Process:
    with contextlib.ExitStack() as stack:
        output: IO[bytes] | None = stack.enter_context(part.log.open("ab")) if part.log else None
        return await asyncio.create_subprocess_exec(
            *part.argv,
            env={**os.environ, **part.env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=part.inherited,
            start_new_session=True,
            preexec_fn=ends_with_parent(),
        )


async def _until_ready(url: str | None) -> None:
    if url is None:
        return
    async with httpx.AsyncClient(trust_env=False, timeout=_ANSWER_S) as client:  # no proxy stands before our own parts
        while not await _answers(client, url):  # noqa: ASYNC110  another process cannot set an Event
            await asyncio.sleep(_PROBE_S)


async def _answers(client: httpx.AsyncClient, url: str) -> bool:
    if url.startswith("http"):
        return await _answers_http(client, url)
    return await (_lets_in(url) if url.startswith("mqtt") else _answers_ping(url))


async def _answers_http(client: httpx.AsyncClient, url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return (await client.get(url)).status_code < 500
    return False


async def _lets_in(url: str) -> bool:
    with contextlib.suppress(aiomqtt.MqttError, TimeoutError):
        async with connect(url, wait_s=_ANSWER_S):
            return True
    return False


async def _answers_ping(url: str) -> bool:
    """By hand: redis-py's time-out (a wait_for, 3.11) forgets that it was cancelled, if all goes well just then."""
    with contextlib.suppress(OSError):  # a TimeoutError is one
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await _opened(urlsplit(url))
            try:
                writer.write(b"PING\r\n")
                return await reader.readline() == b"+PONG\r\n"
            finally:
                writer.transport.abort()
    return False


async def _opened(url: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if url.scheme == "unix":
        return await asyncio.open_unix_connection(unquote(url.path))
    return await asyncio.open_connection(url.hostname, url.port)


def _sweep(process: asyncio.subprocess.Process) -> None:
    """Kill what is left in the part's session: itself, or children that it left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _ended(code: int) -> str:
    return f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"


def _last_words(kept: _Kept, lines: int = 4) -> str:
    """The end of what the process wrote, to stand below a sentence about it."""
    path = kept.part.log
    if path is None or not path.exists():
        return ""
    with path.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - 4_000, min(kept.log_from, size)))
        said = log.read().decode(errors="replace").splitlines()[-lines:]
    return "".join(f"\n    {line[:300]}" for line in (*said, f"({path} has it all)"))


async def _trim(logs: Iterable[Path]) -> None:
    """Keep logs bounded. The parts append, so cutting a file under their hands is safe."""
    while True:
        for log in logs:
            if log.exists() and log.stat().st_size > LOG_BYTES:
                await asyncio.to_thread(shutil.copyfile, log, log.with_suffix(".log.1"))
                os.truncate(log, 0)
        await asyncio.sleep(_TRIM_S)
