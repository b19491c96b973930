"""The table that is loaded: made if it is not there, and each chunk in one transaction that also says that it is in.

So a chunk that is loaded a second time, by a second try or by a worker that was taken for dead, counts once; and what
was rejected of it is known as surely as the rest is loaded.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from backend_loop.database import quoted
from backend_loop.etl.chunk_file import Item, Tally
from backend_loop.etl.job import Job
from backend_loop.etl.rows import told
from backend_loop.etl.rules import Kind, Scalar

CHUNKS: Final = """
CREATE TABLE IF NOT EXISTS dualloop_etl_chunks (
  load TEXT NOT NULL, chunk INTEGER NOT NULL, stamp TEXT NOT NULL, at REAL NOT NULL,
  rows INTEGER NOT NULL, rejected INTEGER NOT NULL, lines BLOB NOT NULL, PRIMARY KEY (load, chunk)
)"""

KEPT_S: Final = 90 * 86_400.0
"""How long it is known that a chunk is in: longer than a dead letter can be replayed."""

HOLDS: Final[dict[Kind, str]] = {
    "text": "TEXT",
    "integer": "INTEGER",
    "number": "REAL",
    "boolean": "INTEGER",
    "date": "TEXT",
}


class TableError(Exception):
    """The table cannot take these rows; no other try will find it otherwise."""


class Table:
    """The table of one job, as one load fills it.

    Args:
        db: where it is.
        job: says which, and how its columns are made.
        load: key of the effect: chunks that are in under it are not loaded again.
        stamp: of the source that the chunks are of.
    """

    def __init__(self, db: sqlite3.Connection, job: Job, load: str, stamp: str) -> None:
        """Nothing is asked yet."""
        self._db, self._job, self._load, self._stamp = db, job, load, stamp
        marks = ", ".join("?" * len(job.made))
        head = f"INSERT INTO {quoted(job.table)} ({_names(job.made)}) VALUES ({marks})"  # noqa: S608  names are quoted
        self._insert = f"{head} ON CONFLICT ({_names(job.key)}) DO NOTHING" if job.key else head

    def prepare(self) -> None:
        """Make what is missing, and see whether the rows will fit.

        Raises:
            TableError: they will not; or chunks of another file are in under this key.
        """
        db, job = self._db, self._job
        columns = ", ".join(f"{quoted(name)} {HOLDS[kind]}" for name, kind in job.kinds.items())
        unique = f", UNIQUE ({_names(job.key)})" if job.key else ""
        db.execute(CHUNKS)
        db.execute("DELETE FROM dualloop_etl_chunks WHERE at < ?", (time.time() - KEPT_S,))
        db.execute(f"CREATE TABLE IF NOT EXISTS {quoted(job.table)} ({columns}{unique})")
        other = "SELECT count(*) FROM dualloop_etl_chunks WHERE load = ? AND stamp != ?"
        if db.execute(other, (self._load, self._stamp)).fetchone()[0]:
            raise TableError(f"{job.source} has changed since a part of it was loaded: send it as a new command")
        try:
            db.execute(f"EXPLAIN {self._insert}", [None] * len(job.made))
        except sqlite3.OperationalError as error:
            raise TableError(f"the table {job.table} is there, and cannot take these rows: {error}") from error

    def known(self, chunk: int) -> Tally | None:
        """What became of a chunk that is in; None: it is not."""
        asked = "SELECT rows, rejected FROM dualloop_etl_chunks WHERE load = ? AND chunk = ?"
        found = self._db.execute(asked, (self._load, chunk)).fetchone()
        return None if found is None else Tally(*found)

    def fill(self, chunk: int, items: Iterable[Item], rows: int, check: Callable[[], object]) -> Tally:
        """Load a chunk, whole or not at all, with what is rejected of it.

        Args:
            chunk: which one.
            items: of the chunk, with those that are rejected already; not touched if it is in.
            rows: how many there are to be.
            check: called last thing before it is committed; what it raises undoes all of it.

        Raises:
            TableError: there are more of them, or less; or the table rolls back by itself.
        """
        with _transaction(self._db):
            if (before := self.known(chunk)) is not None:
                return before
            put, rejects = 0, list[bytes]()
            for item in items:
                reason = item.reason if item.row is None else self._put(item.line, item.row)
                if reason is None:
                    put += 1
                else:
                    rejects.append(item.rejected(reason).told())
            if put + len(rejects) != rows:
                raise TableError(f"{put + len(rejects)} rows have come to be loaded, and {rows} were surveyed")
            values = (self._load, chunk, self._stamp, time.time(), put, len(rejects), b"".join(rejects))
            self._db.execute("INSERT INTO dualloop_etl_chunks VALUES (?, ?, ?, ?, ?, ?, ?)", values)
            check()
        return Tally(put, len(rejects))

    def rejects(self, chunk: int) -> bytes:
        """The lines of the report that are about a chunk that is in."""
        asked = "SELECT lines FROM dualloop_etl_chunks WHERE load = ? AND chunk = ?"
        return bytes(self._db.execute(asked, (self._load, chunk)).fetchone()[0])

    def forget_rejects(self) -> None:
        """Once they are in the report."""
        self._db.execute("UPDATE dualloop_etl_chunks SET lines = x'' WHERE load = ?", (self._load,))

    def _put(self, line: int, row: Mapping[str, Scalar]) -> str | None:
        """Why the row is not in; None: it is.

        Raises:
            TableError: nor is any other one: the rest would be loaded without a transaction, and again by each try.
        """
        try:
            if self._db.execute(self._insert, [row[column] for column in self._job.made]).rowcount:
                return None
        except sqlite3.IntegrityError as error:
            if not self._db.in_transaction:
                what = f"{self._job.table} undoes all that was loaded with a row that it refuses, line {line}: {error}"
                raise TableError(what) from error
            return f"the table does not take it: {error}"
        return f"duplicate: {told(self._job, row)} is there already"


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(quoted, columns))


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:  # a table may have rolled back by itself
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
