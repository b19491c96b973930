"""The ``traceparent`` header of W3C Trace Context: read what came, make what did not."""

import random
import re

_HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_PLAIN = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)  # as nearly all are
_LONGEST = 512


def valid(header: object) -> str | None:
    """The header as it is passed on, or None where the standard says to ignore it."""
    if not isinstance(header, str) or len(header) > _LONGEST:
        return None
    if _PLAIN.fullmatch(header):
        return header
    match = _HEADER.fullmatch(header)
    if match is None:
        return None
    version, trace_id, span_id, flags, more = match.groups()
    if version == "ff" or not trace_id.strip("0") or not span_id.strip("0"):
        return None
    if version != "00":  # a later version: what we know of it, as our own version
        return of(int(trace_id, 16), int(span_id, 16), int(flags, 16) & 1)
    return None if more else header


def fresh(*, sampled: bool) -> str:
    """A new trace. Ids need no secrecy, so ``random`` does; Python seeds it anew after a fork."""
    return of(random.getrandbits(128) or 1, random.getrandbits(64) or 1, int(sampled))


def of(trace_id: int, span_id: int, flags: int) -> str:
    """The header that names this span."""
    return f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}"


def parts(header: str) -> tuple[int, int, int]:
    """Trace id, span id and flags of a valid header."""
    _, trace_id, span_id, flags = header.split("-")
    return int(trace_id, 16), int(span_id, 16), int(flags, 16)
