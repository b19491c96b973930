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
    "zh": "以下是普通话的家居指令：打开，关闭，调到，亮度，百分之，度，播放，暂停。{}。",
    "en": "Commands to a home: turn on, turn off, set to, open, close, play, pause. {}.",
}
"""What is said of devices, and then their names; a sentence in simplified signs keeps the model to these."""

_PROMPT: Final = 120
"""Characters of names: more of them crowd out what else is said."""


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
    names = ("，" if language == "zh" else ", ").join(hints)[:_PROMPT]
    return _PROMPTS.get(language, "{}").format(names) if names else None


@lru_cache(maxsize=1)
def _model(folder: str) -> Any:
    try:
        from faster_whisper import WhisperModel  # type: ignore[import-not-found]  # noqa: PLC0415  an extra
    except ImportError:
        raise Refusal("whisper is not installed: pip install 'dualloop[whisper]'", "not_installed") from None
    if not (Path(folder) / "model.bin").is_file():
        raise Refusal(f"there are no weights in {folder}: a folder of faster-whisper's has a model.bin", "no_weights")
    return WhisperModel(folder, device="cpu", compute_type="int8", local_files_only=True)
