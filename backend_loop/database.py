"""The database that missions load into and export from: one SQLite file, named by ``DUALLOOP_DATABASE``.

A handler gets its URL as `tools.database`, and opens it where it may block::

    @state("LOADING", runs="thread")
    def load(self, tools: StepTools[Payload, Context]) -> Outcome:
        with closing(connect(tools.database)) as db:
            db.execute("INSERT INTO readings VALUES (?, ?)", (1, 2))
"""

import sqlite3
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote

from backend_loop.outcomes import Sleep

SCHEME: Final = "sqlite:///"
BUSY_S: Final = 10.0
"""How long a call waits for another process that writes; what to make of longer ones `until_free` says."""

LOCKED_S: Final = 10.0
"""How long a mission leaves a database alone that another process keeps locked."""

_LOCKED: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class DatabaseUrlError(ValueError):
    """The URL names no SQLite file; the sentence says what to write instead."""


class NoDatabaseError(Exception):
    """It is to be read only, and there is no such file."""


def path_of(url: str) -> Path:
    """The file of a URL: ``sqlite:///here.sqlite`` lies in the working folder, ``sqlite:////data/it.sqlite`` does not.

    Raises:
        DatabaseUrlError: it is another kind of URL.
    """
    name = url.removeprefix(SCHEME)
    if name == url or not name or "?" in name or "\0" in name:
        raise DatabaseUrlError(
            f"{url or 'nothing'!r} is no database that is spoken here: set DUALLOOP_DATABASE to a SQLite file, "
            "such as sqlite:////var/lib/data.sqlite"
        )
    return Path(name)


def connect(url: str, *, read_only: bool = False) -> sqlite3.Connection:
    """Open the file, or make it with its folder; for the thread that asks. Close it: the ``with`` of sqlite3 does not.

    It commits by itself: begin with ``BEGIN IMMEDIATE`` what is to be written whole or not at all. Readers and one
    writer do not hinder each other (WAL); a second writer waits for `BUSY_S`.

    Args:
        url: as `path_of`.
        read_only: nothing can be written by it.

    Raises:
        DatabaseUrlError: it is another kind of URL.
        NoDatabaseError: it is to be read only, and there is no such file.
        sqlite3.Error: it cannot be opened, or is no database.
    """
    path = path_of(url).absolute()
    if read_only:
        if not path.is_file():
            raise NoDatabaseError(f"there is no database {path} yet: load something into it first")
        return sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=BUSY_S, isolation_level=None)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode=WAL")
    except BaseException:
        db.close()
        raise
    return db


class Telling(Protocol):
    """Tools of a handler, of which it is wanted that it can say how far it is."""

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """See `Toolbox.progress`."""


def until_free(tools: Telling, error: sqlite3.OperationalError, done: float = 0, total: float | None = None) -> Sleep:
    """What a handler answers where another process keeps the database locked, for a backup or a long load.

    It waits for it, to its deadline if need be, and uses up no try. Its transaction is to be rolled back already.

    Args:
        tools: of the handler; they are told why it waits.
        error: as sqlite3 has raised it; raised again, if it is any other.
        done: how far it is.
        total: in all.
    """
    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _LOCKED:
        raise error
    tools.progress(done, total, f"the database is locked by another process: it is tried again every {LOCKED_S:g} s")
    return Sleep(LOCKED_S)


def quoted(name: str) -> str:
    """A name of a table or column as SQL has it, whatever stands in it.

    Raises:
        ValueError: no name can be so.
    """
    if not name or "\0" in name:
        raise ValueError(f"{name!r} cannot be the name of a table or a column")
    return '"' + name.replace('"', '""') + '"'
