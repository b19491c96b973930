"""Answers that leave in one write are whole, in order, and end where their connection does."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from frontend_loop.one_write import OneWrite
from tests.waiting import eventually

LARGE = 3_000_000


async def app(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer the path, in as many parts as it has letters; ``/large`` with more than any buffer takes."""
    body = scope["path"].encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-path", body)]})
    parts = [b"x" * (LARGE // 3)] * 3 if body == b"/large" else [body[at : at + 1] for at in range(len(body))]
    for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
async def port() -> AsyncIterator[int]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, http=OneWrite, lifespan="off", log_config=None))
    serving = asyncio.create_task(server._serve([listening]))
    await eventually(lambda: server.started)
    yield listening.getsockname()[1]
    server.should_exit = True
    await serving
    listening.close()


async def ask(port: int, request: str) -> bytes:
    """Everything up to the end of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    answer = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_pipelined_requests_are_answered_in_order_and_the_last_one_closes(port: int) -> None:
    last = "GET /c HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    answer = await ask(port, "GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /bb HTTP/1.1\r\nhost: x\r\n\r\n" + last)
    assert [answer.index(b"x-path: " + path) for path in (b"/a", b"/bb", b"/c")] == sorted(
        answer.index(b"x-path: " + path) for path in (b"/a", b"/bb", b"/c")
    )
    assert answer.endswith(b"1\r\n/\r\n1\r\nc\r\n0\r\n\r\n")


async def test_an_answer_larger_than_the_buffers_arrives_whole(port: int) -> None:
    answer = await ask(port, "GET /large HTTP/1.0\r\nhost: x\r\n\r\n")
    assert answer.count(b"x" * 1000) >= LARGE // 1000


async def test_a_client_that_leaves_in_the_middle_harms_nobody(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /large HTTP/1.1\r\nhost: x\r\n\r\n")
    await writer.drain()
    writer.transport.abort()
    assert b"x-path: /still" in await ask(port, "GET /still HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
