"""The sockets ``/v1/ws`` and ``/v1/voice``: who may open one, and all that are open. Plain ASGI, like the hot POST."""

import asyncio
import contextlib
from typing import Final

from starlette.datastructures import QueryParams
from starlette.types import Receive, Scope, Send

from frontend_loop import frames
from frontend_loop.connection import GOING, RESTART, Connection, Parts
from frontend_loop.origins import may_open
from frontend_loop.reading import read_as
from frontend_loop.voice_connection import VoiceConnection
from frontend_loop.voice_sessions import Speaker, VoiceSessions
from shared.errors import Problem
from shared.logs import get
from shared.loop import Answer, Idle, Loop

log = get(__name__)

PATH: Final = frames.INSTANCE
VOICE_PATH: Final = "/v1/voice"
PATHS: Final = frozenset({PATH, VOICE_PATH})
SUBPROTOCOL: Final = "dualloop.v1.json"
FRAME_ROOM: Final = 4096
"""Bytes that a frame may have beyond the command in it."""

TEND_S: Final = 2.0
INTERNAL: Final = 1011


class Sockets:
    """Every open socket of this process."""

    def __init__(self, parts: Parts, voices: VoiceSessions) -> None:
        """None is open."""
        self._parts, self._voices, self._open = parts, voices, set[Connection]()
        self._draining, self._empty = False, asyncio.Event()
        self.loop = Loop(
            "sockets",
            self._tend,
            trigger="timed",
            interval_s=TEND_S,
            describe="lets sockets read again what has been quiet, and finds readers that are stuck",
            output="frames",
        )

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one, from its handshake to its end."""
        await receive()  # websocket.connect
        with contextlib.suppress(OSError):  # how the server says that the client is gone
            try:
                self._admit(scope)
                connection = self._connection(scope)
            except Problem as problem:
                await _refuse(scope, send, problem)
                return
            subprotocol = SUBPROTOCOL if scope["subprotocols"] else None
            await send({"type": "websocket.accept", "subprotocol": subprotocol, "headers": []})
            await self._serve(connection, receive, send)

    def _connection(self, scope: Scope) -> Connection:
        header = next((value for name, value in scope["headers"] if name == b"traceparent"), None)
        traceparent = header and header.decode("latin-1")
        if scope["path"] == PATH:
            return Connection(self._parts, traceparent)
        said = QueryParams(scope["query_string"])
        speaker = read_as(Speaker, {name: value for name, value in said.items() if value})
        return VoiceConnection(self._parts, self._voices, speaker, traceparent)

    async def drain(self, within_s: float) -> None:
        """Open no more, say goodbye to all, and return once they are closed, at last by cutting them."""
        self._draining = True
        log.info("drain", sockets=len(self._open), within_s=within_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await asyncio.gather(*(connection.drain() for connection in self._open))
                while self._open:
                    self._empty.clear()
                    await self._empty.wait()
        for connection in self._open:
            connection.cut()

    async def _serve(self, connection: Connection, receive: Receive, send: Send) -> None:
        self._open.add(connection)
        try:
            if self._draining:  # since it was asked whether it may open
                await send({"type": "websocket.close", "code": RESTART, "reason": GOING})
            else:
                await connection.run(receive, send)
        except Exception:
            log.exception("socket failed")
            await send({"type": "websocket.close", "code": INTERNAL, "reason": "an error of ours, logged"})
        finally:
            self._open.discard(connection)
            if not self._open:
                self._empty.set()

    async def _tend(self) -> Answer:
        for connection in tuple(self._open):
            connection.tend()
        return Idle()

    def _admit(self, scope: Scope) -> None:
        """Raises `Problem`: nobody may open this."""
        if not may_open(scope["headers"], self._parts.settings.allowed_origins):
            raise Problem("forbidden_origin", "pages of this origin are not among DUALLOOP_ALLOWED_ORIGINS")
        if scope["subprotocols"] and SUBPROTOCOL not in scope["subprotocols"]:
            raise Problem("bad_subprotocol", f"offer {SUBPROTOCOL}, or none")
        if self._draining:
            raise Problem("draining", "connect to another foreground", retryable=True, retry_after=1)


async def _refuse(scope: Scope, send: Send, problem: Problem) -> None:
    """Answer the handshake with an HTTP error; a server that cannot say more says 403."""
    if "websocket.http.response" not in scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": 4403, "reason": problem.title})
        return
    headers = problem.headers()
    await send({"type": "websocket.http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": problem.body(scope["path"])})
