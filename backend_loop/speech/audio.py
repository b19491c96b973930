"""Foreign audio becomes what engines listen to: 16,000 samples a second, mono, 16 bit, little endian.

The decoder is a C library, and the bytes may be anybody's: so this runs in the child process of the speech engines, and
only what is asked for is decoded. Numbers that the file gives of itself are believed only as far as the limits go.
"""

import io
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from backend_loop.speech.engine import RATE, WIDTH
from backend_loop.speech.refusal import Refusal
from shared.audio import RATES, kind_of

CHANNELS: Final = range(1, 9)
_BLOCK: Final = 32_768
"""Frames that are decoded at a time."""

_ENDLESS: Final = b"\xff" * 4
"""Length of a chunk that goes on to the end of the file."""


class Raw(NamedTuple):
    """How bytes without a header are to be read: 16 bit, little endian."""

    rate: int = RATE
    channels: int = 1


def check(data: bytes, raw: Raw | None, max_bytes: int) -> None:
    """All that can be said of a recording without decoding it.

    Raises:
        Refusal: it will not be listened to.
    """
    if not data:
        raise Refusal("there is no audio in it", "empty")
    if len(data) > max_bytes:
        raise Refusal(f"the recording has {len(data)} bytes, of {max_bytes} allowed", "too_large")
    if raw is None:
        if kind_of(data) is None:
            raise Refusal(
                "this is no WAV, FLAC or OGG file; raw PCM is taken where its rate is said, such as ?rate=16000",
                "unreadable",
            )
        return
    _sane(raw.rate, raw.channels)


def decode(data: bytes, raw: Raw | None, *, max_bytes: int, max_s: float) -> bytes:
    """The recording as engines listen to it.

    Args:
        data: a WAV, FLAC or OGG (Vorbis, Opus) file, or samples without a header.
        raw: how these are to be read; None: it is a file.
        max_bytes: of `data`.
        max_s: seconds that the recording may last.

    Raises:
        Refusal: it cannot be listened to.
    """
    check(data, raw, max_bytes)
    import numpy as np  # noqa: PLC0415  only who listens to somebody waits for these
    import soxr  # type: ignore[import-untyped]  # noqa: PLC0415  only who listens to somebody waits for it

    rate, blocks = _opened(data, raw)
    room = int(max_s * rate)
    kept = []
    for block in blocks:
        kept.append(block)
        room -= len(block)
        if room < 0:
            raise Refusal(f"the recording is longer than the {max_s:g} s that are listened to", "too_long")
    if not kept:
        raise Refusal("there is no audio in it", "empty")
    sound = np.nan_to_num(np.concatenate(kept), nan=0.0, posinf=1.0, neginf=-1.0)
    if rate != RATE:
        sound = soxr.resample(sound, rate, RATE)
    samples: bytes = np.clip(np.rint(sound * 32_768), -32_768, 32_767).astype("<i2").tobytes()
    return samples


def _opened(data: bytes, raw: Raw | None) -> tuple[int, Iterator[Any]]:
    """Rate, and blocks of mono samples from -1 to 1."""
    import numpy as np  # noqa: PLC0415  only who listens to somebody waits for it
    import soundfile  # type: ignore[import-untyped]  # noqa: PLC0415  only who listens to somebody waits for it

    if raw is not None:
        whole = len(data) - len(data) % (WIDTH * raw.channels)
        samples = np.frombuffer(data[:whole], "<i2").reshape(-1, raw.channels)
        return raw.rate, iter([samples.mean(axis=1, dtype=np.float32) / 32_768] if len(samples) else [])
    try:
        file = soundfile.SoundFile(io.BytesIO(_closed(data)))
    except soundfile.LibsndfileError as fault:
        raise _unreadable(fault) from None
    file.seekable = lambda: False  # else it looks for its place after each piece, and a FLAC stream's end has none
    _sane(file.samplerate, file.channels)
    return file.samplerate, _blocks(file)


def _closed(data: bytes) -> bytes:
    """A file that the decoder reads to its end, also where a WAV's writer could not go back and say how long it is.

    Zero is what some leave there; of any other length that is wrong the decoder itself takes what there is.
    """
    if kind_of(data) != "WAV":
        return data
    at = 12
    while data[at : at + 4] not in {b"data", b""}:
        at += 8 + (size := int.from_bytes(data[at + 4 : at + 8], "little")) + size % 2
    length, whole = data[at + 4 : at + 8], 8 + int.from_bytes(data[4:8], "little")
    if length != bytes(4) or at + 8 < whole <= len(data):
        return data  # there may be chunks behind sound that is really none
    return data[: at + 4] + _ENDLESS + data[at + 8 :]


def _blocks(file: Any) -> Iterator[Any]:
    import soundfile  # noqa: PLC0415  only who listens to somebody waits for it

    with file:
        while True:
            try:
                block = file.read(_BLOCK, dtype="float32", always_2d=True)
            except soundfile.LibsndfileError as fault:
                raise _unreadable(fault) from None
            if not len(block):
                return
            yield block.mean(axis=1)


def _unreadable(fault: Exception) -> Refusal:
    why = str(getattr(fault, "error_string", fault)).strip().rstrip(".")
    return Refusal(f"the recording cannot be read: {why}", "unreadable")


def _sane(rate: int, channels: int) -> None:
    if rate not in RATES:
        raise Refusal(
            f"{rate} samples a second are not listened to: send {RATES[0]} to {RATES[-1]}, best 16000", "unreadable"
        )
    if channels not in CHANNELS:
        raise Refusal(f"{channels} channels are not listened to: send one, or up to {CHANNELS[-1]}", "unreadable")
