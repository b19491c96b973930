"""Which rows of which table: a filter as data, and the statements that read it page by page. Nobody's SQL goes in."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt

from backend_loop.database import quoted

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]
Integer = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
Scalar = StrictBool | Integer | StrictFloat | Annotated[str, Field(max_length=10_000)]

_SMALL: Final = str.maketrans(ascii_uppercase, ascii_lowercase)

MOST_COLUMNS: Final = 1_999
"""SQLite reads 2,000 at once, and the row's number is one of them."""

ROWIDS: Final = ("rowid", "_rowid_", "oid")
"""What SQLite calls the number of a row, unless a column is called so."""


class NoTableError(Exception):
    """There is no such table or column; the sentence says what there is."""


class Compared(BaseModel):
    """Rows whose column stands so to the value."""

    model_config = ConfigDict(extra="forbid")

    column: Name
    op: Literal["=", "!=", "<", "<=", ">", ">="]
    value: Scalar


class Like(BaseModel):
    """Rows whose column is like this, where ``%`` stands for any text and ``_`` for any character."""

    model_config = ConfigDict(extra="forbid")

    column: Name
    op: Literal["like"]
    value: str = Field(max_length=200)


class OneOf(BaseModel):
    """Rows whose column has one of the values."""

    model_config = ConfigDict(extra="forbid")

    column: Name
    op: Literal["in"]
    value: list[Scalar] = Field(min_length=1, max_length=500)


class Nullness(BaseModel):
    """Rows whose column is empty, or is not."""

    model_config = ConfigDict(extra="forbid")

    column: Name
    op: Literal["is null", "is not null"]


Condition = Annotated[Compared | Like | OneOf | Nullness, Field(discriminator="op")]


@dataclass(frozen=True, slots=True)
class Table:
    """What is read, as the database has it.

    Args:
        name: of the table or view.
        columns: that are read, in this order.
        rowid: the name by which rows are numbered; None: they are not, so that reading begins anew where it was broken
            off: a view, or a table ``WITHOUT ROWID``.
    """

    name: str
    columns: tuple[str, ...]
    rowid: str | None


def look(db: sqlite3.Connection, name: str, wanted: Sequence[str] | None, filtered: Sequence[str]) -> Table:
    """The table or view of this name.

    Args:
        db: the database.
        name: small or capital letters are all the same, as far as they are to SQLite.
        wanted: columns to be read; None: all of them.
        filtered: columns of conditions.

    Raises:
        NoTableError: there is no such table or column, or it has too many.
        sqlite3.Error: the database cannot be read.
    """
    schema = (
        "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    )
    there = dict(db.execute(schema).fetchall())
    if (found := {folded(one): one for one in there}.get(folded(name))) is None:
        raise NoTableError(f"there is no table {name!r}: {_some(there)}")
    # not table_info, which leaves generated columns out; 1 are hidden ones, of virtual tables
    columns = [
        one for one, hidden in db.execute("SELECT name, hidden FROM pragma_table_xinfo(?)", (found,)) if hidden != 1
    ]
    known = {folded(one): one for one in columns}
    for column in (*(wanted or ()), *filtered):
        if folded(column) not in known:
            raise NoTableError(f"{found} has no column {column!r}: {_some(columns)}")
    read = columns if wanted is None else [known[folded(column)] for column in wanted]
    if len(read) > MOST_COLUMNS:
        raise NoTableError(f"{found} has {len(read)} columns, more than can be read at once: name what is wanted")
    return Table(found, tuple(read), _rowid(db, found, known) if there[found] == "table" else None)


def folded(name: str) -> str:
    """Names that are one to SQLite: it takes small and capital letters of ASCII as the same, and those only."""
    return name.translate(_SMALL)


def _rowid(db: sqlite3.Connection, table: str, columns: dict[str, str]) -> str | None:
    name = next((one for one in ROWIDS if one not in columns), None)
    if name is None:
        return None
    try:
        db.execute(f"SELECT {name} FROM {quoted(table)} LIMIT 0")  # noqa: S608  names of the schema, quoted
    except sqlite3.OperationalError:
        return None
    return name


def _some(names: Sequence[str] | dict[str, str]) -> str:
    listed = ", ".join(sorted(names)[:20])
    return f"there are {listed}{', …' if len(names) > 20 else ''}" if listed else "there are none"


def schema_version(db: sqlite3.Connection) -> int:
    """Another one whenever a table was made or altered, or rows were numbered anew by ``VACUUM``."""
    [[found]] = db.execute("PRAGMA schema_version")
    return int(found)


class Query:
    """Statements on a table, and their parameters."""

    def __init__(self, table: Table, where: Sequence[Condition]) -> None:
        """Ready at once."""
        self._table = table
        self._terms, self._given = [], list[Any]()
        for condition in where:
            term, given = _term(condition, self._column(condition.column))
            self._terms.append(term)
            self._given += given

    def last(self, db: sqlite3.Connection) -> int:
        """The number of the last row there is; rows that come after it are left out. 0: there is none."""
        [[found]] = db.execute(f"SELECT max({self._table.rowid}) FROM {quoted(self._table.name)}")  # noqa: S608  as above
        return int(found or 0)

    def count(self, db: sqlite3.Connection, last: int | None) -> int:
        """How many rows there are to be read, up to this one."""
        [[found]] = db.execute(f"SELECT count(*) {self._from(None, last)}", self._parameters(None, last))
        return int(found)

    def rows(
        self, db: sqlite3.Connection, behind: int | None, last: int | None, limit: int | None
    ) -> Iterator[tuple[int | None, tuple[Any, ...]]]:
        """Each row with its number, in that order: so many of those behind the first number, up to the last one."""
        rowid = self._table.rowid
        columns = ", ".join(map(self._column, self._table.columns))
        statement = f"SELECT {rowid or 'NULL'}, {columns} {self._from(behind, last)}"
        if rowid is not None:
            statement += f" ORDER BY {rowid}"
        if limit is not None:
            statement += f" LIMIT {limit:d}"
        for number, *values in db.execute(statement, self._parameters(behind, last)):
            yield number, tuple(values)

    def _column(self, name: str) -> str:
        """With its table: a name alone that is no column (any more) is a text to SQLite, and no error."""
        return f"{quoted(self._table.name)}.{quoted(name)}"

    def _from(self, behind: int | None, last: int | None) -> str:
        terms = list(self._terms)
        terms += [f"{self._table.rowid} > ?"] if behind is not None else []
        terms += [f"{self._table.rowid} <= ?"] if last is not None else []
        return f"FROM {quoted(self._table.name)}" + (f" WHERE {' AND '.join(terms)}" if terms else "")

    def _parameters(self, behind: int | None, last: int | None) -> list[Any]:
        return [*self._given, *(bound for bound in (behind, last) if bound is not None)]


def _term(condition: Condition, column: str) -> tuple[str, list[Any]]:
    match condition:
        case Compared() | Like():
            return f"{column} {condition.op.upper()} ?", [condition.value]
        case OneOf():
            return f"{column} IN ({', '.join('?' * len(condition.value))})", list(condition.value)
        case Nullness():
            return f"{column} {condition.op.upper()}", []
