"""Whisper's side of the child process."""

import math
from base64 import b64decode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from backend_loop.speech.refusal import Refusal

_PROMPTS: Final = {
    "zh": ("以下是普通话的句子：{}。", 60),
    "en": ("Home commands: turn on, turn off, set to 20 degrees, play music, pause. {}.", 150),
}
"""How names are told, and with how many characters of them: more crowd out what else is said; measured, see
tests/processes/test_speech_score.py. A sentence in simplified signs keeps the model to these."""

_OTHERS: Final = ("{}", 150)


def answer(run: Mapping[str, Any]) -> dict[str, Any]:
    """What was said, and how sure the model is of its words."""
    model = _model(run["folder"])
    sound = np.frombuffer(b64decode(run["pcm"]), "<i2").astype(np.float32) / 32_768
    try:
        found, _ = model.transcribe(
            sound,
            language=run["language"],
            beam_size=1,
            initial_prompt=_prompt(run["language"], run["hints"]),
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        segments = list(found)
    except ValueError as error:
        if "language" in str(error):
            raise Refusal(f"these weights do not speak {run['language']}", "language_not_spoken") from None
        raise
    text = "".join(one.text for one in segments).strip()
    sure = [math.exp(one.avg_logprob) * (1 - one.no_speech_prob) for one in segments]
    return {"text": text, "confidence": round(min(sure), 3) if text else 0.0}


def _prompt(language: str, hints: Sequence[str]) -> str | None:
    form, most = _PROMPTS.get(language, _OTHERS)
    names = ("，" if language == "zh" else ", ").join(hints)[:most]
    return form.format(names) if names else None


@lru_cache(maxsize=1)
def _model(folder: str) -> Any:
    try:
        from faster_whisper import WhisperModel  # type: ignore[import-not-found]  # noqa: PLC0415  an extra
    except ImportError:
        raise Refusal("whisper is not installed: pip install 'dualloop[whisper]'", "not_installed") from None
    if not (Path(folder) / "model.bin").is_file():
        raise Refusal(f"there are no weights in {folder}: a folder of faster-whisper's has a model.bin", "no_weights")
    return WhisperModel(folder, device="cpu", compute_type="int8", local_files_only=True)
