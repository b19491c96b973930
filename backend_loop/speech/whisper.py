"""Whisper on this machine: faster-whisper with weights from a folder. The product downloads none."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from backend_loop.speech.engine import RATE, Transcript, spoken
from backend_loop.speech.processes import SpeechProcesses


class Whisper:
    """The engine of one worker.

    Args:
        processes: where it listens; the weights stay loaded there.
        folder: of ``model.bin`` and what belongs to it.
    """

    name = "whisper"

    def __init__(self, processes: SpeechProcesses, folder: Path) -> None:
        """Loads nothing yet."""
        self._processes, self._folder = processes, folder

    async def transcribe(self, pcm: bytes, rate: int, language: str, hints: Sequence[str] = ()) -> Transcript:
        """As `Engine` says; confidence is what the model says of its own words."""
        if rate != RATE:
            raise ValueError(f"engines listen to {RATE} samples a second, not {rate}")
        began = monotonic()
        heard = await self._processes.ask(
            "whisper_child",
            pcm=b64encode(pcm).decode(),
            folder=str(self._folder),
            language=spoken(language),
            hints=list(hints),
        )
        return Transcript(heard["text"], heard["confidence"], self.name, (monotonic() - began) * 1000)
