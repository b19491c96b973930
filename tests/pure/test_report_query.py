"""What a filter finds, on a real SQLite; and that nobody's words become its statements."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from backend_loop.report.query import Condition, NoTableError, Query, Table, look

ONE = TypeAdapter[Any](Condition)
ROWS = [(1, "Ada", 1.5, None), (2, "Bo", 2.5, "x"), (3, "cé;--", None, "y"), (5, "Ada", -1.0, None)]


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, size REAL, note TEXT)")
    db.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", ROWS)
    yield db
    db.close()


def found(db: sqlite3.Connection, *where: dict[str, Any], table: str = "people") -> list[Any]:
    conditions = [ONE.validate_python(one) for one in where]
    seen = look(db, table, None, [one.column for one in conditions])
    query = Query(seen, conditions)
    last = query.last(db) if seen.rowid else None
    rows = [values[0] for _, values in query.rows(db, None, last, None)]
    assert query.count(db, last) == len(rows)
    return rows


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ([], [1, 2, 3, 5]),
        ([{"column": "name", "op": "=", "value": "Ada"}], [1, 5]),
        ([{"column": "NAME", "op": "!=", "value": "Ada"}], [2, 3]),
        ([{"column": "size", "op": "<", "value": 2}], [1, 5]),
        ([{"column": "size", "op": ">=", "value": 1.5}], [1, 2]),
        ([{"column": "id", "op": "<=", "value": 2}, {"column": "size", "op": ">", "value": 2}], [2]),
        ([{"column": "name", "op": "like", "value": "a%"}], [1, 5]),
        ([{"column": "id", "op": "in", "value": [5, 2, 99]}], [2, 5]),
        ([{"column": "note", "op": "is null"}], [1, 5]),
        ([{"column": "note", "op": "is not null"}], [2, 3]),
        ([{"column": "name", "op": "=", "value": "cé;--"}], [3]),
        ([{"column": "id", "op": "=", "value": True}], [1]),
    ],
)
def test_a_filter_finds_what_it_says(db: sqlite3.Connection, where: list[dict[str, Any]], ids: list[int]) -> None:
    assert found(db, *where) == ids


@pytest.mark.parametrize(
    "wrong",
    [
        {"column": "name", "op": "=", "value": None},
        {"column": "name", "op": "glob", "value": "*"},
        {"column": "name", "op": "= 1 OR 1 =", "value": 1},
        {"column": "name", "op": "in", "value": []},
        {"column": "name", "op": "in", "value": "Ada"},
        {"column": "name", "op": "is null", "value": 1},
        {"column": "name", "op": "=", "value": {"sql": "1"}},
        {"column": "", "op": "is null"},
        {"column": "a\0b", "op": "is null"},
        {"column": "name", "op": "=", "value": "x", "or": 1},
    ],
)
def test_what_is_no_condition_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ONE.validate_python(wrong)


@pytest.mark.parametrize(
    "name", ['"', "'", "people; DROP TABLE people", 'name" OR 1=1 --', "name`", "[name]", "rowid", "nope"]
)
def test_a_column_is_one_of_the_table_or_there_is_none(db: sqlite3.Connection, name: str) -> None:
    with pytest.raises(NoTableError, match="there are id, name, note, size"):
        look(db, "people", [name], [])
    with pytest.raises(NoTableError):
        look(db, "people", None, [name])
    assert found(db) == [1, 2, 3, 5]


@pytest.mark.parametrize("name", ["sqlite_schema", "sqlite_master", "people--", "main.people", "nobody", 'people"'])
def test_a_table_is_one_of_the_user_s_or_there_is_none(db: sqlite3.Connection, name: str) -> None:
    with pytest.raises(NoTableError, match="there are people"):
        look(db, name, None, [])


def test_names_may_be_as_odd_as_sqlite_allows(db: sqlite3.Connection) -> None:
    db.execute('CREATE TABLE "select ""from"" 表" ("a b" TEXT, "x""y" INT, "order" INT)')
    db.execute('INSERT INTO "select ""from"" 表" VALUES (?, ?, ?)', ("z", 7, 1))
    table = look(db, 'SELECT "from" 表', ['X"Y', "ORDER"], ["a b"])
    assert table.columns == ('x"y', "order")
    query = Query(table, [ONE.validate_python({"column": "a b", "op": "=", "value": "z"})])
    assert list(query.rows(db, None, query.last(db), 10)) == [(1, (7, 1))]


def test_pages_follow_each_other_without_gap_or_double(db: sqlite3.Connection) -> None:
    query = Query(look(db, "people", ["name"], []), [])
    last, behind, numbers = query.last(db), None, []
    db.execute("INSERT INTO people (id, name) VALUES (9, 'later')")
    while page := list(query.rows(db, behind, last, 2)):
        numbers.append([number for number, _ in page])
        behind = page[-1][0]
    assert numbers == [[1, 2], [3, 5]], "and what came later is left out"


def test_negative_numbers_and_empty_tables(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO people (id, name) VALUES (-7, 'below')")
    assert found(db) == [-7, 1, 2, 3, 5]
    db.execute("DELETE FROM people")
    assert found(db) == []


def test_a_row_s_number_is_found_whatever_columns_are_called(db: sqlite3.Connection) -> None:
    db.execute("CREATE TABLE a (rowid TEXT, n INT)")
    db.execute("CREATE TABLE b (rowid TEXT, _ROWID_ TEXT, oid TEXT)")
    db.execute("CREATE TABLE c (n INT PRIMARY KEY) WITHOUT ROWID")
    db.execute("CREATE VIEW d AS SELECT name FROM people")
    db.execute("CREATE TABLE e (n INT, twice INT GENERATED ALWAYS AS (2 * n))")
    assert look(db, "a", None, []) == Table("a", ("rowid", "n"), "_rowid_")
    assert [look(db, name, None, []).rowid for name in "bcd"] == [None, None, None]
    assert look(db, "E", None, []) == Table("e", ("n", "twice"), "rowid")
    assert found(db, table="d") == ["Ada", "Bo", "cé;--", "Ada"]


def test_letters_are_told_apart_where_sqlite_does(db: sqlite3.Connection) -> None:
    db.execute('CREATE TABLE "Ä" ("Ö" TEXT, "ö" TEXT)')
    db.execute('CREATE TABLE "ä" (other TEXT)')
    assert look(db, "Ä", ["Ö"], []).columns == ("Ö",)
    assert look(db, "ä", None, []).columns == ("other",)


def test_a_column_that_is_gone_is_an_error_and_no_text(db: sqlite3.Connection) -> None:
    table = look(db, "people", ["note"], ["note"])
    filtered = Query(Table("people", ("id",), "rowid"), [ONE.validate_python({"column": "note", "op": "is not null"})])
    db.execute("ALTER TABLE people DROP COLUMN note")
    for query in (Query(table, []), filtered):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            list(query.rows(db, None, None, None))


def test_a_table_of_more_columns_than_can_be_read_says_so(db: sqlite3.Connection) -> None:
    names = [f"c{n}" for n in range(2_000)]
    db.execute(f"CREATE TABLE wide ({', '.join(names)})")
    with pytest.raises(NoTableError, match="2000 columns"):
        look(db, "wide", None, [])
    assert look(db, "wide", names[:2], ["c1999"]).columns == ("c0", "c1")
