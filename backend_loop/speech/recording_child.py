"""What the child process makes of a recording: decoded, and without the silence before and after what is said."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from backend_loop.speech.activity import speech_in
from backend_loop.speech.audio import Raw, decode
from backend_loop.speech.engine import RATE, WIDTH


def answer(run: Mapping[str, Any]) -> dict[str, Any]:
    """What engines listen to, in base64, and how long the whole of it lasts; `pcm` is empty where nobody speaks."""
    raw = None if run["raw"] is None else Raw(*run["raw"])
    whole = decode(b64decode(run["data"]), raw, max_bytes=run["max_bytes"], max_s=run["max_s"])
    span = speech_in(whole)
    said = b"" if span is None else whole[span.start * WIDTH : span.end * WIDTH]
    return {"pcm": b64encode(said).decode(), "audio_ms": round(len(whole) / WIDTH / RATE * 1000)}
