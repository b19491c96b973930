"""The embedded engine's side of the child process: pocketsphinx with the grammar of a home."""

import math
import sys
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from backend_loop.speech.activity import Patience
from backend_loop.speech.engine import RATE, WIDTH
from backend_loop.speech.pronunciation import by_letter, by_rule, is_initials
from backend_loop.speech.refusal import Refusal

_FRAMES: Final = RATE // 160
"""The engine's frames a second."""

_NOTHING: Final = {"text": "", "worst": 0.0, "mean": 0.0, "covered": 0.0}


def answer(run: Mapping[str, Any]) -> dict[str, Any]:
    """What was said, of what the grammar knows.

    `worst`, `mean`: how far the sound of the words that tell, and of all, is from what the engine
    expects, in nats a frame: a good sentence has 2, and 3 at its worst.
    `covered`: how much of the speech are words, and no noise that the engine makes of what fits nowhere.
    """
    pcm = b64decode(run["pcm"])
    decoder = _decoder(run["jsgf"], tuple(run["words"]))
    decoder.start_utt()
    decoder.process_raw(pcm, full_utt=True)
    decoder.end_utt()
    best, said = decoder.hyp(), [one for one in decoder.seg() or () if not one.word.startswith(("<", "[", "SIL", "+"))]
    if best is None or not said:
        return _NOTHING
    off = {n: _off(one) for n, one in enumerate(said)}
    telling = [off[n] for n, one in enumerate(said) if one.word.partition("(")[0] in set(run["telling"])]
    spoken = len(pcm) / WIDTH / RATE - 2 * Patience().margin_s
    return {
        "text": best.hypstr,
        "worst": max(telling or off.values()),
        "mean": sum(off.values()) / len(off),
        "covered": sum(_length(one) for one in said) / max(1.0, spoken * _FRAMES),
    }


def _length(one: Any) -> int:
    frames: int = one.end_frame - one.start_frame + 1
    return frames


def _off(one: Any) -> float:
    return -math.log(max(one.ascore, sys.float_info.min)) / _length(one)


@lru_cache(maxsize=4)
def _decoder(jsgf: str, words: tuple[str, ...]) -> Any:
    try:
        from pocketsphinx import Decoder  # type: ignore[import-untyped]  # noqa: PLC0415  not for every Python
    except ModuleNotFoundError:
        why = "the embedded engine is not installed: take Python 3.11 or 3.13, or name another engine"
        raise Refusal(why, "not_installed") from None
    decoder = Decoder(samprate=RATE, loglevel="FATAL", lm=None)
    for word in words:
        if decoder.lookup_word(word) is None:
            decoder.add_word(word, by_letter(word) if is_initials(word) else by_rule(word), True)
    decoder.add_jsgf_string("home", jsgf)
    decoder.activate_search("home")
    return decoder
