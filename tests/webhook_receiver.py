"""Somebody else's server that takes webhooks: real, in this process, and as badly behaved as it is told to be."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Answer = Callable[["Receiver", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Delivery:
    """What came, as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """What has come so far, and how the next ones are answered; then 204."""

    url: str = ""
    port: int = 0
    deliveries: list[Delivery] = field(default_factory=list)
    answers: deque[Answer] = field(default_factory=deque)
    written: int = 0
    """Bytes of a body without end that were taken."""


def status(code: int, *headers: str, body: bytes = b"") -> Answer:
    """An ordinary answer."""

    async def answer(_: Receiver, writer: asyncio.StreamWriter) -> None:
        head = "\r\n".join((f"HTTP/1.1 {code} So", f"content-length: {len(body)}", *headers))
        writer.write(head.encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return answer


async def endless(receiver: Receiver, writer: asyncio.StreamWriter) -> None:
    """200, and a body that goes on as long as anybody reads."""
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with contextlib.suppress(ConnectionError):
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            receiver.written += len(piece)


async def reset(_: Receiver, writer: asyncio.StreamWriter) -> None:
    """The connection is reset."""
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def nonsense(_: Receiver, writer: asyncio.StreamWriter) -> None:
    """No HTTP at all."""
    writer.write(b"\x00\xff* 250 OK, let us speak of something else\r\n\r\n")
    await writer.drain()


async def silence(_: Receiver, __: asyncio.StreamWriter) -> None:
    """No answer, ever."""
    await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def receiving(host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver on a free port."""
    receiver = Receiver()
    open_: set[asyncio.Task[None]] = set()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_.add(task)
        try:
            receiver.deliveries.append(await _read(reader))
            answer = receiver.answers.popleft() if receiver.answers else status(204)
            await answer(receiver, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # a client that went away
        finally:
            open_.discard(task)
            writer.close()

    server = await asyncio.start_server(take, host, 0, ssl=tls)
    try:
        receiver.port = server.sockets[0].getsockname()[1]
        receiver.url = f"{'http' if tls is None else 'https'}://{host}:{receiver.port}/hooks"
        yield receiver
    finally:
        server.close()
        for task in open_:
            task.cancel()
        await asyncio.gather(*open_, return_exceptions=True)
        await server.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Delivery:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    line, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in rest)}
    return Delivery(line, headers, await reader.readexactly(int(headers["content-length"])))
