"""A process from the forge with pipes, as ``asyncio.subprocess.Process`` shows it."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.forge.client import Forked, forked


class Piped:
    """Made by `piped`."""

    def __init__(self, process: Forked, stdin: asyncio.WriteTransport, out: "_Pipe", err: "_Pipe") -> None:
        self._process, self._stdin, self._out, self._err = process, stdin, out, err
        self.stdout, self.stderr = out.reader, err.reader

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As it was last seen."""
        return self._process.poll()

    def send_signal(self, signum: int) -> None:
        self._process.send_signal(signum)

    def kill(self) -> None:
        self._process.kill()

    async def wait(self) -> int:
        """Its exit code, once it has ended."""
        if (code := self._process.poll()) is not None:
            return code
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._process.over, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._process.over)
        return self._process.wait()

    async def communicate(self, said: bytes = b"") -> tuple[bytes, bytes]:
        """Say this and nothing more; all that it has printed, once it has ended."""
        self._stdin.write(said)
        self._stdin.close()
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return out, err

    def close(self) -> None:
        """Let go of the pipes."""
        for transport in (self._stdin, self._out.transport, self._err.transport):
            transport.close()


class _Pipe:
    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.ReadTransport) -> None:
        self.reader, self.transport = reader, transport


async def piped(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> Piped:
    """Start what ``python *argv`` is; it is killed with the tests."""
    loop = asyncio.get_running_loop()
    (their_in, our_in), (our_out, their_out), (our_err, their_err) = os.pipe(), os.pipe(), os.pipe()
    process = forked(argv, env=env, stdin=their_in, stdout=their_out, stderr=their_err, cwd=cwd, death=signal.SIGKILL)
    for theirs in (their_in, their_out, their_err):
        os.close(theirs)
    stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(our_in, "wb"))
    return Piped(process, stdin, await _pipe(our_out), await _pipe(our_err))


async def _pipe(descriptor: int) -> _Pipe:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb")
    )
    return _Pipe(reader, transport)
