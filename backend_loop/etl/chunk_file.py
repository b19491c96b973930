"""What one stage hands to the next: the rows of a chunk in a file, each with its line and its raw text."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from backend_loop.etl.job import Job
from backend_loop.etl.records import Record
from backend_loop.etl.rows import Reading, clean, told, transform
from backend_loop.etl.rules import RowError
from shared.shortened import shortened

LONGEST_RAW: Final = 2_000
"""Characters of a record's text that a reject is told with."""


class Item(NamedTuple):
    """One row, or one that was rejected on the way.

    Attributes:
        line: where it begins in the source.
        raw: the record as the source has it; a long one is cut.
        row: its values by name; None: it is rejected.
        reason: why it is.
    """

    line: int
    raw: str
    row: Mapping[str, Any] | None
    reason: str | None = None

    def rejected(self, reason: str) -> "Item":
        """The same, to go no further."""
        return Item(self.line, self.raw, None, reason)

    def told(self) -> bytes:
        """As the report of rejects has it."""
        return to_json({"line": self.line, "reason": self.reason, "raw": self.raw}) + b"\n"


class Tally(NamedTuple):
    """How many of a chunk are good, and how many are rejected."""

    rows: int
    rejected: int


def extracted(read_fields: Reading, records: Iterable[Record]) -> Iterator[Item]:
    """The fields of each record."""
    for record in records:
        item = Item(record.line, _text(record.raw), None)
        try:
            yield item._replace(row=read_fields(record))
        except RowError as error:
            yield item.rejected(str(error))


def transformed(job: Job, items: Iterable[Item]) -> Iterator[Item]:
    """The columns of each row; of rows with the same key the first one alone."""
    seen = dict[tuple[object, ...], int]()
    for item in items:
        if item.row is None:
            yield item
            continue
        try:
            row = transform(job, clean(job, item.row))
        except RowError as error:
            yield item.rejected(str(error))
            continue
        key = tuple(row[column] for column in job.key)
        if key and seen.setdefault(key, item.line) != item.line:
            yield item.rejected(f"duplicate: {told(job, row)} is in line {seen[key]} already")
        else:
            yield item._replace(row=row)


def _text(raw: bytes) -> str:
    """A record as text, whatever is in it."""
    return shortened(raw.decode(errors="replace"), LONGEST_RAW)


def write(stream: IO[bytes], items: Iterable[Item]) -> Tally:
    """Write a chunk."""
    rows = rejected = 0
    for item in items:
        stream.write(to_json(item) + b"\n")
        if item.row is None:
            rejected += 1
        else:
            rows += 1
    return Tally(rows, rejected)


def read(path: Path) -> Iterator[Item]:
    """The chunk that lies there."""
    with path.open("rb") as stream:
        for line in stream:
            yield Item(*from_json(line))
