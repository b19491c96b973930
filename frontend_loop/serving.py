"""uvicorn, taught to say goodbye to sockets before it closes them, and not to wait for those who do not read."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from socket import socket
from typing import Final

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

KEEP_ALIVE_S: Final = 75
"""How long an idle connection is kept: longer than clients keep theirs, httpx for 5 s, most proxies for 60.

Who closes first must be the client: else it sends a request into a connection that is just being closed, and a POST
without an answer is one that it cannot safely send again.
"""
LINGER_S: Final = 5.0
"""How long what was written may take to leave once a socket's endpoint has returned."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn closes a connection when all is written, which never comes to pass if the other side does not read."""

    _abort: asyncio.TimerHandle | None = None

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """The endpoint has returned."""
        super().on_task_complete(task)
        if not self.disconnected:
            self._abort = self.loop.call_later(LINGER_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left to abort."""
        super().connection_lost(exc)
        if self._abort is not None:
            self._abort.cancel()


class Server(uvicorn.Server):
    """Drains what uvicorn would cut, within the same grace.

    Args:
        config: uvicorn's; its grace is set here.
        drain: ends all streams, in the seconds it is given.
        grace_s: how long a stop may take.
    """

    def __init__(self, config: uvicorn.Config, drain: Callable[[float], Awaitable[None]], grace_s: float) -> None:
        """Does not serve yet."""
        super().__init__(config)
        self._drain, self._grace_s = drain, grace_s

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Take in no more, drain, then do what uvicorn does."""
        began = time.monotonic()
        for server in self.servers:
            server.close()
        await self._drain(self._grace_s / 2)
        left_s = self._grace_s - (time.monotonic() - began)
        self.config.timeout_graceful_shutdown = max(1, round(left_s))  # whole seconds by its type
        await super().shutdown(sockets)
