"""What a foreground sees of a recording: whether it may be one, by its first bytes. Nothing is decoded here. Pure."""

from typing import Any, Final, NamedTuple

from frontend_loop.multipart import file_of, is_form, parameters
from frontend_loop.reading import invalid
from shared.audio import RATES, RAW, kind_of, stranger
from shared.errors import Problem

_BARE: Final = frozenset(
    {
        "",
        "application/octet-stream",
        "application/x-www-form-urlencoded",  # what curl says of all data
        *("audio/l16", "audio/pcm", "audio/raw", "audio/x-raw"),
    }
)
"""Types of bodies that may be samples without a header."""

WANTED: Final = (
    "send a WAV, FLAC or OGG file, or raw PCM (16 bit, little endian, mono) with its rate: "
    "content-type audio/L16;rate=16000, or ?rate=16000"
)


class Recording(NamedTuple):
    """One that may be taken in; `rate` is that of raw PCM, None of a file."""

    data: bytes
    kind: str
    rate: int | None

    def told(self) -> dict[str, Any]:
        """What the command says of it."""
        return {"bytes": len(self.data), "kind": self.kind, "rate": self.rate}


def recording_of(body: bytes, content_type: str, rate: int | None, most: int) -> Recording:
    """The recording in a body.

    Args:
        body: a file, samples without a header, or a form with one of these.
        content_type: of the body.
        rate: of samples, as the query says; None: the content type does.
        most: bytes that it may have.

    Raises:
        Problem: 413, 415 or 422.
    """
    if is_form(content_type):
        content_type, body = file_of(content_type, body)
    if not body:
        raise Problem("empty_recording", f"there is no audio in the body: {WANTED}")
    if len(body) > most:
        raise Problem("too_large", f"a recording may have {most} bytes: say less, or send it as FLAC or OGG")
    if (kind := kind_of(body)) is not None:
        return Recording(body, kind, None)
    if (other := stranger(body)) is not None:  # as samples it would be noise, in which nobody speaks
        raise Problem("no_recording", f"nobody listens to {other} here: {WANTED}")
    said = parameters(content_type)
    bare = content_type.partition(";")[0].strip().lower() in _BARE
    rate = rate or _number(said.get("rate"))
    if not bare or rate is None or _number(said.get("channels")) not in {None, 1}:
        raise Problem("no_recording", f"this is no recording that is known here: {WANTED}")
    if rate not in RATES:
        detail = f"{rate} samples a second are not listened to: {RATES.start} to {RATES.stop - 1} are"
        raise invalid([{"pointer": "/rate", "detail": detail}])
    return Recording(body, RAW, rate)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 10 else None
