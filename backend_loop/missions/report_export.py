"""`report.export`: rows of a table or a view, as a file to download.

The rows are read page by page, in the order of their numbers, and each page ends with a checkpoint: so far the file is
right, and behind this row it goes on. So whoever takes over after a kill goes on there, and what comes out is the same
to the last byte. Rows that are added meanwhile are left out; those that are changed meanwhile are told as they are when
their page is read. A view, or a table without row numbers, is read in one go, and anew where that was broken off. So is
everything where tables are altered meanwhile, or `VACUUM` numbers their rows anew.

    dualloop send --type report.export --payload '{"table": "people", "format": "csv"}' --wait
    dualloop missions download ID
"""

import hashlib
import os
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import IO, Annotated, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from backend_loop.database import DatabaseUrlError, NoDatabaseError, connect, until_free
from backend_loop.files import File, LostPartError
from backend_loop.mission import Mission, state
from backend_loop.outcomes import Go, Outcome
from backend_loop.report.formats import FORMATS, Form, Format
from backend_loop.report.query import Condition, Name, NoTableError, Query, Table, folded, look, schema_version
from backend_loop.step_tools import StepTools
from shared.files import NAME
from shared.status import Priority

PAGE: Final = 5_000
"""Rows between two checkpoints."""
AT_ONCE: Final = 50
"""Rows that are in memory, a few times over: they may be large."""
STEP_S: Final = 600.0
"""What a page may take; or all of it, where there are no pages."""


class ReportExport(Mission):
    """Write the rows of a table or view of the database into a file that can be downloaded."""

    type = "report.export"
    deadline_s = 86_400.0
    priority = Priority.BULK
    permanent = (NoDatabaseError, DatabaseUrlError, NoTableError)
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "COUNTING": {"done": "EXPORTING"},
        "EXPORTING": {"done": "SUCCEEDED", "changed": "COUNTING"},
    }

    class Payload(BaseModel):
        """What is exported, and how the file is called."""

        model_config = ConfigDict(extra="forbid")

        table: Name = Field(description="table or view of the database", examples=["people"])
        columns: list[Name] | None = Field(
            None, min_length=1, max_length=500, description="in this order; default: all"
        )
        where: list[Condition] = Field([], max_length=20, description="all of them hold for each row")
        format: Form = "csv"
        name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")] | None = Field(
            None, description="of the file; default: report, with the format's suffix"
        )

        @field_validator("columns")
        @classmethod
        def _each_once(cls, columns: list[str] | None) -> list[str] | None:
            lower = [folded(column) for column in columns or ()]
            if doubled := next((one for one in lower if lower.count(one) > 1), None):
                raise ValueError(f"the column {doubled!r} is there twice")
            return columns

        @property
        def file(self) -> str:
            """The file's name."""
            return self.name or f"report.{self.format}"

    class Context(BaseModel):
        """How far it is: what of the file is right, and the number of the last row in it."""

        schema_version: int = 0
        columns: list[str] = []
        rowid: str | None = None
        last: int | None = None
        total: int = 0
        rows: int = 0
        behind: int | None = None
        written: int = 0

    @state("COUNTING", timeout_s=STEP_S, runs="process")
    def count(self, tools: StepTools[Payload, Context]) -> Outcome:
        """Which columns there are, and how many rows; those that come later are left out."""
        payload, context = tools.payload, tools.context
        context.rows, context.behind, context.written = 0, None, 0
        try:
            with closing(_open(tools)) as db:
                db.execute("BEGIN")  # all that is asked is of one moment
                context.schema_version = schema_version(db)
                table = look(db, payload.table, payload.columns, [one.column for one in payload.where])
                query = Query(table, payload.where)
                context.columns, context.rowid = list(table.columns), table.rowid
                context.last = query.last(db) if table.rowid is not None else None
                context.total = query.count(db, context.last)
        except sqlite3.OperationalError as error:
            return until_free(tools, error)
        tools.progress(0, context.total)
        return Go("done")

    @state("EXPORTING", timeout_s=STEP_S, runs="process")
    def export(self, tools: StepTools[Payload, Context]) -> Outcome:
        """Write the file, from where it is right, and give it out."""
        file = tools.file(tools.payload.file)
        try:
            with closing(_open(tools)) as db, _resumed(file, tools.context) as out:
                _Export(tools, db, out).write()
        except _ChangedError:
            return Go("changed")
        except sqlite3.OperationalError as error:
            return until_free(tools, error, tools.context.rows, tools.context.total)
        with file.path.open("rb") as whole:
            digest = hashlib.file_digest(whole, "sha256").hexdigest()
            size = os.fstat(whole.fileno()).st_size
        context, payload = tools.context, tools.payload
        said = {"table": payload.table, "format": payload.format, "name": payload.file}
        return Go(
            "done", result={**said, "rows": context.rows, "bytes": size, "sha256": digest, "file": file.publish()}
        )


