"""The embedded engine's side of the child process: pocketsphinx with the grammar of a home."""

import math
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pocketsphinx import Decoder, get_model_path

from backend_loop.speech.activity import Patience, speech_in
from backend_loop.speech.engine import RATE, WIDTH
from backend_loop.speech.pronunciation import by_letter, by_rule, is_initials

_SCORE: Final = 10_000
"""pocketsphinx gives e to the power of a score of so many units."""


_FRAMES: Final = 100
"""The engine's frames a second."""

_NOTHING: Final = {"text": "", "fit": 0.0, "covered": 0.0}


class _Heard(NamedTuple):
    text: str
    score: float
    frames: int


def answer(run: Mapping[str, Any]) -> dict[str, Any]:
    """What was said, of what the grammar knows.

    `fit`: how much better it fits than any sounds, a frame of its words; `covered`: how much of the speech are words,
    and no noise that the engine makes of what fits nowhere.
    """
    pcm = b64decode(run["pcm"])
    span = speech_in(pcm)
    if span is None:
        return _NOTHING
    pcm = pcm[span.start * WIDTH : span.end * WIDTH]
    decoder = _decoder(run["jsgf"], tuple(run["words"]))
    heard = _listen(decoder, "home", pcm)
    if not heard.text:
        return _NOTHING
    sounds = _listen(decoder, "sounds", pcm)
    spoken = (span.end - span.start) / RATE * _FRAMES
    return {
        "text": heard.text,
        "fit": (heard.score - sounds.score) / max(1, heard.frames),
        "covered": heard.frames / max(1.0, spoken - 2 * Patience().margin_s * _FRAMES),
    }


def _listen(decoder: Decoder, search: str, pcm: bytes) -> _Heard:
    decoder.activate_search(search)
    decoder.start_utt()
    decoder.process_raw(pcm, full_utt=True)
    decoder.end_utt()
    best = decoder.hyp()
    if best is None or not best.hypstr:
        return _Heard("", 0.0, 0)
    frames = sum(
        one.end_frame - one.start_frame + 1 for one in decoder.seg() if not one.word.startswith(("<", "[", "SIL", "+"))
    )
    return _Heard(best.hypstr, math.log(best.score) * _SCORE, frames)


@lru_cache(maxsize=4)
def _decoder(jsgf: str, words: tuple[str, ...]) -> Decoder:
    decoder = Decoder(samprate=RATE, loglevel="FATAL", lm=None)
    for word in words:
        if decoder.lookup_word(word) is None:
            decoder.add_word(word, by_letter(word) if is_initials(word) else by_rule(word), True)
    decoder.add_jsgf_string("home", jsgf)
    decoder.add_allphone_file("sounds", get_model_path("en-us/en-us-phone.lm.bin"))
    return decoder
