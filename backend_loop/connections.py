"""HTTP/1.1 as handlers speak it: httpx above, h11 for the wire, and between them connections that wait for their turn.

Why not httpx's own transport: at each request it looks at every connection that it keeps, by a system call each, and
asks anew for the library that it runs on. With fifty requests under way that takes five times the processor's time, and
it is the time of the event loop: no urgent mission gets on meanwhile.
"""

import asyncio
import contextlib
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, Final

import h11
import httpx

Trace = Callable[[str, Mapping[str, Any]], Awaitable[None]]
"""Told what is about to be done, under the names that httpx's own transport has for it."""

KEPT: Final = 100
"""Connections to one place that wait for the next request, at most."""

KEPT_S: Final = 4.0
"""How long they wait: less than servers usually do, so that none is closed just as it is used."""

HEAD: Final = 100 * 1024
"""Bytes that the head of an answer may have."""

BUFFERED: Final = 256 * 1024
"""Bytes of an answer that may wait to be read, about."""

Origin = tuple[bytes, bytes, int | None]


class Connections(httpx.AsyncBaseTransport):
    """Any number of them at a time, so that those that are silent keep nobody waiting.

    Raises what httpx's own transport does: subclasses of `httpx.TransportError`.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """Connected to nothing yet; without `tls` the usual authorities are trusted."""
        self._idle: dict[Origin, deque[_Connection]] = {}
        self._tls = tls

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it; the answer's body is read later, or not at all: then the connection is closed."""
        timeouts: Mapping[str, float | None] = request.extensions.get("timeout", {})
        trace: Trace | None = request.extensions.get("trace")
        origin = (request.url.raw_scheme, request.url.raw_host, request.url.port)
        connection = self._kept(origin) or await self._connected(request.url, timeouts.get("connect"))
        try:
            if trace is not None:
                await trace("http11.send_request_headers.started", {})
            with _told(httpx.WriteError, httpx.WriteTimeout):
                async with asyncio.timeout(timeouts.get("write")):
                    await connection.send(request)
            with _told(httpx.ReadError, httpx.ReadTimeout):
                head = await connection.head(timeouts.get("read"))
        except BaseException:
            connection.close()
            raise
        body = _Body(connection, timeouts.get("read"), lambda: self._keep(origin, connection))
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=body)

    async def aclose(self) -> None:
        """Close those that wait."""
        for waiting in self._idle.values():
            for connection in waiting:
                connection.close()
        self._idle.clear()

    def _kept(self, origin: Origin) -> "_Connection | None":
        """The one that was used last, if it is still good."""
        waiting = self._idle.get(origin)
        while waiting:
            connection = waiting.pop()
            if connection.good and connection.idle_since > time.monotonic() - KEPT_S:
                connection.idle_since = 0.0
                return connection
            connection.close()
        return None

    def _keep(self, origin: Origin, connection: "_Connection") -> None:
        waiting, now = self._idle.setdefault(origin, deque()), time.monotonic()
        if connection.anew():
            connection.idle_since = now
            waiting.append(connection)
        while waiting and (len(waiting) > KEPT or waiting[0].idle_since < now - KEPT_S):
            waiting.popleft().close()

    async def _connected(self, url: httpx.URL, within_s: float | None) -> "_Connection":
        tls = None
        if url.scheme == "https":
            tls = self._tls = self._tls or httpx.create_ssl_context(trust_env=False)
        host = url.raw_host.decode()
        port = url.port or (80 if tls is None else 443)
        with _told(httpx.ConnectError, httpx.ConnectTimeout):
            async with asyncio.timeout(within_s):
                loop = asyncio.get_running_loop()
                return (await loop.create_connection(_Connection, host, port, ssl=tls))[1]


class _Connection(asyncio.Protocol):
    """One request at a time, one after the other."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD)
        self._came, self._bytes, self._full = deque[bytes](), 0, False
        self._woken = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport
        self._fault: Exception | None = None
        self.good, self.idle_since = True, 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a TCP or TLS transport reads and writes

    def data_received(self, data: bytes) -> None:
        if self.idle_since:  # nobody has asked: what it is about is not known
            self.close()
            return
        self._came.append(data)
        self._bytes += len(data)
        if self._bytes > BUFFERED and not self._full:
            self._full = True
            self._transport.pause_reading()
        self._woken.set()

    def eof_received(self) -> None:
        self.good = False
        self._came.append(b"")
        self._woken.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.good, self._fault = False, exc
        self._came.append(b"")
        self._woken.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def close(self) -> None:
        self.good = False
        self._transport.abort()

    def anew(self) -> bool:
        """Whether it takes another request, after the answer was read; else it is closed."""
        states, rest = (self._http.our_state, self._http.their_state), self._http.trailing_data[0]
        if self.good and states == (h11.DONE, h11.DONE) and not self._came and not rest:
            self._http.start_next_cycle()
            return True
        self.close()
        return False

    async def send(self, request: httpx.Request) -> None:
        """Raises OSError, h11.LocalProtocolError."""
        head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
        parts = [self._http.send(head)]
        async for data in request.stream:  # type: ignore[union-attr]  # an AsyncClient's is asynchronous
            parts.append(self._http.send(h11.Data(data=data)))
            if len(parts) > 2:
                await self._write(parts)
        parts.append(self._http.send(h11.EndOfMessage()))
        await self._write(parts)

    async def _write(self, parts: list[bytes]) -> None:
        self._transport.write(b"".join(parts))
        parts.clear()
        await self._writable.wait()
        if self._fault is not None:
            raise self._fault

    async def head(self, within_s: float | None) -> h11.Response:
        """Raises OSError, TimeoutError, h11.RemoteProtocolError."""
        while True:
            event = await self.event(within_s)
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise h11.RemoteProtocolError("the server closed the connection and sent no answer")

    async def event(self, within_s: float | None) -> Any:
        """The next one of h11; raises as `head`."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if not self._came:
                await self._more(within_s)
            data = self._came.popleft()
            if not data and self._fault is not None:
                raise self._fault
            self._bytes -= len(data)
            self._http.receive_data(data)
        return event

    async def _more(self, within_s: float | None) -> None:
        if self._full:
            self._full = False
            self._transport.resume_reading()
        self._woken.clear()
        async with asyncio.timeout(within_s):
            await self._woken.wait()


class _Body(httpx.AsyncByteStream):
    """What follows the head of an answer."""

    def __init__(self, connection: _Connection, within_s: float | None, keep: Callable[[], None]) -> None:
        self._connection, self._within_s, self._keep = connection, within_s, keep
        self._read = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _told(httpx.ReadError, httpx.ReadTimeout):
            while not isinstance(event := await self._connection.event(self._within_s), h11.EndOfMessage):
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
        self._read = True
        self._keep()

    async def aclose(self) -> None:
        if not self._read:
            self._connection.close()


@contextlib.contextmanager
def _told(broken: type[httpx.TransportError], late: type[httpx.TimeoutException]) -> Iterator[None]:
    """Faults of the socket and of the other side as httpx names them."""
    try:
        yield
    except TimeoutError as fault:
        raise late(str(fault)) from fault
    except OSError as fault:
        raise broken(str(fault) or type(fault).__name__) from fault
    except h11.RemoteProtocolError as fault:
        raise httpx.RemoteProtocolError(str(fault)) from fault
    except h11.LocalProtocolError as fault:
        raise httpx.LocalProtocolError(str(fault)) from fault
