"""One socket to Redis, many commands in flight: half the client time of a pool, one write for what is ready together.

The connection is redis-py's own (URL, TLS, ACL, time-outs of the handshake); once it stands, the transport gets a
protocol that only packs and parses. What is lost with a connection is *unknown*, never silently sent again.
"""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import hiredis
from redis.exceptions import RedisError

from shared.errors import RedisAwayError, RedisUnknownError
from shared.logs import get
from shared.redis_url import options
from shared.scripts import SCRIPTS

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

log = get(__name__)

BACKOFF_S: Final = (0.02, 2.0)
"""First and longest pause between attempts to connect, full jitter."""

CLOSE_AGAIN_S: Final = 0.1

AWAY: Final = ("LOADING", "MASTERDOWN", "READONLY", "OOM", "MISCONF", "NOREPLICAS", "BUSY", "UNBLOCKED", "CLUSTERDOWN")
"""Refusals of the server as a whole, not of this command: nothing was written, it may be sent again."""

MOVED_ON: Final = ("MASTERDOWN", "READONLY")
"""Refusals after which the address must be asked for again: the master is another one now."""


Arg = str | bytes | float


class ReplyError(Exception):
    """Redis refused this command; the first word says why."""


class Wire(asyncio.Protocol):
    """What stands on the transport: packs nothing, parses replies, hands them out in order."""

    def __init__(self, on_message: Callable[[bytes, bytes], None] | None, on_lost: Callable[["Wire"], None]) -> None:
        """`on_message` makes this a wire of a subscriber, whose replies are pushes."""
        self._reader = hiredis.Reader(replyError=ReplyError)
        self._on_message, self._on_lost = on_message, on_lost
        self.lost = asyncio.Event()
        self.waiting: deque[asyncio.Future[Any]] = deque()
        self.heard = asyncio.get_running_loop().time()
        self.asked = self.heard

    def data_received(self, data: bytes) -> None:
        """Resolve the waiting calls, oldest first."""
        self.heard = asyncio.get_running_loop().time()
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not False:
            if self._on_message is not None:
                if isinstance(reply, list) and reply[0] == b"message":
                    self._on_message(reply[1], reply[2])
                continue
            future = self.waiting.popleft()
            if future.done():
                continue  # its caller left; the place in the queue had to be kept
            if isinstance(reply, ReplyError):
                if str(reply).startswith(MOVED_ON):
                    self.lost.set()
                future.set_exception(_fault(reply))
            else:
                future.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """All that was in flight is unknown now."""
        error = RedisUnknownError(f"the connection to Redis was lost: {exc or 'closed'}")
        while self.waiting:
            future = self.waiting.popleft()
            if not future.done():
                future.set_exception(error)
        self.lost.set()
        self._on_lost(self)


def _fault(reply: ReplyError) -> Exception:
    if str(reply).startswith(AWAY):
        return RedisAwayError(str(reply))
    return reply


