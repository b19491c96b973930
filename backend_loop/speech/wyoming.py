"""The client of a Wyoming speech server, as Home Assistant's add-ons are: one connection an utterance."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Final, cast
from urllib.parse import urlsplit

from backend_loop.services import ServiceRefused, ServiceUnavailable, silence
from backend_loop.speech.engine import WIDTH, Transcript, spoken

_CHUNK: Final = 4_096
"""Bytes of sound in one event."""

_MOST: Final = 64 * 1024
"""Bytes of one event of the server's: a sentence is shorter."""

_EVENTS: Final = 10_000
"""A server that says more without a transcript has none."""


class Wyoming:
    """The engine behind one server.

    Args:
        url: ``tcp://host:port`` or ``unix:///path``.
        within_s: how long an utterance may take there.

    Raises:
        ValueError: no such URL.
    """

    name = "wyoming"

    def __init__(self, url: str, *, within_s: float) -> None:
        """Connects to nothing yet."""
        self._url, self._within_s = url, within_s
        _place(url)

    async def transcribe(self, pcm: bytes, rate: int, language: str, hints: Sequence[str] = ()) -> Transcript:
        """As `Engine` says; the protocol has no confidence."""
        began = monotonic()
        try:
            async with asyncio.timeout(self._within_s):
                text = await self._ask(pcm, rate, spoken(language), hints)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as fault:
            raise ServiceUnavailable(f"the Wyoming server gave no answer: {silence(fault)}") from fault
        return Transcript(text.strip(), None, self.name, (monotonic() - began) * 1000)

    async def _ask(self, pcm: bytes, rate: int, language: str, hints: Sequence[str]) -> str:
        # wanted by who has such a server, and by nobody else; its module of audio wants one that Python has no more
        from wyoming.asr import Transcribe  # noqa: PLC0415  only who asks such a server waits for it
        from wyoming.event import Event, async_write_event  # noqa: PLC0415  only who asks such a server waits for it

        host, port, path = _place(self._url)
        opening = asyncio.open_unix_connection(path) if path else asyncio.open_connection(host, port)
        reader, writer = await opening
        try:
            form = {"rate": rate, "width": WIDTH, "channels": 1}
            asked = Transcribe(language=language, transcript_names=list(hints) or None)
            pieces = (pcm[at : at + _CHUNK] for at in range(0, len(pcm), _CHUNK))
            for event in (
                asked.event(),
                Event("audio-start", form),
                *(Event("audio-chunk", form, piece) for piece in pieces),
                Event("audio-stop"),
            ):
                await async_write_event(event, writer)
            return await _text(reader)
        finally:
            writer.transport.abort()  # a close would wait until all was read, and who hangs reads nothing
            with suppress(OSError):
                await writer.wait_closed()


async def _text(reader: asyncio.StreamReader) -> str:
    from wyoming.event import async_read_event  # noqa: PLC0415  only who asks such a server waits for it

    bounded = cast("asyncio.StreamReader", _Bounded(reader))
    for _ in range(_EVENTS):
        try:
            event = await async_read_event(bounded)
            if event is None:
                break
            if event.type == "transcript":
                text = event.data["text"]
                if isinstance(text, str):
                    return text
                break
            if event.type == "error":
                raise ServiceRefused(f"the Wyoming server: {str(event.data.get('text'))[:300]}", "error")
        except (AttributeError, KeyError, TypeError, ValueError) as fault:  # events that are none
            raise ServiceUnavailable("the Wyoming server said what is no event") from fault
    raise ServiceUnavailable("the Wyoming server ended without a transcript")


class _Bounded:
    """The part of a stream that the package reads by, which believes any length that it is told."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    async def readline(self) -> bytes:
        line = await self._reader.readline()
        if line and not line.endswith(b"\n"):
            raise ValueError("half a line")
        return line

    async def readexactly(self, size: Any) -> bytes:
        if not isinstance(size, int) or size > _MOST:
            raise TypeError("an event of that length is none of ours")
        return await self._reader.readexactly(size)


def _place(url: str) -> tuple[str, int, str]:
    """Host and port, or path."""
    parts = urlsplit(url)
    with suppress(ValueError):  # a port that is none
        if parts.scheme == "tcp" and parts.hostname and parts.port:
            return parts.hostname, parts.port, ""
        if parts.scheme == "unix" and parts.path:
            return "", 0, parts.path
    raise ValueError(f"DUALLOOP_WYOMING_URL is tcp://host:port or unix:///path, not {url!r}")
