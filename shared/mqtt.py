"""Connections to an MQTT broker: the one place that opens them, so that all are alike.

MQTT 3.1.1, because the embedded broker speaks nothing newer. Small packets leave at once: held back until the one
before is acknowledged (Nagle's algorithm against delayed ACKs), a question and its answer took 44 ms instead of 1.
"""

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import Awaitable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

import aiomqtt

_T = TypeVar("_T")

SHAPE: Final = "mqtt://user:password@host:1883 or mqtts://host:8883 (in a password, %2F for /, %40 for @)"
PORTS: Final = {"mqtt": 1883, "mqtts": 8883}

ADDRESS: Final = re.compile(r"localhost|[0-9.]+|[0-9a-f.]*:[0-9a-f:.%\w]*", re.IGNORECASE)
"""A host that nobody takes for a user: `mqtt://home:4711` may be a broker's port, or what somebody is known by."""

AT_ONCE: Final = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
MANY: Final = 1_000_000
"""Answers that may be under way before the library warns of them: bounding them is the caller's business."""


UNTRUSTED: Final = re.compile(r"CERTIFICATE_VERIFY_FAILED\] certificate verify failed: (?P<why>.*?)\.?( \(_ssl|$)")


class MqttUrlError(ValueError):
    """The URL is wrong; the sentence says what to write, and never holds a password."""


@dataclass(frozen=True, slots=True)
class MqttUrl:
    """Where a broker is, and who asks.

    Attributes:
        secure: over TLS, the broker's certificate checked against the system's authorities, or SSL_CERT_FILE's.
    """

    host: str
    port: int
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    secure: bool = False

    @classmethod
    def parse(cls, url: str) -> "MqttUrl":
        """What a URL says.

        Raises:
            MqttUrlError: no broker can be reached by it.
        """
        try:
            parsed = urlsplit(url)
            host, port = parsed.hostname, parsed.port
        except ValueError:
            raise MqttUrlError(f"the URL of the MQTT broker cannot be read: write {SHAPE}") from None
        if parsed.scheme not in PORTS or not host or port == 0:
            raise MqttUrlError(f"this is no URL of an MQTT broker: write {SHAPE}")
        if parsed.path not in {"", "/"} or parsed.query or parsed.fragment:
            raise MqttUrlError(f"the URL of an MQTT broker ends with its port: write {SHAPE}")
        username, password = (None if part is None else unquote(part) for part in (parsed.username, parsed.password))
        if password is not None and not username:
            raise MqttUrlError(f"MQTT takes no password without a user: write {SHAPE}")
        return cls(host, port or PORTS[parsed.scheme], username or None, password, secure=parsed.scheme == "mqtts")

    def __str__(self) -> str:
        """For a person and for logs: without who asks, also where the host was forgotten after a password of digits."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        sure = self.username is not None or self.port in PORTS.values() or ADDRESS.fullmatch(self.host) is not None
        return f"{'mqtts' if self.secure else 'mqtt'}://{host}:{self.port if sure else '…'}"


class _Socket(ssl.SSLSocket):
    """One that is closed where its handshake fails: the library leaves it to the garbage, one more with each try."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.sslsocket_class = _Socket
    return context


def trouble(error: aiomqtt.MqttError) -> str:
    """What is wrong with a connection, for a person: of a certificate that is not trusted, what to do about it."""
    if (found := UNTRUSTED.search(str(error))) is None:  # the library keeps no more of it than its words
        return str(error)
    return f"its certificate is not trusted ({found['why']}): name the file of its authority in SSL_CERT_FILE"


class _Client(aiomqtt.Client):
    """One that can be cancelled whenever: where the library forgets a cancelling, its caller goes on for ever."""

    async def _wait_for(self, fut: Awaitable[_T], timeout: float | None) -> _T:  # noqa: ASYNC109  the library's
        """As the library's, but not by `asyncio.wait_for`.

        That (3.11) forgets that it was cancelled if what it waits for comes in the same moment.
        """
        seconds = self.timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                return await fut
        except TimeoutError:
            raise aiomqtt.MqttError(f"the broker does not answer within {seconds:g} s") from None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave; what comes of the good-bye takes no other error's place, least of all a cancelling's.

        That may be any error: the library hands on what its callbacks trip over meanwhile.
        """
        with contextlib.nullcontext() if error is None else contextlib.suppress(Exception):
            await super().__aexit__(kind, error, trace)


def connect(
    url: MqttUrl | str,
    *,
    identifier: str | None = None,
    will: aiomqtt.Will | None = None,
    wait_s: float = 5.0,
    keepalive_s: int = 15,
) -> aiomqtt.Client:
    """A client that connects once it is entered with ``async with``; whoever needs it again makes a new one.

    Args:
        url: of the broker.
        identifier: under which the broker knows it; of two alike the broker drops the older. Unset: one of its own.
        will: what the broker says once the connection is lost.
        wait_s: how long connecting, and each acknowledgement, may take.
        keepalive_s: a connection that has been silent for this long is tried, and dropped after half as long again.

    Raises:
        MqttUrlError: no broker can be reached by this URL.
    """
    at = MqttUrl.parse(url) if isinstance(url, str) else url
    client = _Client(
        at.host,
        at.port,
        username=at.username,
        password=at.password,
        identifier=identifier,
        will=will,
        protocol=aiomqtt.ProtocolVersion.V311,
        clean_session=True,
        timeout=wait_s,
        keepalive=keepalive_s,
        tls_context=_context() if at.secure else None,
        socket_options=(AT_ONCE,),
    )
    client.pending_calls_threshold = MANY
    return client
