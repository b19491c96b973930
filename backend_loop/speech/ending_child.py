"""What the child process makes of speech as it comes: who speaks, and when he has ended. Many streams side by side."""

from base64 import b64decode
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from backend_loop.speech.activity import FRAME_BYTES, Ear, EndPointer, Patience
from backend_loop.speech.engine import RATE
from backend_loop.speech.refusal import Refusal

MOST: Final = 256
"""Streams that are remembered; of one that is forgotten all is asked for again."""

LOST: Final = "lost"
"""Code of the refusal of a stream that does not go on where it was."""


class _Stream:
    def __init__(self, rate: int, most_s: float) -> None:
        self.had = 0
        self._ear, self._pointer = Ear(), EndPointer(Patience(most_s=most_s))
        self._resampler: Any = None
        if rate != RATE:
            import soxr  # type: ignore[import-untyped]  # noqa: PLC0415  most microphones need none

            self._resampler = soxr.ResampleStream(rate, RATE, 1, dtype="int16")

    def feed(self, pcm: bytes, *, last: bool) -> EndPointer:
        self.had += len(pcm)
        if self._resampler is not None:
            import numpy as np  # noqa: PLC0415  only who listens to somebody waits for it

            pcm = self._resampler.resample_chunk(np.frombuffer(pcm, "<i2"), last=last).astype("<i2").tobytes()
        for likelihood in self._ear.feed(pcm + bytes(FRAME_BYTES if last else 0)):
            if self._pointer.feed(likelihood):
                break
        if last:
            self._pointer.close()
        return self._pointer


_STREAMS: Final[OrderedDict[str, _Stream]] = OrderedDict()


def answer(run: Mapping[str, Any]) -> dict[str, Any]:
    """Whether somebody speaks now, whether he has ended, and from which second to which he has spoken, if he has.

    The last is told as well while he pauses: it will be so if he does not go on. `at` is the number of bytes that the
    stream had before these.
    """
    name, at = run["stream"], run["at"]
    if at == 0:
        _STREAMS[name] = _Stream(run["rate"], run["most_s"])
        while len(_STREAMS) > MOST:
            _STREAMS.popitem(last=False)
    stream = _STREAMS.get(name)
    if stream is None or stream.had != at:
        raise Refusal("the stream is not known any more: tell it from its beginning", LOST)
    pointer = stream.feed(b64decode(run["pcm"]), last=run["last"])
    if pointer.over:
        del _STREAMS[name]
    span = pointer.span or pointer.pause
    said = None if span is None else (span.start / RATE, span.end / RATE)
    return {"speaking": pointer.speaking, "over": pointer.over, "said": said}
