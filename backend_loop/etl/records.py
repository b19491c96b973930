"""Where one record of a file ends and the next begins: bytes in, records out, however the bytes are cut. Pure.

A file is surveyed in blocks, and read again chunk by chunk. Both see the same records, since what is decided of one
depends on its own bytes alone: what comes before it does not count, and what comes behind it only says where it ends.
"""

import csv
import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from backend_loop.etl.job import Form

LONGEST: Final = 1 << 20
"""Bytes of one record."""

MOST_LINES: Final = 100
"""Lines that a record of a csv may have; a quote that is not closed by then is a mistake in its first line."""

BOM: Final = b"\xef\xbb\xbf"

_OPEN: Final = "unexpected end of data"
"""What Python's csv says where a quote is open at the end."""

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)
"""What a JSON text is cut at: a string, which may go on behind the data, or a sign of its structure."""


class SourceError(Exception):
    """The file is not what it is said to be; no other try will find it otherwise."""


class Record(NamedTuple):
    """One record.

    Attributes:
        line: number of its first line in the file, from 1.
        raw: its bytes, without the line's end.
        start: where it begins in the bytes that were split. end: where it is over, its separator included.
        fault: why it is none; None: it may be one.
    """

    line: int
    raw: bytes
    start: int
    end: int
    fault: str | None = None


class Split(NamedTuple):
    """Records, and where to go on.

    Attributes:
        records: all that are whole.
        used: bytes that belong to them, or to nothing.
        line: number of the line that the rest begins with.
        closed: of a json: its last bracket was met.
    """

    records: list[Record]
    used: int
    line: int
    closed: bool = False


class Head(NamedTuple):
    """What a file begins with.

    Attributes:
        offset, line: where its first record begins.
        columns: of a csv, the names in its first line.
    """

    offset: int
    line: int
    columns: tuple[str, ...] = ()


Splitter = Callable[[bytes, int, bool], Split]
"""``(data, line, last) -> Split``: `data` begins with a record; `last`: there is nothing behind it."""


def splitter(form: Form, delimiter: str) -> Splitter:
    """What splits files of this form; it raises SourceError where a record has no end."""
    return _elements if form == "json" else partial(_lines, delimiter if form == "csv" else None)


def head(form: Form, delimiter: str, data: bytes) -> Head:
    """Where the records begin, by the first bytes of a file.

    Raises:
        SourceError: it is no such file.
    """
    start = len(BOM) if data.startswith(BOM) else 0
    if form == "jsonl":
        return Head(start, 1)
    if not data[start:].strip():
        raise SourceError(f"the file {'is no JSON array' if form == 'json' else 'has no header'}: it is empty")
    if form == "json":
        if (bracket := re.compile(rb"\s*\[").match(data, start)) is None:
            raise SourceError("the file is no JSON array: for an object a line say jsonl")
        return Head(bracket.end(), 1 + data.count(b"\n", 0, bracket.end()))
    found = _lines(delimiter, data[start:], 1, True)
    if not found.records or found.records[0].fault is not None:
        raise SourceError("the file has no header")
    first = found.records[0]
    try:
        columns = cells(first.raw.decode(), delimiter)
    except UnicodeDecodeError as error:
        raise SourceError("the header cannot be read: it is no UTF-8, so save the file as such") from error
    except csv.Error as error:
        if b"\r" in first.raw:
            raise SourceError(
                "its lines end with a carriage return alone: save it with another end of lines"
            ) from error
        raise SourceError(f"the header cannot be read: {error}") from error
    return Head(start + first.end, 1 + data.count(b"\n", 0, start + first.end), tuple(map(str.strip, columns)))


def cells(text: str, delimiter: str) -> list[str]:
    """The cells of one record of a csv; raises csv.Error."""
    return next(csv.reader((text,), delimiter=delimiter, strict=True))


def _lines(delimiter: str | None, data: bytes, line: int, last: bool) -> Split:
    records, at = list[Record](), 0
    while at < len(data) and (ends := _record(delimiter, data, at, line, last=last)) is not None:
        end, fault = ends
        raw = data[at:end].rstrip(b"\r\n")
        if raw.strip():
            records.append(Record(line, raw, at, end, fault))
        line += data.count(b"\n", at, end)
        at = end
    return Split(records, at, line)


def _record(delimiter: str | None, data: bytes, at: int, line: int, *, last: bool) -> tuple[int, str | None] | None:
    """Where the record ends that begins there, and what is wrong with it; None: it goes on behind the data."""
    first = _line_end(data, at, line, last=last)
    if first is None or delimiter is None or data.find(b'"', at, first) < 0:
        return None if first is None else (first, None)
    end = first
    for _ in range(MOST_LINES):
        said = _said(data[at:end], delimiter)
        if said is None or (said != _OPEN and end == first):
            return end, None  # what is wrong within one line, whoever reads its cells will say
        if said != _OPEN or end - at > LONGEST:
            break
        if (further := _line_end(data, end, line, last=last)) is None:
            return None
        end = further
    return first, "a quote is not closed"  # so the lines behind it are records of their own


def _line_end(data: bytes, at: int, line: int, *, last: bool) -> int | None:
    end = data.find(b"\n", at) + 1 or (len(data) if last else None)
    if (len(data) if end is None else end) - at > LONGEST:
        raise SourceError(f"line {line} is longer than {LONGEST} bytes: is it such a file at all?")
    return end


def _said(raw: bytes, delimiter: str) -> str | None:
    """What is wrong with a record of a csv, byte by byte: its signs are never a part of other characters."""
    try:
        cells(raw.decode("latin-1"), delimiter)
    except csv.Error as error:
        return str(error)
    return None


def _elements(data: bytes, line: int, last: bool) -> Split:
    records, at, depth, closed = list[Record](), 0, 0, False
    for token in _TOKEN.finditer(data):
        sign = data[token.start()]
        if sign in b"[{":
            depth += 1
        elif depth and sign in b"]}":
            depth -= 1
        elif not depth and sign != ord('"'):
            closed = sign != ord(",")
            line, at = _element(records, data, (at, token.start(), token.end()), line)
            if closed:
                break
    if last and not closed:
        line, at = _element(records, data, (at, len(data), len(data)), line)
    if len(data) - at > LONGEST and not closed:
        begins = line + data.count(b"\n", at, len(data) - len(data[at:].lstrip()))
        raise SourceError(f"what begins in line {begins} is longer than {LONGEST} bytes, or its brackets do not match")
    return Split(records, at, line, closed)


def _element(records: list[Record], data: bytes, where: tuple[int, int, int], line: int) -> tuple[int, int]:
    """Take an element in, if there is one; the line and the place behind it."""
    start, end, after = where
    raw = data[start:end]
    if text := raw.strip():
        blank = len(raw) - len(raw.lstrip())
        records.append(Record(line + raw.count(b"\n", 0, blank), text, start + blank, after))
    return line + data.count(b"\n", start, after), after
