"""Somebody who speaks into a socket: samples of recordings, told as microphones do, and what comes of them."""

import io
import wave
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.stories.stack import Stack
from tests.stories.talk import Talk

AUDIO: Final = Path(__file__).parent.parent / "audio"
RATE: Final = 16_000
SLICE_MS: Final = 40
"""As microphones tell it; here they come as fast as they are taken."""


def samples(name: str) -> bytes:
    """Of a recording, at 16,000 a second."""
    with wave.open(io.BytesIO((AUDIO / f"{name}.wav").read_bytes())) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        return bytes(file.readframes(file.getnframes()))


def silence(seconds: float) -> bytes:
    return bytes(round(seconds * RATE) * 2)


def slices(pcm: bytes, size: int = RATE * SLICE_MS // 1000 * 2) -> Iterable[bytes]:
    return (pcm[at : at + size] for at in range(0, len(pcm), size))


async def speak(talk: Talk, pcm: bytes) -> None:
    for piece in slices(pcm):
        await talk.raw(piece)


def left(store: Any) -> list[bytes]:
    """What voice sessions have left behind."""
    found: list[bytes] = [*store.keys("*}:stream*"), *store.keys("*}:spoken*")]
    return found


def voice(stack: Stack, query: str = "locale=en") -> str:
    return f"{stack.ws.removesuffix('/v1/ws')}/v1/voice?{query}"


async def understood(talk: Talk) -> dict[str, Any]:
    """The final frame."""
    return await talk.until(lambda frame: frame["op"] in {"final", "error"})
