"""An outside service on a free port of this process, which counts by itself who calls it at the same time.

async with outside() as bank:
    bank.hold()
    ...
    await eventually(lambda: bank.now == 2)
    bank.let_go()
    assert bank.most() == 2
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from tests.waiting import eventually

Reply = tuple[int, dict[str, str]]
"""Status and headers."""


@dataclass
class Visit:
    """One call, as seen from here; times are monotonic seconds."""

    name: str
    task: str
    attempt: int
    caller: str
    """The process that called."""
    began: float
    beside: int
    """Calls under way as it came, itself included."""
    ended: float | None = None


@dataclass
class Outside:
    """What has come so far, and how it is answered."""

    url: str = ""
    lasts_s: float = 0.0
    reply: Callable[[Visit], Reply] = lambda _visit: (200, {})
    visits: list[Visit] = field(default_factory=list)
    now: int = 0
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _open_connections: set[asyncio.StreamWriter] = field(default_factory=set)

    def hold(self) -> None:
        """Answer nobody from now on."""
        self._open.clear()

    def let_go(self) -> None:
        """Answer all of them."""
        self._open.set()

    def most(self, since: float = 0.0) -> int:
        """The largest number of calls at the same time, of those that began since then."""
        return max((visit.beside for visit in self.visits if visit.began >= since), default=0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One call a connection."""
        self._open_connections.add(writer)
        try:
            await self._answer(reader, writer)
        finally:
            self._open_connections.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = urlsplit((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode())
        asked = {name: values[0] for name, values in parse_qs(target.query).items()}
        self.now += 1
        visit = Visit(
            target.path.strip("/"), asked["task"], int(asked["attempt"]), asked["caller"], time.monotonic(), self.now
        )
        self.visits.append(visit)
        gone = asyncio.ensure_future(reader.read(1))
        held = asyncio.ensure_future(self._open.wait())
        try:
            await asyncio.wait({gone}, timeout=self.lasts_s)
            await asyncio.wait({gone, held}, return_when=asyncio.FIRST_COMPLETED)
            status, headers = self.reply(visit)
        finally:
            for one in (gone, held):
                one.cancel()
            self.now -= 1  # before the answer: whoever has it is not under way any more
            visit.ended = time.monotonic()
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{head}content-length: 0\r\nconnection: close\r\n\r\n".encode())
        with contextlib.suppress(ConnectionError):
            await writer.drain()

    async def end(self) -> None:
        """Drop whoever still waits."""
        self.let_go()
        for writer in tuple(self._open_connections):
            writer.transport.abort()
        await eventually(lambda: not self._open_connections)


@contextlib.asynccontextmanager
async def outside() -> AsyncIterator[Outside]:
    """A service until the end of the block."""
    service = Outside()
    service.let_go()
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield service
    finally:
        server.close()
        await service.end()
