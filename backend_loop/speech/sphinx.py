"""The embedded engine: pocketsphinx, whose model comes in its wheel, with the grammar of this home. It knows English.

It hears what the grammar has, or nothing. How sure it is comes from how much better that fits than any row of sounds
would, and from whether the sentence is a whole one.
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

_EVEN: Final = 2.0
"""The fit at which it is as likely as not that this was said; measured, see tests/processes/test_speech_score.py."""

_STEEP: Final = 0.35
_SHORT: Final = 3
"""Words of a sentence that fits by chance."""


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
            "sphinx_child", pcm=b64encode(pcm).decode(), jsgf=grammar.jsgf, words=grammar.words
        )
        sure = confidence(heard["text"], heard["fit"], whole=grammar.accepts(heard["text"]))
        return Transcript(written(heard["text"]), sure, self.name, (monotonic() - began) * 1000)

    def _grammar(self) -> Grammar:
        home = self._home()
        if self._made is None or self._made[0] != home.revision:
            self._made = home.revision, Grammar(home)
        return self._made[1]


def confidence(text: str, fit: float, *, whole: bool) -> float:
    """How likely it is that this was said, from 0 to 1.

    Args:
        text: what was heard; nothing is heard with no confidence.
        fit: log-likelihood a frame above that of any row of sounds, in the engine's units.
        whole: the sentence has its end.
    """
    if not text:
        return 0.0
    likely = 1 / (1 + math.exp(-_STEEP * (fit - _EVEN)))
    return round(likely if whole else likely / 2, 3)
