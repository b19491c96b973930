"""A chunk is loaded whole or not at all, and once; and only files of the one folder are read."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Never

import pytest

from backend_loop.database import connect
from backend_loop.etl import source
from backend_loop.etl.chunk_file import Item
from backend_loop.etl.job import Job
from backend_loop.etl.records import SourceError
from backend_loop.etl.table import Table, TableError

JOB = Job.model_validate(
    {
        "source": "it.csv",
        "fields": [
            {"name": "id", "type": "integer"},
            {"name": "n", "type": "number"},
            {"name": "ok", "type": "boolean"},
        ],
        "table": "things",
        "key": ["id"],
    }
)


def item(id_: int, line: int = 2) -> Item:
    return Item(line, f"{id_},0.5,yes", {"id": id_, "n": 0.5, "ok": True})


def nobody() -> None:
    pass


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/it.sqlite"


@pytest.fixture
def db(url: str) -> Iterator[sqlite3.Connection]:
    with closing(connect(url)) as db:
        yield db


def prepared(db: sqlite3.Connection, job: Job = JOB, load: str = "m:1", stamp: str = "s") -> Table:
    table = Table(db, job, load, stamp)
    table.prepare()
    return table


def ids(db: sqlite3.Connection) -> list[int]:
    return [row[0] for row in db.execute("SELECT id FROM things ORDER BY rowid")]


def test_a_chunk_that_is_loaded_twice_counts_once(db: sqlite3.Connection) -> None:
    table, bad = prepared(db), Item(4, "x", None, "it is no csv")
    assert table.known(0) is None
    assert table.fill(0, [item(1), item(2), bad], 3, nobody) == (2, 1)
    assert table.fill(0, [item(3), item(4)], 2, nobody) == (2, 1)
    assert (ids(db), table.known(0), table.rejects(0)) == ([1, 2], (2, 1), bad.told())


def test_a_chunk_counts_once_without_a_key_too(db: sqlite3.Connection) -> None:
    table = prepared(db, JOB.model_copy(update={"key": []}))
    for _ in range(2):
        table.fill(0, [item(1), item(1)], 2, nobody)
    assert ids(db) == [1, 1]


def test_what_fails_before_the_commit_leaves_nothing(db: sqlite3.Connection) -> None:
    table = prepared(db)

    class Lost(BaseException):
        pass

    def lost() -> Never:
        raise Lost

    with pytest.raises(Lost):
        table.fill(0, [item(1)], 1, lost)
    assert (ids(db), table.known(0)) == ([], None)
    with pytest.raises(TableError, match="1 rows have come to be loaded, and 2 were surveyed"):
        table.fill(0, [item(1)], 2, nobody)
    assert table.fill(0, [item(1)], 1, nobody) == (1, 0)


def test_a_worker_that_was_taken_for_dead_comes_too_late(db: sqlite3.Connection, url: str) -> None:
    table = prepared(db)
    with closing(connect(url)) as other:
        assert Table(other, JOB, "m:1", "s").fill(0, [item(1)], 1, nobody) == (1, 0)
    assert table.fill(0, [item(1), item(2)], 2, nobody) == (1, 0)
    assert ids(db) == [1]


def test_a_key_that_is_there_already_is_a_reject(db: sqlite3.Connection) -> None:
    table = prepared(db)
    table.fill(0, [item(1)], 1, nobody)
    assert table.fill(1, [item(2), item(1, line=9)], 2, nobody) == (1, 1)
    assert table.rejects(1) == b'{"line":9,"reason":"duplicate: id 1 is there already","raw":"1,0.5,yes"}\n'
    table.forget_rejects()
    assert (table.rejects(1), table.known(1)) == (b"", (1, 1))


def test_another_load_adds_to_the_table(db: sqlite3.Connection) -> None:
    prepared(db).fill(0, [item(1)], 1, nobody)
    assert prepared(db, load="m:2").fill(0, [item(1), item(2)], 2, nobody) == (1, 1)
    assert ids(db) == [1, 2]


def test_a_table_of_the_user_s_own_may_be_stricter(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TABLE things (id INTEGER PRIMARY KEY, n REAL, ok INTEGER, at TEXT DEFAULT 'now', CHECK (id < 5))"
    )
    table = prepared(db)
    assert table.fill(0, [item(1), item(7)], 2, nobody) == (1, 1)
    assert b"the table does not take it: CHECK constraint failed: id < 5" in table.rejects(0)


def test_columns_hold_what_their_fields_are(db: sqlite3.Connection) -> None:
    prepared(db).fill(0, [item(1)], 1, nobody)
    assert db.execute("SELECT typeof(id), typeof(n), typeof(ok), ok FROM things").fetchone() == (
        "integer",
        "real",
        "integer",
        1,
    )


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("CREATE TABLE things (id INTEGER UNIQUE, n REAL)", "no column named ok"),
        ("CREATE TABLE things (id INTEGER, n REAL, ok INTEGER)", "ON CONFLICT clause does not match"),
    ],
)
def test_a_table_that_cannot_take_the_rows_is_found_out_first(db: sqlite3.Connection, sql: str, why: str) -> None:
    db.execute(sql)
    with pytest.raises(TableError, match=f"the table things is there, and cannot take these rows: .*{why}"):
        prepared(db)


def test_a_file_that_has_changed_is_not_taken_for_the_one_whose_chunks_are_in(db: sqlite3.Connection) -> None:
    prepared(db).fill(0, [item(1)], 1, nobody)
    with pytest.raises(TableError, match=r"it\.csv has changed since a part of it was loaded"):
        prepared(db, stamp="another")
    prepared(db, load="m:2", stamp="another")


def test_chunks_are_forgotten_once_nobody_can_come_back_to_them(db: sqlite3.Connection) -> None:
    table = prepared(db)
    table.fill(0, [item(1)], 1, nobody)
    table.prepare()
    assert table.known(0) == (1, 0)
    db.execute("UPDATE dualloop_etl_chunks SET at = at - 91 * 86400")
    table.prepare()
    assert table.known(0) is None


def test_names_are_names_whatever_they_are(db: sqlite3.Connection) -> None:
    fields = [{"name": 'a "b"; --'}, {"name": "select", "required": True}]
    job = Job.model_validate({"source": "it.csv", "fields": fields, "table": "order", "key": ["select"]})
    assert prepared(db, job).fill(0, [Item(2, "", {'a "b"; --': "x", "select": "y"})], 1, nobody) == (1, 0)
    assert db.execute('SELECT * FROM "order"').fetchall() == [("x", "y")]


def _found(folder: Path, name: str) -> Any:
    with source.opened(folder, name) as (stream, _):
        return stream.read()


def test_only_plain_files_of_the_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret.csv").write_bytes(b"secret")
    (folder / "sub" / "it.csv").write_bytes(b"it")
    (folder / "out.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "in.csv").symlink_to(folder / "sub" / "it.csv")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.csv")

    assert _found(folder, "sub/it.csv") == _found(folder, "in.csv") == b"it"
    for name, why in {
        "out.csv": "leads out of",
        "up/secret.csv": "leads out of",
        "../secret.csv": "leads out of",
        str(tmp_path / "secret.csv"): "leads out of",
        "none.csv": "No such file",
        "sub": "is no plain file",
        "pipe.csv": "is no plain file",
    }.items():
        with pytest.raises(SourceError, match=why):
            _found(folder, name)


def test_a_file_is_known_again_unless_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "it.csv"
    file.write_bytes(b"a\n1\n")
    with source.opened(tmp_path, "it.csv") as (_, stamp):
        pass
    with source.opened(tmp_path, "it.csv", stamp) as (stream, again):
        assert (stream.read(), again) == (b"a\n1\n", stamp)
    file.write_bytes(b"a\n1\n2\n")
    with (
        pytest.raises(SourceError, match="has changed since it was surveyed"),
        source.opened(tmp_path, "it.csv", stamp),
    ):
        pass
