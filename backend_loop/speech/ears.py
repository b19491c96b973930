"""What a worker hears with: a recording is decoded, cut to what is said in it, and listened to by the engine.

All of it that computes does so in child processes, see `SpeechProcesses`; here it is only waited for.
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Callable
from time import monotonic
from typing import NamedTuple

import httpx

from backend_loop.speech.choice import engine_of, hints_of
from backend_loop.speech.engine import RATE
from backend_loop.speech.processes import SpeechProcesses
from backend_loop.speech.repair import repair
from shared.home import Inventory
from shared.settings import Settings


class Heard(NamedTuple):
    """What came of a recording.

    Attributes:
        text: what was said, with the home's names as they are; empty: nothing that can be understood.
        heard: the same as the engine heard it.
        confidence: from 0 to 1; None: the engine does not say.
        repaired: `text` is not what was heard.
        engine: its name; None: nobody spoke, so that none was asked.
        took_ms: all of it. audio_ms: what the recording lasts.
    """

    text: str
    heard: str
    confidence: float | None
    repaired: bool
    engine: str | None
    took_ms: int
    audio_ms: int


class Ears:
    """Those of one worker; made once, closed by its owner. No process is started before somebody speaks.

    Args:
        settings: which engine, and how much it may be given.
        client: of who asks servers; closing it is its owner's business.
        home: the inventory as it is now.

    Raises:
        ValueError: the engine is configured wrongly; the sentence says how.
    """

    def __init__(self, settings: Settings, client: httpx.AsyncClient, home: Callable[[], Inventory]) -> None:
        """Connects to nothing yet."""
        self._settings, self._home = settings, home
        self._processes = SpeechProcesses(settings)
        self._engine = engine_of(settings, client, self._processes, home)

    @property
    def guesses(self) -> bool:
        """Whether it may be asked again and again while somebody speaks: it costs little, and nobody is paid for it."""
        return self._engine.name == "sphinx"

    async def listen(self, recording: bytes, rate: int | None, language: str) -> Heard:
        """Listen to a recording.

        Args:
            recording: a WAV, FLAC or OGG file, or samples without a header: mono, 16 bit, little endian.
            rate: of these, samples a second; None: it is a file.
            language: of the speaker.

        Raises:
            ServiceUnavailable: no answer that can be used; the same may be asked again.
            ServiceRefused: it cannot be listened to: no audio, too long, a language that the engine does not know.
        """
        began = monotonic()
        pcm, audio_ms = await self._sound(recording, rate)
        if not pcm:
            return Heard("", "", None, False, None, _since(began), audio_ms)
        home = self._home()
        told = await self._engine.transcribe(pcm, RATE, language, hints_of(home, language))
        heard = told.text.strip()
        put_right = await asyncio.to_thread(repair, heard, language, home)
        sure = put_right.confidence if told.confidence is None else told.confidence * put_right.confidence
        unsaid = told.confidence is None and not put_right.changes
        return Heard(
            put_right.text,
            heard,
            None if unsaid else round(sure, 3),
            bool(put_right.changes),
            told.engine,
            _since(began),
            audio_ms,
        )

    async def _sound(self, recording: bytes, rate: int | None) -> tuple[bytes, int]:
        """What is said in it, as engines are given it, and what all of it lasts."""
        sound = await self._processes.ask(
            "recording_child",
            data=b64encode(recording).decode(),
            raw=None if rate is None else (rate, 1),
            max_bytes=self._settings.max_audio,
            max_s=self._settings.speech_s,
        )
        return b64decode(sound["pcm"]), sound["audio_ms"]

    async def close(self) -> None:
        """End its processes."""
        await self._processes.close()


def _since(began: float) -> int:
    return round((monotonic() - began) * 1000)
