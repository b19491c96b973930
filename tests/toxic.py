"""A proxy in front of Redis whose faults are switched on by the test: refuse, reset, replies lost after the effect."""

import asyncio
import contextlib
from types import TracebackType
from typing import Self


class Toxic:
    """Listens on a free loopback port; every client gets a connection of its own to the unix socket behind.

    Attributes:
        refuse: new connections are closed at once.
        swallow: what the server answers is thrown away from now on, though it has done what it was asked.
        taken: connections so far.
        hold: nothing passes in either direction until `release`.
        hold_those: likewise, on those connections only on which a client has said `word`.
    """

    def __init__(self, unix_url: str, word: bytes = b"") -> None:
        self._word = word
        self._path = unix_url.removeprefix("unix://")
        self.refuse = self.swallow = False
        self.swallowed = asyncio.Event()
        self.taken = 0
        self._open, self._open_to_those = asyncio.Event(), asyncio.Event()
        self._open.set()
        self._open_to_those.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, _k: type[BaseException] | None, _e: BaseException | None, _t: TracebackType | None
    ) -> None:
        self._server.close()
        self.release()
        self.reset()
        await self._server.wait_closed()
        if self._serving:
            await asyncio.wait(self._serving)

    def hold(self) -> None:
        self._open.clear()

    def hold_those(self) -> None:
        self._open_to_those.clear()

    def release(self) -> None:
        self._open.set()
        self._open_to_those.set()

    def reset(self) -> None:
        """Cut every connection."""
        for writer in tuple(self._writers):
            writer.transport.abort()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken += 1
        if self.refuse:
            writer.transport.abort()
            return
        server_reader, server_writer = await asyncio.open_unix_connection(self._path)
        self._writers |= {writer, server_writer}
        said = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pipe(reader, server_writer, said, replies=False))
                group.create_task(self._pipe(server_reader, writer, said, replies=True))
        finally:
            self._writers -= {writer, server_writer}

    async def _pipe(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, said: asyncio.Event, *, replies: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if not replies and self._word and self._word in data:
                    said.set()
                await self._open.wait()
                if said.is_set():
                    await self._open_to_those.wait()
                if replies and self.swallow:
                    self.swallowed.set()
                    continue
                sink.write(data)
                await sink.drain()
        sink.transport.abort()
