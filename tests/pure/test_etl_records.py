"""Where records begin and end: the same in one read, in blocks of any size, and chunk by chunk, for any bytes."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from backend_loop.etl.job import Job
from backend_loop.etl.records import LONGEST, MOST_LINES, SourceError, splitter
from backend_loop.etl.survey import MOST, Survey, records

FORMS = st.sampled_from(["csv", "json", "jsonl"])
Row = tuple[int, bytes, str | None]


def job(form: str, **more: Any) -> Job:
    return Job.model_validate({"source": f"it.{form}", "fields": [{"name": "a"}], "table": "t", **more})


def surveyed(data: bytes, of: Job, block_size: int = 1 << 20) -> Survey:
    survey = Survey()
    survey.carry_on(io.BytesIO(data), of, lambda: None, block_size)
    return survey


def found(data: bytes, of: Job, survey: Survey) -> list[Row]:
    """All records, chunk by chunk."""
    stream = io.BytesIO(data)
    return [(one.line, one.raw, one.fault) for piece in survey.pieces for one in records(stream, of, piece)]


def at_once(data: bytes, of: Job, survey: Survey) -> list[Row]:
    """All records, by one look at the whole file."""
    start = survey.pieces[0].start if survey.pieces else len(data)
    line = survey.pieces[0].line if survey.pieces else 1
    return [(one.line, one.raw, one.fault) for one in splitter(of.form, of.delimiter)(data[start:], line, True).records]


signs = st.lists(
    st.sampled_from([b'"', b",", b"\n", b"\r\n", b" ", b"a", b"{", b"}", b"[", b"]", b"\\", b'"a"', b"\xff"])
)


@settings(deadline=None)  # how long a draw takes depends on who else is on the machine
@given(FORMS, signs, st.integers(1, 9), st.integers(1, 4))
@example("csv", [b'"', b"\n"] * 3, 1, 1)
@example("json", [b'"\\'], 1, 1)
def test_however_the_bytes_are_cut_the_records_are_the_same(
    form: str, parts: list[bytes], block_size: int, chunk_rows: int
) -> None:
    head = {"csv": b"a,b\n", "json": b" [", "jsonl": b""}[form]
    data, of = head + b"".join(parts) + (b"]" if form == "json" else b""), job(form, chunk_rows=chunk_rows)
    try:
        whole = surveyed(data, of)
    except SourceError:
        with pytest.raises(SourceError, match=r"array"):
            surveyed(data, of, block_size)
        return
    cut = surveyed(data, of, block_size)
    assert (cut.pieces, cut.rows) == (whole.pieces, whole.rows)
    assert found(data, of, cut) == at_once(data, of, whole)
    assert all(piece.rows <= chunk_rows for piece in cut.pieces)
    for line, raw, _ in found(data, of, cut):
        assert data.split(b"\n")[line - 1].count(raw.split(b"\n")[0].rstrip(b"\r")), "the line is the one it begins in"


texts = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


@settings(deadline=None)
@given(st.lists(st.tuples(texts, texts), max_size=20), st.integers(1, 64))
def test_what_a_csv_writer_has_written_comes_back(rows: list[tuple[str, str]], block_size: int) -> None:
    file = io.StringIO()
    csv.writer(file).writerows([("a", "b"), *rows])
    data, of = file.getvalue().encode(), job("csv", chunk_rows=3)
    raws = [raw.decode() for _, raw, fault in found(data, of, surveyed(data, of, block_size)) if fault is None]
    assert [tuple(next(csv.reader([raw]))) for raw in raws] == [
        row for row in rows if "".join(row).strip() or len(row) > 1
    ]


@settings(deadline=None)
@given(
    st.lists(
        st.dictionaries(texts, st.one_of(texts, st.integers(), st.lists(texts, max_size=2)), max_size=4), max_size=9
    ),
    st.integers(8, 64),
)
def test_what_json_has_written_comes_back(objects: list[dict[str, Any]], block_size: int) -> None:
    for form, data in (
        ("json", json.dumps(objects, indent=1).encode()),
        ("jsonl", b"\n\n".join(json.dumps(one).encode() for one in objects)),
    ):
        of = job(form, chunk_rows=3)
        assert [json.loads(raw) for _, raw, _ in found(data, of, surveyed(data, of, block_size))] == objects


def test_a_survey_goes_on_behind_the_block_where_it_was_cut() -> None:
    data = b"a,b\n" + b'"x\ny",1\n' * 100
    of = job("csv", chunk_rows=7)
    whole, reads = surveyed(data, of), list[int]()

    class Killed(BaseException):
        pass

    def dies() -> None:
        reads.append(survey.offset)
        raise Killed

    survey = Survey()
    while not survey.ended:
        with pytest.raises(Killed):
            survey.carry_on(io.BytesIO(data), of, dies, 64)
        survey = Survey.model_validate_json(survey.model_dump_json())
    assert survey == whole
    assert reads == sorted(reads)
    assert len(set(reads)) > 10


def test_a_file_of_too_many_chunks_has_larger_ones() -> None:
    rows = MOST * 2 + 1
    data, of = b"a\n" + b"1\n" * rows, job("csv", chunk_rows=1)
    survey = surveyed(data, of)
    assert (survey.rows, survey.doublings) == (rows, 2)
    assert len(survey.pieces) == MOST // 2 + 1
    assert found(data, of, survey) == at_once(data, of, survey)


def test_a_quote_that_is_not_closed_costs_one_line() -> None:
    data, of = b'a,b\n1,"x\n2,y\n3,"z"\n4,"' + b"\n5,v" * MOST_LINES + b"\n", job("csv")
    rows = found(data, of, surveyed(data, of))
    assert [line for line, _, fault in rows if fault == "a quote is not closed"] == [2, 5]
    assert len(rows) == 4 + MOST_LINES


def test_what_a_quote_is_in_the_midst_of_is_left_to_be_read() -> None:
    data, of = b'a,b\n1,5" nail\n2,"x"y\n3,z\n', job("csv")
    assert [row[1] for row in found(data, of, surveyed(data, of))] == [b'1,5" nail', b'2,"x"y', b"3,z"]


@pytest.mark.parametrize("block_size", [7, 1 << 20])
def test_a_signature_and_blank_lines_are_no_records(block_size: int) -> None:
    data, of = b"\xef\xbb\xbfa,b\r\n\r\n1,2\r\n \r\n3,4", job("csv")
    survey = surveyed(data, of, block_size)
    assert survey.columns == ("a", "b")
    assert found(data, of, survey) == [(3, b"1,2", None), (5, b"3,4", None)]


@pytest.mark.parametrize(
    ("form", "data", "sentence"),
    [
        ("csv", b"", "the file has no header"),
        ("csv", b"\n\n", "the file has no header"),
        ("csv", b'a,"b\n1,2\n', "the file has no header"),
        ("csv", b"\xff\xfea,b\n", "the header cannot be read"),
        ("csv", b"b,c\n1,2\n", "the header has 'a' 0 times, and not once: b, c"),
        ("csv", b"a,a\n1,2\n", "the header has 'a' 2 times"),
        ("csv", b"a\n" + b"x" * (LONGEST + 1), "line 2 is longer than 1048576 bytes"),
        ("jsonl", b"{}\n" * 3 + b"x" * (LONGEST + 1) + b"\n", "line 4 is longer than 1048576 bytes"),
        ("json", b"", "no JSON array"),
        ("json", b'{"a": 1}', "no JSON array: for an object a line say jsonl"),
        ("json", b'[{"a": 1}', "the array that the file is has no end"),
        ("json", b'[{"a": 1},\n{"a": "}]', "the array that the file is has no end"),
        ("json", b'[{"a": 1}] [', "something follows the array's end in line 1"),
        ("json", b'[\n{"a": ["' + b"x" * (2 * LONGEST) + b'"]}]', "what begins in line 2 is longer than"),
    ],
)
def test_what_is_no_such_file_is_said_in_a_sentence(form: str, data: bytes, sentence: str) -> None:
    for block_size in (1 << 16, 1 << 20):
        with pytest.raises(SourceError, match=sentence):
            surveyed(data, job(form), block_size)


def test_a_chunk_that_is_not_as_surveyed_is_not_read() -> None:
    data, of = b"a\n1\n2\n3\n", job("csv")
    piece = surveyed(data, of).pieces[0]
    with pytest.raises(SourceError, match="from line 2 on there are 2 records, and there were 3"):
        records(io.BytesIO(b"a\n1\n2 3\n"), of, piece)
