"""The one file of a ``multipart/form-data`` body, as browsers and ``curl -F`` send it (RFC 7578). Pure."""

from email.message import Message
from typing import Final

from shared.errors import Problem

OVERHEAD: Final = 16 * 1024
"""Bytes that boundaries, headers and small fields may have, besides the file."""


def is_form(content_type: str) -> bool:
    """Whether a body of this type has parts."""
    return content_type.partition(";")[0].strip().lower() == "multipart/form-data"


def file_of(content_type: str, body: bytes) -> tuple[str, bytes]:
    """Content type and bytes of the one part that is a file; fields without a file name are left alone.

    Raises:
        Problem: 422, the body is no such form, or has not exactly one file.
    """
    boundary = _header(content_type).get_param("boundary")
    if not isinstance(boundary, str) or not boundary:
        raise _wrong("its content-type has no boundary")
    # the first boundary has no line break before it
    preamble, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode("latin-1", "replace"))
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
    headers = Message()
    for line in head.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip()] = value.strip()
    return (headers.get("content-type", ""), content) if headers.get_filename() is not None else None


def _header(content_type: str) -> Message:
    message = Message()
    message["content-type"] = content_type
    return message


def _wrong(why: str) -> Problem:
    detail = f"the form cannot be read: {why}"
    return Problem("invalid", detail, errors=[{"pointer": "", "detail": detail}])
