"""SQLite files that one process has to itself, as what demonstrates the outside world keeps its books in."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path


class FileTakenError(Exception):
    """Another process has the file open."""


def open_alone(path: Path, schema: str) -> sqlite3.Connection:
    """Open a file or make it, with its folder; for one thread.

    Raises:
        FileTakenError: another process holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        # with WAL and NORMAL a killed process loses nothing; EXCLUSIVE keeps a second one out
        db.executescript("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;")
        db.executescript(schema)
    except sqlite3.OperationalError as fault:
        db.close()
        if "locked" not in str(fault):
            raise
        raise FileTakenError(str(path)) from fault
    return db


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All that is written within, or nothing if it raises."""
    db.execute("BEGIN")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
