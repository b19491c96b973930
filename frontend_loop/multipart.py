"""The one file of a ``multipart/form-data`` body, as browsers and ``curl -F`` send it (RFC 7578). Pure.

Headers are taken apart here and not by `email`: that one looks for the end of a quoted text again and again, seconds of
this process for a header that never ends, and raises what it likes on others.
"""

import re
from collections.abc import Mapping
from typing import Final

from shared.errors import Problem

OVERHEAD: Final = 16 * 1024
"""Bytes that boundaries, headers and small fields may have, besides the file."""

LONGEST: Final = 4096
"""Bytes of a part's headers, and characters of a header that is taken apart."""

MOST: Final = 100
"""Parts of a form."""

_PARAMETER: Final = re.compile(r';\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^\s;"]*)', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def is_form(content_type: str) -> bool:
    """Whether a body of this type has parts."""
    return content_type.partition(";")[0].strip().lower() == "multipart/form-data"


def file_of(content_type: str, body: bytes) -> tuple[str, bytes]:
    """Content type and bytes of the one part that is a file; fields without a file name are left alone.

    Raises:
        Problem: 422, the body is no such form, or has not exactly one file.
    """
    boundary = parameters(content_type).get("boundary")
    if not boundary:
        raise _wrong("its content-type has no boundary")
    # the first boundary has no line break before it
    preamble, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("latin-1", "replace"), MOST + 1)
    if preamble or not parts or not parts[-1].startswith(b"--"):
        raise _wrong("it does not end with its boundary")
    files = [found for part in parts[:-1] if (found := _file(part)) is not None]
    if len(files) != 1:
        raise _wrong(f"it has {len(files)} files: send one, with a file name")
    return files[0]


def _file(part: bytes) -> tuple[str, bytes] | None:
    head, gap, content = part.partition(b"\r\n\r\n")
    if not gap:
        raise _wrong("a part of it has no end of its headers")
    if len(head) > LONGEST:
        raise _wrong(f"the headers of a part have more than {LONGEST} bytes")
    headers = dict[str, str]()
    for line in head.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    names = parameters(headers.get("content-disposition", "")).keys() & {"filename", "filename*"}
    return (headers.get("content-type", ""), content) if names else None


def parameters(header: str) -> Mapping[str, str]:
    """What a header says behind its first semicolon, by names in lower case; of one that is too long nothing."""
    if len(header) > LONGEST:
        return {}
    found = dict[str, str]()
    for name, value in _PARAMETER.findall(header):
        text = _ESCAPED.sub(r"\1", value[1:-1]) if value.startswith('"') else value
        found.setdefault(name.lower(), text)
    return found


def _wrong(why: str) -> Problem:
    detail = f"the form cannot be read: {why}"
    return Problem("invalid", detail, errors=[{"pointer": "", "detail": detail}])
