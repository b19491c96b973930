"""Recordings on their way through a foreground: what is held of all of them together has a bound."""

import asyncio
from typing import Any

import pytest

from frontend_loop.ingress.http import read_body
from frontend_loop.room import Room
from shared.errors import Problem


class Client:
    """Sends a body of pieces, each once it is told to."""

    def __init__(self) -> None:
        self._pieces = asyncio.Queue[bytes]()

    def send(self, piece: bytes) -> None:
        self._pieces.put_nowait(piece)

    async def receive(self) -> dict[str, Any]:
        piece = await self._pieces.get()
        return {"type": "http.request", "body": piece, "more_body": piece != b""}


async def say(room: Room, client: Client, taken: asyncio.Event) -> bytes:
    with room.of(client.receive) as receive:
        body = await read_body(receive, 100)
        await taken.wait()
        return body


async def test_what_is_held_of_all_has_a_bound_and_is_free_again_once_it_is_taken() -> None:
    room, taken = Room(100), asyncio.Event()
    slow, other, late = Client(), Client(), Client()
    idle = asyncio.create_task(say(room, slow, taken))
    one = asyncio.create_task(say(room, other, taken))
    for piece in (b"a" * 60, b"b" * 30, b""):
        other.send(piece)
    late.send(b"c" * 20)
    await asyncio.sleep(0)
    with pytest.raises(Problem) as refused:
        await say(room, late, taken)
    assert (refused.value.code, refused.value.status, refused.value.retryable) == ("too_many_voices", 429, True)
    taken.set()
    assert len(await one) == 90
    for client, piece in ((slow, b"d" * 60), (slow, b""), (late, b"e" * 40), (late, b"")):
        client.send(piece)
    assert [len(body) for body in await asyncio.gather(idle, say(room, late, taken))] == [60, 40]


async def test_who_leaves_in_the_middle_leaves_no_bytes_behind() -> None:
    room, client = Room(100), Client()
    for _ in range(3):
        client.send(b"a" * 100)
        task = asyncio.create_task(say(room, client, asyncio.Event()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
