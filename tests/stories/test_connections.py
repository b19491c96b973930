"""How handlers speak HTTP: connections are kept where they are good, and nothing of one answer ends in another."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend_loop.connections import BUFFERED, Connections
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
async def serving(answer: Answer = fine, **tls: Any) -> AsyncIterator[tuple[Server, httpx.AsyncClient]]:
    """A server, and a client that speaks to it by the transport under test."""
    server = Server("", answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls.get("server"))
    scheme = "https" if tls else "http"
    server.url = f"{scheme}://127.0.0.1:{listening.sockets[0].getsockname()[1]}/x"
    transport = Connections(tls.get("client"))
    async with httpx.AsyncClient(transport=transport, trust_env=False, timeout=5) as client:
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


async def test_what_is_said_without_being_asked_is_nobody_s_answer() -> None:
    async with serving() as (server, client):
        await client.get(server.url)
        await server.peers[0].say(said(b"late", status=b"408 Request Timeout"))
        await eventually(lambda: server.peers[0].gone, what="it was hung up")
        assert (await client.get(server.url)).json() == {}

        async def doubled(peer: Peer, _head: bytes, _body: bytes) -> None:
            await peer.say(said(b"1"), said(b"2"))

        server.answer = doubled
        assert [(await client.get(server.url)).json() for _ in range(3)] == [1, 1, 1]


async def test_faults_have_the_names_that_httpx_gives_them() -> None:
    async def silent(_peer: Peer, _head: bytes, _body: bytes) -> None:
        await asyncio.Event().wait()

    async def cut(peer: Peer, _head: bytes, _body: bytes) -> None:
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf of")
        peer.writer.close()

    async def gone(peer: Peer, _head: bytes, _body: bytes) -> None:
        peer.writer.close()

    async def reset(peer: Peer, _head: bytes, _body: bytes) -> None:
        peer.writer.transport.abort()

    async def nonsense(peer: Peer, _head: bytes, _body: bytes) -> None:
        await peer.say(b"220 mail.example ESMTP\r\n\r\n")

    async with serving() as (server, client):
        for answer, fault in (
            (cut, httpx.RemoteProtocolError),
            (gone, httpx.RemoteProtocolError),
            (reset, httpx.TransportError),
            (nonsense, httpx.RemoteProtocolError),
        ):
            server.answer = answer
            with pytest.raises(fault):
                await client.get(server.url)
        server.answer = fine
        assert (await client.get(server.url)).is_success, "none of those was kept"
        server.answer = silent
        with pytest.raises(httpx.ReadTimeout):
            await client.get(server.url, timeout=0.05)
        await _let_go(server)
    with pytest.raises(httpx.ConnectError):
        async with httpx.AsyncClient(transport=Connections()) as client:
            await client.get("http://127.0.0.1:1/")


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


async def test_bodies_of_all_kinds_come_through_and_large_ones_are_held_back() -> None:
    large, sent = bytes(range(256)) * (64 * BUFFERED // 256), asyncio.Event()

    async def chunked(peer: Peer, _head: bytes, _body: bytes) -> None:
        await peer.say(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
        await peer.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for start in range(0, len(large), 1 << 16):
            part = large[start : start + (1 << 16)]
            await peer.say(b"%x\r\n" % len(part), part, b"\r\n")
        await peer.say(b"0\r\n\r\n")
        sent.set()

    async def mirror(peer: Peer, _head: bytes, body: bytes) -> None:
        await peer.say(said(body))

    async def once(peer: Peer, _head: bytes, _body: bytes) -> None:
        await peer.say(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nuntil I close")
        raise ConnectionError

    async with serving(chunked) as (server, client):
        async with client.stream("GET", server.url) as answer:
            with pytest.raises(TimeoutError):  # nobody reads, so the server has to wait
                async with asyncio.timeout(0.5):
                    await sent.wait()
            assert await answer.aread() == large
        server.answer = mirror
        assert (await client.post(server.url, content=large)).content == large
        assert [len(peer.asked) for peer in server.peers] == [2]
        server.answer = once
        assert (await client.get(server.url)).content == b"until I close"
        server.answer = fine
        assert (await client.get(server.url)).is_success
        assert (await client.head(server.url)).is_success
        assert len(server.peers) == 2


async def test_who_acts_is_told_before_the_first_byte_leaves() -> None:
    steps = list[str]()

    async def trace(step: str, _info: Any) -> None:
        steps.append(step)

    async with serving() as (server, client):
        await client.get(server.url, extensions={"trace": trace})
        assert steps == ["http11.send_request_headers.started"]
        with pytest.raises(httpx.ConnectError):
            await client.get("http://127.0.0.1:1/", extensions={"trace": trace})
        assert len(steps) == 1, "nothing was sent"


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Path]:
    """A key, and a certificate that only those trust who are told to."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    name = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    make = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name)
    subprocess.run((*make, "-keyout", key, "-out", certificate), check=True, capture_output=True)
    return key, certificate


async def test_tls_is_spoken_with_whom_the_authorities_vouch_for(signed: tuple[Path, Path]) -> None:
    key, certificate = signed
    server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_side.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=certificate)
    async with serving(server=server_side, client=trusting) as (server, client):
        for _ in range(2):
            assert (await client.get(server.url)).json() == {}
        assert [len(peer.asked) for peer in server.peers] == [2]
    async with serving(server=server_side) as (server, client):
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(server.url)
