"""What can be said of foreign audio without decoding it; both loops ask."""

from typing import Final

RATES: Final = range(4_000, 192_001)
"""Samples a second that are listened to."""

KINDS: Final = ("WAV", "FLAC", "OGG")
"""Of files that say themselves what they are."""

RAW: Final = "PCM"
"""Samples without a header: mono, 16 bit, little endian, at a rate that whoever sends them says."""

_OTHERS: Final = {b"\x1aE\xdf\xa3": "WebM", b"FORM": "AIFF", b"caff": "CAF", b"#!AM": "AMR"}


def kind_of(data: bytes) -> str | None:
    """One of `KINDS` by the file's first bytes; None: none of them."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return "WAV"
    return {b"fLaC": "FLAC", b"OggS": "OGG"}.get(data[:4])


def stranger(data: bytes) -> str | None:
    """What a file is that nobody here listens to, as browsers and telephones record it; None: it may be samples."""
    if data[4:8] == b"ftyp":
        return "MP4"
    return "MP3" if data[:3] == b"ID3" else _OTHERS.get(data[:4])
