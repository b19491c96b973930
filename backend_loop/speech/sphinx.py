"""The embedded engine: pocketsphinx, whose model comes in its wheel, with the grammar of this home. It knows English.

It hears what the grammar has, or nothing. How sure it is comes from how well the sounds fit, and from whether the
sentence is a whole one.
"""

import math
from base64 import b64encode
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final

from backend_loop.services import ServiceRefused
from backend_loop.speech.engine import RATE, Transcript, spoken
from backend_loop.speech.grammar import LANGUAGE, Grammar
from backend_loop.speech.numerals import written
from backend_loop.speech.processes import SpeechProcesses
from shared.home import Inventory

_WORST: Final = 4.2
"""How far the word that fits worst may be off for a sentence that is as likely right as wrong; see `confidence`."""

_MEAN: Final = 4.0
_WIDTH: Final = 0.4
"""Both measured: tests/processes/test_speech_score.py, and the same recordings in homes that lack what they name."""


class Sphinx:
    """The engine of one worker.

    Args:
        processes: where it listens.
        home: the inventory as it is now.
    """

    name = "sphinx"

    def __init__(self, processes: SpeechProcesses, home: Callable[[], Inventory]) -> None:
        """The grammar is made when somebody speaks."""
        self._processes, self._home = processes, home
        self._made: tuple[str, Grammar] | None = None

    async def transcribe(self, pcm: bytes, rate: int, language: str, hints: Sequence[str] = ()) -> Transcript:
        """As `Engine` says; hints are not needed, the grammar has all names."""
        del hints
        if spoken(language) != LANGUAGE:
            raise ServiceRefused(
                f"the embedded engine knows English only, not {language}: set DUALLOOP_WYOMING_URL, "
                "DUALLOOP_SPEECH_URL or DUALLOOP_WHISPER_DIR",
                "language_not_spoken",
            )
        if rate != RATE:
            raise ValueError(f"engines listen to {RATE} samples a second, not {rate}")
        began, grammar = monotonic(), self._grammar()
        heard = await self._processes.ask(
            "sphinx_child",
            pcm=b64encode(pcm).decode(),
            jsgf=grammar.jsgf,
            words=grammar.words,
            telling=grammar.telling,
        )
        text = heard.pop("text")
        sure = confidence(**heard, whole=grammar.accepts(text)) if text else 0.0
        return Transcript(written(text), sure, self.name, (monotonic() - began) * 1000)

    def _grammar(self) -> Grammar:
        home = self._home()
        if self._made is None or self._made[0] != home.revision:
            self._made = home.revision, Grammar(home)
        return self._made[1]


def confidence(*, worst: float, mean: float, covered: float, whole: bool) -> float:
    """How likely it is that this was said, from 0 to 1.

    A wrong name has the rest of its sentence right: the word that fits worst tells more than all together.

    Args:
        worst: how far the worst of the words that tell is off: names and numbers.
        mean: how far all are off, on average.
        covered: how much of the speech are words.
        whole: the sentence has its end.
    """
    likely = _likely(_WORST - worst) * _likely(_MEAN - mean) * min(1.0, covered)
    return round(likely if whole else likely / 2, 3)


def _likely(spare: float) -> float:
    return 1 / (1 + math.exp(-spare / _WIDTH))
