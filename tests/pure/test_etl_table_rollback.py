"""A table that undoes the whole transaction where it refuses a row: nothing of the chunk is in, and it is said why."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from backend_loop.etl.chunk_file import Item
from backend_loop.etl.job import Job
from backend_loop.etl.table import Table, TableError

JOB = Job.model_validate({"source": "p.csv", "fields": [{"name": "id", "type": "integer"}], "table": "people"})
REFUSES = "CREATE TRIGGER no BEFORE INSERT ON people WHEN new.id IS NULL BEGIN SELECT raise(ROLLBACK, 'no'); END"


@pytest.fixture(
    params=[
        "CREATE TABLE people (id INTEGER NOT NULL ON CONFLICT ROLLBACK)",
        f"CREATE TABLE people (id INTEGER); {REFUSES}",
    ],
    ids=["constraint", "trigger"],
)
def db(request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.executescript(request.param)
        yield db


def test_no_row_behind_the_refused_one_is_loaded_by_itself_and_again_with_each_try(db: sqlite3.Connection) -> None:
    table = Table(db, JOB, "load", "stamp")
    table.prepare()
    items = [Item(line, "", {"id": id_}) for line, id_ in enumerate((1, None, 3), 2)]
    sentence = "people undoes all that was loaded with a row that it refuses, line 3: "
    for _ in range(2):
        with pytest.raises(TableError, match=sentence):
            table.fill(0, items, 3, lambda: None)
    assert db.execute("SELECT count(*) FROM people").fetchone() == (0,)
    assert table.known(0) is None
    assert not db.in_transaction
