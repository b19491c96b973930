"""The decoder's side of the child process."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from backend_loop.speech.audio import Raw, decode


def answer(run: Mapping[str, Any]) -> str:
    """The recording as engines listen to it, in base64."""
    raw = None if run["raw"] is None else Raw(*run["raw"])
    return b64encode(decode(b64decode(run["data"]), raw, max_bytes=run["max_bytes"], max_s=run["max_s"])).decode()
