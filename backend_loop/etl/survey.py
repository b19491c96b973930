"""How a file falls into chunks: gone through once, in blocks, behind any of which it can be gone on with."""

from collections.abc import Callable
from typing import IO, Final, NamedTuple

from pydantic import BaseModel

from backend_loop.etl.job import Job
from backend_loop.etl.records import Record, SourceError, head, splitter
from backend_loop.etl.rows import reading

BLOCK: Final = 1 << 20
"""Bytes that are read at a time."""

MOST: Final = 200
"""Chunks of a file: each is a child mission in each stage, and all of them stand in the document of the run."""

LARGEST: Final = 8 << 20
"""Bytes of a chunk, which are in memory together; more where a file has too many of them."""


class Piece(NamedTuple):
    """A chunk of the file: its bytes, the line that it begins with, and how many records it has."""

    start: int
    end: int
    line: int
    rows: int


class Survey(BaseModel):
    """How far the survey is, and what it has found; lives in the mission's context.

    Attributes:
        stamp: by which the file is known again.
        columns: of a csv, those of its header.
        pieces: the chunks.
        offset, line: where it goes on.
        doublings: how often two chunks were made one, since there were too many.
        ended: the end of the file was met.
    """

    stamp: str = ""
    columns: tuple[str, ...] = ()
    pieces: list[Piece] = []
    offset: int = 0
    line: int = 1
    doublings: int = 0
    ended: bool = False

    @property
    def rows(self) -> int:
        """Records that were found."""
        return sum(piece.rows for piece in self.pieces)

    def carry_on(self, stream: IO[bytes], job: Job, kept: Callable[[], object], block_size: int = BLOCK) -> None:
        """Go through the file, from where it was left.

        Args:
            stream: the file.
            job: says what it is.
            kept: called behind each block; what it raises leaves the survey so far.
            block_size: bytes that are read at a time.

        Raises:
            SourceError: it is no such file, or has not the fields.
        """
        split, rest = splitter(job.form, job.delimiter), b""
        if not self.offset:
            begins = head(job.form, job.delimiter, stream.read(BLOCK))
            reading(job, begins.columns)
            self.offset, self.line, self.columns = begins.offset, begins.line, begins.columns
        stream.seek(self.offset)
        while not self.ended:
            block = stream.read(block_size)
            data = rest + block
            found = split(data, self.line, not block)
            for record in found.records:
                self._add(job, record)
            rest = data[found.used :]
            self.offset, self.line = self.offset + found.used, found.line
            if job.form == "json":
                self._close(found.closed, rest + (stream.read(BLOCK) if found.closed else b""), last=not block)
            else:
                self.ended = not block
            kept()

    def _add(self, job: Job, record: Record) -> None:
        start, end = self.offset + record.start, self.offset + record.end
        last = self.pieces[-1] if self.pieces else None
        times = 1 << self.doublings
        if last is None or last.rows >= job.chunk_rows * times or end - last.start > LARGEST * times:
            if len(self.pieces) == MOST:
                self._double()
                self._add(job, record)
                return
            self.pieces.append(Piece(start, end, record.line, 1))
        else:
            self.pieces[-1] = last._replace(end=end, rows=last.rows + 1)

    def _double(self) -> None:
        pairs = zip(self.pieces[::2], self.pieces[1::2], strict=True)
        self.pieces = [Piece(one.start, two.end, one.line, one.rows + two.rows) for one, two in pairs]
        self.doublings += 1

    def _close(self, closed: bool, behind: bytes, *, last: bool) -> None:
        if closed and behind.strip():
            raise SourceError(f"something follows the array's end in line {self.line}")
        if last and not closed:
            raise SourceError("the array that the file is has no end")
        self.ended = closed


def records(stream: IO[bytes], job: Job, piece: Piece) -> list[Record]:
    """The records of a chunk.

    Raises:
        SourceError: they are not as surveyed.
    """
    stream.seek(piece.start)
    data = stream.read(piece.end - piece.start)
    found = splitter(job.form, job.delimiter)(data, piece.line, True).records
    if len(found) != piece.rows:
        raise SourceError(f"from line {piece.line} on there are {len(found)} records, and there were {piece.rows}")
    return found
