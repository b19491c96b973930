"""Rows as the bytes of a file. Pure: what is written before a row does not matter but for whether there is any."""

import base64
import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol

from pydantic_core import to_json

Form = Literal["csv", "json", "jsonl"]
Row = Sequence[Any]


class Format(Protocol):
    """How a file of a form begins, goes on and ends. Bytes of a row are told as base64, but for those of text."""

    def head(self, columns: Sequence[str]) -> bytes:
        """Before the first row."""

    def rows(self, columns: Sequence[str], rows: Sequence[Row], *, first: bool) -> bytes:
        """Some rows; `first`: none was written before."""

    def tail(self) -> bytes:
        """Behind the last row."""


class Csv:
    """RFC 4180, UTF-8, with a header; what is NULL is empty.

    Every cell is as it is in the database, so that what is read back is what was there: also one that begins with
    ``= + - @``, which a spreadsheet takes for a formula. Whoever opens the file there imports its columns as text.
    """

    def head(self, columns: Sequence[str]) -> bytes:
        """The names of the columns."""
        return self.rows(columns, [columns], first=True)

    def rows(self, columns: Sequence[str], rows: Sequence[Row], *, first: bool) -> bytes:  # noqa: ARG002  see `Format`
        """A line a row; more, where there are lines in a text."""
        lines = io.StringIO()
        csv.writer(lines).writerows([_told(value) for value in row] for row in rows)
        return lines.getvalue().encode()

    def tail(self) -> bytes:
        """Nothing."""
        return b""


class JsonLines:
    """An object a line."""

    def head(self, columns: Sequence[str]) -> bytes:  # noqa: ARG002  see `Format`
        """Nothing."""
        return b""

    def rows(self, columns: Sequence[str], rows: Sequence[Row], *, first: bool) -> bytes:  # noqa: ARG002  see `Format`
        """Each by its own."""
        return b"".join(_object(columns, row) + b"\n" for row in rows)

    def tail(self) -> bytes:
        """Nothing."""
        return b""


class Json:
    """One array, an object a line."""

    def head(self, columns: Sequence[str]) -> bytes:  # noqa: ARG002  see `Format`
        """It opens."""
        return b"["

    def rows(self, columns: Sequence[str], rows: Sequence[Row], *, first: bool) -> bytes:
        """Each with what parts it from the one before."""
        if not rows:
            return b""
        return (b"\n" if first else b",\n") + b",\n".join(_object(columns, row) for row in rows)

    def tail(self) -> bytes:
        """It closes."""
        return b"\n]\n"


FORMATS: Final[Mapping[Form, Format]] = {"csv": Csv(), "json": Json(), "jsonl": JsonLines()}


def _told(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _object(columns: Sequence[str], row: Row) -> bytes:
    return to_json(dict(zip(columns, map(_told, row), strict=True)), inf_nan_mode="null")