def _open(tools: StepTools[ReportExport.Payload, ReportExport.Context]) -> sqlite3.Connection:
    db = connect(tools.database, read_only=True)
    db.text_factory = _text
    return db


def _text(raw: bytes) -> str:
    """SQLite keeps whatever it is given as text."""
    return raw.decode(errors="replace")


def _resumed(file: File, context: ReportExport.Context) -> IO[bytes]:
    """Open behind what is right; where that is lost, or there are no row numbers to go on from, at the beginning."""
    if context.rowid is not None:
        try:
            return file.resume(context.written)
        except LostPartError:  # on the disk of another machine
            pass
    context.rows, context.behind, context.written = 0, None, 0
    return file.resume(0)


class _ChangedError(Exception):
    """The rows are not what was counted: what is written of them may not be what is left."""


class _Export:
    """One run of the handler."""

    def __init__(
        self,
        tools: StepTools[ReportExport.Payload, ReportExport.Context],
        db: sqlite3.Connection,
        out: IO[bytes],
    ) -> None:
        self._tools, self._db, self._out, self._context = tools, db, out, tools.context
        self._format: Format = FORMATS[tools.payload.format]
        table = Table(tools.payload.table, tuple(tools.context.columns), tools.context.rowid)
        self._query = Query(table, tools.payload.where)
        self._rows = tools.context.rows

    def write(self) -> None:
        """All that is left. The context changes with the checkpoints only, so that a try that fails leaves it right."""
        context = self._context
        if not context.written:
            self._out.write(self._format.head(context.columns))
        if context.rowid is None:
            self._page(None, None)
        else:
            behind = context.behind
            while (read := self._page(behind, PAGE)) is not None:
                behind = read
                self._keep(behind)
        self._out.write(self._format.tail())
        self._out.flush()
        context.rows = self._rows

    def _page(self, behind: int | None, limit: int | None) -> int | None:
        """Write so many rows; the number of the last one, None: there are no more, or they have none."""
        self._db.execute("BEGIN")  # so that the page is of the moment that is asked about
        if schema_version(self._db) != self._context.schema_version:
            raise _ChangedError
        read = self._query.rows(self._db, behind, self._context.last, limit)
        last = None
        while some := list(islice(read, AT_ONCE)):
            self._some([values for _, values in some])
            last = some[-1][0]
        self._db.execute("COMMIT")
        return last

    def _some(self, rows: Sequence[Sequence[object]]) -> None:
        self._tools.check()
        self._out.write(self._format.rows(self._context.columns, rows, first=not self._rows))
        self._rows += len(rows)
        self._tools.progress(self._rows, max(self._rows, self._context.total))

    def _keep(self, behind: int) -> None:
        self._out.flush()
        os.fsync(self._out.fileno())
        context = self._context
        context.rows, context.behind, context.written = self._rows, behind, self._out.tell()
        self._tools.checkpoint()
