"""Files that are not what they seem: what is said of them, at once and not after tries."""

from pathlib import Path

import pytest

from backend_loop.etl.records import SourceError, head
from backend_loop.etl.rows import CLEAN
from backend_loop.etl.source import find


def test_a_link_to_itself_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    with pytest.raises(SourceError, match=r"loop\.csv is a link that leads to itself"):
        find(tmp_path, "loop.csv")


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
@pytest.mark.parametrize("kind", ["text", "integer", "number"])
def test_a_number_too_large_for_any_is_no_value(kind: str, value: float) -> None:
    """JSON may say 1e999, which would be loaded as the text "inf"."""
    assert CLEAN[kind](value) is None  # type: ignore[index]  # each of them is a kind


@pytest.mark.parametrize("form", ["csv", "json"])
def test_nothing_at_all_is_called_so(form: str) -> None:
    with pytest.raises(SourceError, match="it is empty"):
        head(form, ",", b"")  # type: ignore[arg-type]  # each of them is a form


def test_a_spreadsheet_s_own_text_is_told_how_to_be_saved() -> None:
    with pytest.raises(SourceError, match="it is no UTF-8, so save the file as such"):
        head("csv", ",", "id,name\n1,ü\n".encode("utf-16"))


def test_lines_that_end_as_on_old_macs_are_told_so() -> None:
    with pytest.raises(SourceError, match="its lines end with a carriage return alone"):
        head("csv", ",", b"id,name\r1,a\r2,b\r")
