"""How handlers speak HTTP: connections are kept where they are good, and nothing of one answer ends in another."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from backend_loop.connections import Connections
from tests.waiting import eventually

Answer = Callable[["Peer", bytes, bytes], Awaitable[None]]


@dataclass
class Peer:
    """One connection, as its server sees it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    asked: list[bytes] = field(default_factory=list)
    gone: bool = False

    async def say(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))
        await self.writer.drain()


@dataclass
class Server:
    """What a test sets to answer with, and who has come."""

    url: str
    answer: Answer
    peers: list[Peer] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == LENGTH), 0)
                peer.asked.append(head)
                await self.answer(peer, head, await reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            peer.gone = True
            writer.close()


LENGTH = b"content-length:"


def said(body: bytes, *more: bytes, status: bytes = b"200 OK") -> bytes:
    head = (b"HTTP/1.1 " + status, *more, b"content-length: %d" % len(body), b"", body)
    return b"\r\n".join(head)


async def fine(peer: Peer, _head: bytes, _body: bytes) -> None:
    await peer.say(said(b"{}"))


@asynccontextmanager
async def serving(answer: Answer = fine) -> AsyncIterator[tuple[Server, httpx.AsyncClient]]:
    """A server, and a client that speaks to it by the transport under test."""
    server = Server("", answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/x"
    async with httpx.AsyncClient(transport=Connections(), trust_env=False, timeout=60) as client:
        yield server, client
    listening.close()
    await eventually(lambda: all(peer.gone for peer in server.peers), what="nothing is left open")


async def test_a_connection_is_used_again_and_another_one_made_where_all_are_busy() -> None:
    async with serving() as (server, client):
        for _ in range(3):
            assert (await client.get(server.url)).json() == {}
        assert [len(peer.asked) for peer in server.peers] == [3]
        everybody = asyncio.Event()

        async def together(peer: Peer, head: bytes, body: bytes) -> None:
            if len([one for one in server.peers if len(one.asked) == 1]) >= 4:
                everybody.set()
            await everybody.wait()
            await fine(peer, head, body)

        server.answer = together
        await asyncio.gather(*(client.get(server.url) for _ in range(5)))
        assert len(server.peers) == 5


async def test_one_that_the_server_closed_meanwhile_is_not_used() -> None:
    async with serving() as (server, client):
        await client.get(server.url)
        server.peers[0].writer.close()
        await server.peers[0].writer.wait_closed()
        await asyncio.sleep(0)
        for _ in range(3):
            assert (await client.get(server.url)).is_success
        assert len(server.peers) == 2


async def test_a_fault_says_whether_something_may_have_been_sent() -> None:
    async def silent(_peer: Peer, _head: bytes, _body: bytes) -> None:
        await asyncio.Event().wait()

    async def gone(peer: Peer, _head: bytes, _body: bytes) -> None:
        peer.writer.close()

    async def reset(peer: Peer, _head: bytes, _body: bytes) -> None:
        peer.writer.transport.abort()

    async def nonsense(peer: Peer, _head: bytes, _body: bytes) -> None:
        await peer.say(b"220 mail.example ESMTP\r\n\r\n")

    async def cut(peer: Peer, _head: bytes, _body: bytes) -> None:
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf of")
        peer.writer.close()

    async with serving() as (server, client):
        for answer in (gone, reset, nonsense, cut):
            server.answer = answer
            with pytest.raises(httpx.TransportError) as caught:
                await client.post(server.url, json={})
            assert not isinstance(caught.value, httpx.ConnectError), answer.__name__
        server.answer = fine
        assert (await client.get(server.url)).is_success, "none of those was kept"
        server.answer = silent
        with pytest.raises(httpx.TimeoutException) as late:
            await client.get(server.url, timeout=httpx.Timeout(60, read=0.05))
        assert not isinstance(late.value, httpx.ConnectTimeout)
        await _let_go(server)
    async with httpx.AsyncClient(transport=Connections()) as client:
        for url in ("http://127.0.0.1:1/", "http://no.such.host.invalid/"):
            with pytest.raises(httpx.ConnectError):
                await client.get(url)


async def _let_go(server: Server) -> None:
    """Those that answer nobody look at nothing either: the test ends them."""
    for peer in server.peers:
        peer.writer.transport.abort()
        peer.gone = True


async def test_whoever_stops_waiting_leaves_no_connection_behind() -> None:
    came = asyncio.Event()

    async def hears(peer: Peer, _head: bytes, _body: bytes) -> None:
        came.set()
        assert await peer.reader.read() == b"", "it was hung up"
        raise ConnectionError

    async with serving(hears) as (server, client):
        asking = asyncio.create_task(client.get(server.url))
        await came.wait()
        asking.cancel()
        await asyncio.wait({asking})
        assert asking.cancelled()
        await eventually(lambda: server.peers[0].gone, what="the server sees it go")
        server.answer = fine
        async with client.stream("GET", server.url) as answer:
            assert answer.status_code == 200
        assert (await client.get(server.url)).json() == {}, "what was not read is not in the way"
