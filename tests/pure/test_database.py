"""The database by its URL: SQLite files, and a sentence for whatever else."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import ValidationError

from backend_loop.database import DatabaseUrlError, NoDatabaseError, connect, path_of, quoted
from shared.settings import Settings


def test_urls_name_files() -> None:
    assert path_of("sqlite:////var/lib/a b.sqlite") == Path("/var/lib/a b.sqlite")
    assert path_of("sqlite:///here.sqlite") == Path("here.sqlite")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "here.sqlite",
        "sqlite://",
        "sqlite:///",
        "sqlite:///a?mode=rwc",
        "postgresql://h/d",
        "file:a",
        "sqlite:///a\0b",
    ],
)
def test_what_is_not_spoken_is_refused_with_what_to_do(url: str) -> None:
    with pytest.raises(DatabaseUrlError, match="set DUALLOOP_DATABASE to a SQLite file"):
        connect(url)


def test_settings_refuse_it_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="only SQLite is spoken"):
        Settings(database="mysql://host/data")
    assert Settings(state_dir=tmp_path).database_url == f"sqlite:///{tmp_path}/data.sqlite"
    assert Settings(database="sqlite:////elsewhere.sqlite").database_url == "sqlite:////elsewhere.sqlite"
    assert Settings(state_dir=Path("relative")).database_url == f"sqlite:///{Path.cwd()}/relative/data.sqlite"


def test_it_is_made_where_it_is_not_and_read_while_it_is_written(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/new/odd ?#%20 name.sqlite".replace("?", "")
    with closing(connect(url)) as writer:
        writer.execute("CREATE TABLE a (n INT)")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO a VALUES (1)")
        with closing(connect(url, read_only=True)) as reader:
            assert reader.execute("SELECT count(*) FROM a").fetchone() == (0,)
            writer.execute("COMMIT")
            assert reader.execute("SELECT count(*) FROM a").fetchone() == (1,)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("INSERT INTO a VALUES (2)")


def test_to_be_read_it_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(NoDatabaseError, match="load something into it first"):
        connect(f"sqlite:///{tmp_path}/none.sqlite", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_database_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database at all" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        connect(f"sqlite:///{tmp_path}/text")


def test_any_name_is_quoted() -> None:
    assert quoted('a "b"') == '"a ""b"""'
    for odd in ("", "a\0"):
        with pytest.raises(ValueError, match="cannot be the name"):
            quoted(odd)