class Link:
    """A connection that comes back by itself.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``.
        timeout_s: how long answers may fail to come before the connection is given up.
        channels: subscribe to these, again after each reconnect; makes the link a subscriber that can call nothing.
        on_message: gets channel and message.
        on_up: called each time the link has come up (scripts loaded, channels subscribed).
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 2.0,
        channels: tuple[str, ...] = (),
        on_message: Callable[[bytes, bytes], None] | None = None,
        on_up: Callable[[], None] | None = None,
    ) -> None:
        """Nothing is opened yet: see `open`.

        Raises:
            RedisUrlError: the URL is wrong.
        """
        self._options = options(url, timeout_s)
        self._make: type[AbstractConnection] = self._options.pop("connection_class")
        self._url, self._timeout_s, self._channels = url, timeout_s, channels
        self._on_message, self._on_up = on_message, on_up
        self._wire: Wire | None = None
        self._transport: asyncio.WriteTransport | None = None
        self._writer: asyncio.StreamWriter | None = None  # kept: a collected StreamWriter closes its transport
        self._up = asyncio.Event()
        self.ups = 0  # times it has come up: what one server said in pieces, the next one does not go on with
        self._keeper: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """True while commands can be sent."""
        return self._up.is_set()

    async def open(self, *, wait_s: float | None = None) -> "Link":
        """Start to connect, for ever; with `wait_s`, wait so long for the first time up.

        Raises:
            RedisAwayError: not up within `wait_s`; the link goes on trying.
        """
        self._keeper = asyncio.create_task(self._keep(), name="redis-link")
        if wait_s is not None:
            try:
                async with asyncio.timeout(wait_s):
                    await self._up.wait()
            except TimeoutError:
                raise RedisAwayError(f"Redis does not answer at {_bare(self._url)}") from None
        return self

    async def close(self) -> None:
        """Close for good; what is in flight becomes unknown."""
        while self._keeper is not None and not self._keeper.done():
            self._keeper.cancel()  # until it is heard: redis-py's handshake has a wait_for too (see `_stay`)
            await asyncio.wait({self._keeper}, timeout=CLOSE_AGAIN_S)
        self._drop()

    async def up(self) -> None:
        """Wait until commands can be sent."""
        await self._up.wait()

    def call(self, *args: Arg) -> asyncio.Future[Any]:
        """Send one command; the future gets its answer. Commands sent in one tick leave in one write.

        Raises, in the future:
            RedisAwayError: not sent, or refused by the server as a whole.
            RedisUnknownError: sent, answer lost.
            ReplyError: refused.

        Raises:
            TypeError: at once: an argument is neither text nor bytes nor number.
            UnicodeEncodeError: likewise: a text cannot be written as UTF-8.
        """
        packed = hiredis.pack_command(args)  # type: ignore[arg-type]  # its stub wants an invariant tuple
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        wire, transport = self._wire, self._transport
        if wire is None or transport is None:
            future.set_exception(RedisAwayError("Redis is not connected"))
            return future
        if not wire.waiting:
            wire.asked = asyncio.get_running_loop().time()
        wire.waiting.append(future)  # not before it is packed: who waits without being sent gets another's answer
        transport.write(packed)
        return future

    async def run(self, verb: str, prefix: str, *args: Arg) -> Any:
        """Run a script of `shared.scripts` on the shard with this prefix; loads it again where Redis forgot it."""
        script = SCRIPTS[verb]
        try:
            return await self.call("EVALSHA", script.sha, 1, prefix, *args)
        except ReplyError as error:
            if not str(error).startswith("NOSCRIPT"):
                raise
        return await self.call("EVAL", script.text, 1, prefix, *args)

    def subscribe(self, channel: str) -> None:
        """A further channel of a subscriber, now and after each reconnect."""
        self._channels = (*self._channels, channel)
        if self._transport is not None:
            subscribe: tuple[Any, ...] = ("SUBSCRIBE", channel)
            self._transport.write(hiredis.pack_command(subscribe))

    async def _keep(self) -> None:
        pause = BACKOFF_S[0]
        while True:
            try:
                wire = await self._connect()
                pause = BACKOFF_S[0]
                await self._stay(*wire)
                self._drop()
                continue
            except (RedisError, OSError, RedisAwayError, ReplyError) as error:
                log.warning("redis away", url=_bare(self._url), error=str(error), retry_s=round(pause, 2))
            except Exception:  # whatever it is, a link that has ended would leave its process mute for ever
                log.exception("redis link failed", url=_bare(self._url), retry_s=round(pause, 2))
            self._drop()
            await asyncio.sleep(random.uniform(pause / 2, pause))  # noqa: S311  jitter, not a secret
            pause = min(2 * pause, BACKOFF_S[1])

    async def _connect(self) -> tuple[Wire, asyncio.WriteTransport]:
        connection = self._make(**self._options)
        await connection.connect()  # type: ignore[no-untyped-call]
        self._writer = connection._writer  # noqa: SLF001  the socket is ours from here
        connection._reader = connection._writer = None  # noqa: SLF001
        assert self._writer is not None  # noqa: S101  connect() has set it
        wire = Wire(self._on_message, self._gone)
        transport: Any = self._writer.transport
        transport.set_protocol(wire)
        self._wire, self._transport = wire, transport
        if self._on_message is None:
            loads = [self.call("SCRIPT", "LOAD", script.text) for script in SCRIPTS.values()]
            async with asyncio.timeout(self._timeout_s):
                await asyncio.gather(*loads)
        elif self._channels:
            subscribe: tuple[Any, ...] = ("SUBSCRIBE", *self._channels)
            transport.write(hiredis.pack_command(subscribe))
        self._up.set()
        self.ups += 1
        if self._on_up is not None:
            self._on_up()
        return wire, transport

    async def _stay(self, wire: Wire, transport: asyncio.WriteTransport) -> None:
        """Return when the connection is lost, or silent for too long."""
        while True:
            with contextlib.suppress(TimeoutError):
                # not wait_for, which (3.11) forgets that it was cancelled if the event comes in the same moment
                async with asyncio.timeout(self._timeout_s / 2):
                    await wire.lost.wait()
                return
            now = asyncio.get_running_loop().time()
            if wire.waiting and now - max(wire.heard, wire.asked) > self._timeout_s:
                log.warning("redis silent", url=_bare(self._url), in_flight=len(wire.waiting))
                return
            if self._on_message is not None:
                if now - wire.heard > 2 * self._timeout_s:
                    log.warning("redis silent", url=_bare(self._url), in_flight=0)
                    return
                transport.write(hiredis.pack_command(("PING",)))

    def _gone(self, wire: Wire) -> None:
        """From this moment on nothing may be sent, though the keeper may not have run yet."""
        if wire is self._wire:
            self._up.clear()
            self._wire = None

    def _drop(self) -> None:
        self._up.clear()
        wire, transport = self._wire, self._transport
        if transport is not None:
            transport.abort()  # before its writer is let go, which would warn of an open one
        self._wire = self._transport = self._writer = None
        if wire is not None:
            wire.connection_lost(None)


def _bare(url: str) -> str:
    """The URL without its password."""
    head, _, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if head else url
