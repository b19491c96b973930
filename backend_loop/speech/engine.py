"""What turns speech into text: one small protocol, and what came of it."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

RATE: Final = 16_000
"""Samples a second of what engines are given: mono, 16 bit, little endian."""

WIDTH: Final = 2
"""Bytes of a sample."""


class Transcript(NamedTuple):
    """What was heard."""

    text: str
    """Empty: nothing was said, or nothing that the engine knows."""
    confidence: float | None
    """From 0 to 1; None: the engine does not say, which is not the same as being sure."""
    engine: str
    """Its name, as settings have it."""
    took_ms: float


class Engine(Protocol):
    """Something that listens."""

    @property
    def name(self) -> str:
        """As settings have it."""

    async def transcribe(self, pcm: bytes, rate: int, language: str, hints: Sequence[str] = ()) -> Transcript:
        """Listen to one utterance.

        Args:
            pcm: mono, 16 bit, little endian, without the silence before and after the speech.
            rate: samples a second.
            language: of the speaker, such as ``en`` or ``zh-CN``.
            hints: names that are likely to be said.

        Raises:
            ServiceUnavailable: no answer that can be used; another engine, or the same a little later, may have one.
            ServiceRefused: it will say no again: a language that it does not speak, a wrong key.
        """


def spoken(language: str) -> str:
    """The language of a locale: ``zh`` of ``zh-Hans-CN`` and ``zh_CN``."""
    return language.replace("_", "-").partition("-")[0].lower()
