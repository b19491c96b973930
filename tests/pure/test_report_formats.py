"""Rows as files: read again by others, they are the rows; and it does not matter in how many pieces they came."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend_loop.report.formats import FORMATS, Form

COLUMNS = ["id", "name", "größe"]
ROWS: list[Sequence[Any]] = [
    (1, "Ada", 1.5),
    (2, None, b"\x00\xff"),
    (3, 'a "quoted", \r\n line', float("inf")),
    (4, "", 0),
]


def written(form: Form, rows: Sequence[Sequence[Any]], cuts: Sequence[int] = ()) -> bytes:
    """The file, its rows written in pieces."""
    one = FORMATS[form]
    parts = [one.head(COLUMNS)]
    for begin, end in zip((0, *cuts), (*cuts, len(rows)), strict=True):
        parts.append(one.rows(COLUMNS, rows[begin:end], first=begin == 0))
    return b"".join([*parts, one.tail()])


def test_csv_is_what_a_spreadsheet_reads() -> None:
    text = written("csv", ROWS).decode()
    assert text.startswith("id,name,größe\r\n1,Ada,1.5\r\n2,,AP8=\r\n")
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read[3] == ["3", 'a "quoted", \r\n line', "inf"]
    assert len(read) == 5


def test_json_is_one_array() -> None:
    read = json.loads(written("json", ROWS))
    assert read[0] == {"id": 1, "name": "Ada", "größe": 1.5}
    assert [one["größe"] for one in read] == [1.5, "AP8=", None, 0]
    assert json.loads(written("json", [])) == []


def test_json_lines_are_an_object_each() -> None:
    lines = written("jsonl", ROWS).decode().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [1, 2, 3, 4]
    assert written("jsonl", []) == b""


@pytest.mark.parametrize("form", FORMATS)
@given(count=st.integers(0, 12), cuts=st.lists(st.integers(0, 12), max_size=4))
def test_it_does_not_matter_in_how_many_pieces_it_was_written(form: Form, count: int, cuts: list[int]) -> None:
    rows = [(n, "x" * n, None) for n in range(count)]
    assert written(form, rows, sorted(min(cut, count) for cut in cuts)) == written(form, rows)


def test_integers_of_any_size_and_any_text_come_through() -> None:
    rows = [(2**63 - 1, "emoji 🏠 表", -(2**63))]
    assert json.loads(written("jsonl", rows)) == {"id": 2**63 - 1, "name": "emoji 🏠 表", "größe": -(2**63)}
    assert str(2**63 - 1) in written("csv", rows).decode()


@pytest.mark.parametrize("cell", ["=1+1", "+49 30 1234", "-7", "@ada", "\t=1", '=HYPERLINK("http://x")'])
def test_what_a_spreadsheet_takes_for_a_formula_is_told_as_it_is(cell: str) -> None:
    """Another sign in front of it would be read back as part of it; who opens it there imports it as text."""
    text = written("csv", [(1, cell, 0)]).decode()
    assert list(csv.reader(io.StringIO(text, newline="")))[1] == ["1", cell, "0"]
