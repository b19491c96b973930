"""What a job may say, and what becomes of a record: its values, its columns, or the reason why it is none."""

from typing import Any

import pytest
from pydantic import ValidationError

from backend_loop.etl.chunk_file import LONGEST_RAW, Item, extracted, read, transformed, write
from backend_loop.etl.job import Job
from backend_loop.etl.records import Record
from backend_loop.etl.rows import reading

FIELDS = [
    {"name": "id", "type": "integer", "required": True},
    {"name": "name"},
    {"name": "price", "type": "number"},
    {"name": "there", "type": "boolean"},
    {"name": "born", "type": "date"},
]
NAMES = ("id", "name", "price", "there", "born")


def job(**more: Any) -> Job:
    return Job.model_validate({"source": "it.csv", "fields": FIELDS, "table": "t", **more})


def become(raw: str | bytes, *, source: str = "it.csv", header: tuple[str, ...] = NAMES, **more: Any) -> Any:
    """The row that a record becomes, or the reason why it becomes none."""
    of = job(source=source, **more)
    raw = raw if isinstance(raw, bytes) else raw.encode()
    (item,) = transformed(of, extracted(reading(of, header), [Record(7, raw, 0, len(raw))]))
    assert (item.line, item.row is None) == (7, item.reason is not None)
    return item.reason if item.row is None else item.row


def test_values_are_trimmed_and_become_what_they_are_said_to_be() -> None:
    row = {"id": 7, "name": "Ada L", "price": 1.5, "there": True, "born": "2026-11-30"}
    assert become(" +7 ,  Ada L , 1.50 , YES, 2026-11-30") == row
    assert (
        become('{"id": 7.0, "name": "Ada L", "price": 1.5, "there": true, "born": "2026-11-30"}', source="it.json")
        == row
    )


def test_what_is_empty_is_nothing() -> None:
    nothing = dict.fromkeys(NAMES[1:])
    assert become("1, ,,  ,") == {"id": 1, **nothing}
    assert become('{"id": "1", "name": "", "price": null}', source="it.jsonl") == {"id": 1, **nothing}


def test_a_csv_is_read_by_the_names_in_its_header() -> None:
    assert become("x,2026-11-30,a,1,y,5,no", header=("?", "born", "name", "price", "!", "id", "there")) == {
        "id": 5,
        "name": "a",
        "price": 1.0,
        "there": False,
        "born": "2026-11-30",
    }


def test_another_delimiter() -> None:
    assert become("1;a,b;;;", delimiter=";") == {"id": 1, "name": "a,b", **dict.fromkeys(NAMES[2:])}


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (",a,1,yes,", "id is missing"),
        (" ,a,1,yes,", "id is missing"),
        ("x,a,1,yes,", "id is 'x', and no integer"),
        ("1_0,a,1,yes,", "id is '1_0', and no integer"),
        ("1.0,a,1,yes,", "id is '1.0', and no integer"),
        ("١,a,1,yes,", "id is '١', and no integer"),
        ("9223372036854775808,a,1,yes,", "id is '9223372036854775808', and no integer"),
        ("1,a,1e999,yes,", "price is '1e999', and no number"),
        ("1,a,nan,yes,", "price is 'nan', and no number"),
        ('1,a,"1,5",yes,', "price is '1,5', and no number"),
        ("1,a,1,maybe,", "there is 'maybe', and no boolean"),
        ("1,a,1,yes,2026-02-29", "born is '2026-02-29', and no date"),
        ("1,a,1,yes,20260228", "born is '20260228', and no date"),
        ("1,a,1,yes," + "9" * 99, "born is '" + "9" * 59 + "…, and no date"),
        ("1,a,1,yes", "it has 4 cells, and the header 5"),
        ("1,a,1,yes,,", "it has 6 cells, and the header 5"),
        ('1,"a"b,1,yes,', "it is no csv: ',' expected after '\"'"),
        (b"1,\xff,1,yes,", "its byte 2 is no UTF-8"),
    ],
)
def test_a_reject_of_a_csv_has_its_reason(raw: str | bytes, reason: str) -> None:
    assert become(raw) == reason


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ('{"id": 1,}', "it is no JSON: "),
        ("[1]", "it is no object"),
        ('{"id": true}', "id is True, and no integer"),
        ('{"id": 1.5}', "id is 1.5, and no integer"),
        ('{"id": [1]}', "id is [1], and no integer"),
        ('{"id": 99999999999999999999}', "id is 99999999999999999999, and no integer"),
        ('{"id": 1, "name": {"first": "Ada"}}', "name is {'first': 'Ada'}, and no text"),
        ('{"id": 1, "name": true}', "name is True, and no text"),
        ('{"id": 1, "price": NaN}', "it is no JSON: "),
        ('{"id": 1, "price": 1e400}', "price is inf, and no number"),
        ('{"id": 1, "price": true}', "price is True, and no number"),
        ('{"id": 1, "name": "\\ud800"}', "it is no JSON: "),
        ('{"id": 1, "born": 20260228}', "born is 20260228, and no date"),
        ("[" * 100_000, "it is no JSON: "),
    ],
)
def test_a_reject_of_a_json_has_its_reason(raw: str, reason: str) -> None:
    assert become(raw, source="it.json").startswith(reason)


def test_columns_are_made_by_rules() -> None:
    columns = {
        "id": "id",
        "label": {"join": ["name", "born"], "with": ", "},
        "lower": {"from": "name", "case": "lower"},
        "upper": {"from": "name", "case": "upper"},
        "more": {"sum": ["id", 1]},
        "much": {"product": ["price", "id", 2]},
        "origin": {"constant": "import"},
    }
    assert become("2,Ada,1.5,,", columns=columns) == {
        "id": 2,
        "label": "Ada",
        "lower": "ada",
        "upper": "ADA",
        "more": 3,
        "much": 6.0,
        "origin": "import",
    }
    empty = become("2,,,,", columns=columns)
    assert [name for name, value in empty.items() if value is None] == ["label", "lower", "upper", "much"]
    kinds = job(columns=columns).kinds
    assert [kinds[name] for name in ("label", "more", "much", "origin")] == ["text", "integer", "number", "text"]


@pytest.mark.parametrize(
    "rule",
    [{"sum": ["id", 2]}, {"product": ["id", "id", "id"]}, {"product": ["price", 1e308]}, {"product": [10**17] * 20}],
)
def test_what_is_too_large_for_a_database_is_a_reject(rule: dict[str, Any]) -> None:
    assert become("9223372036854775806,a,10.5,,", columns={"n": rule}).endswith("is too large")


def test_of_two_rows_with_one_key_the_first_stays() -> None:
    of = job(key=["name", "id"])
    raws = (b"1,a,,,", b"2,a,,,", b"1,a,5,,", b"1,A,,,")
    found = list(
        transformed(of, extracted(reading(of, NAMES), [Record(n, raw, 0, 0) for n, raw in enumerate(raws, 2)]))
    )
    assert [item.reason for item in found] == [None, None, "duplicate: name 'a', id 1 is in line 2 already", None]
    assert become("1,,,,", key=["name"]) == "name is missing, which is a part of the key"


def test_a_chunk_comes_back_from_its_file_and_is_counted(tmp_path: Any) -> None:
    items = [Item(2, "1,é\0\n", {"id": 1, "name": "é\0\n"}), Item(4, "x", None, "it is no csv"), Item(5, "", {"id": 2})]
    with (tmp_path / "chunk").open("wb") as stream:
        assert write(stream, items) == (2, 1)
    assert list(read(tmp_path / "chunk")) == items
    assert items[1].told() == b'{"line":4,"reason":"it is no csv","raw":"x"}\n'


def test_a_reject_is_told_with_as_much_of_its_text_as_helps() -> None:
    of = job()
    (item,) = extracted(reading(of, NAMES), [Record(2, b"\xff" + b"x" * 5_000, 0, 0)])
    assert item.raw == "\N{REPLACEMENT CHARACTER}" + "x" * (LONGEST_RAW - 1) + "…"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"source": "../it.csv"}, "source"),
        ({"source": "/etc/passwd"}, "source"),
        ({"source": "a/../../it.csv"}, "source"),
        ({"source": ".env"}, "source"),
        ({"source": "a/.hidden/it.csv"}, "source"),
        ({"source": "a\\it.csv"}, "source"),
        ({"source": "a\0.csv"}, "source"),
        ({"source": "it.xlsx"}, "does not say what it is: give format, csv, json or jsonl"),
        ({"fields": []}, "fields"),
        ({"fields": [{"name": "a"}, {"name": "a"}]}, "fields has a twice"),
        ({"fields": [{"name": "a"}, {"name": "A"}]}, "columns has a twice"),
        ({"fields": [{"name": "a", "type": "money"}]}, "type"),
        ({"columns": {"n": "nothing"}}, "columns/n needs nothing, which is none of the fields"),
        ({"columns": {"n": {"sum": ["id", "cost"]}}}, "columns/n needs cost, which is none of the fields"),
        ({"columns": {"n": {"sum": ["id", "name"]}}}, "name is no number, so it cannot be calculated with"),
        ({"columns": {"n": {"from": "id", "case": "lower"}}}, "id is no text, so it has no case"),
        ({"columns": {"n": {"eval": "1"}}}, "columns"),
        ({"columns": {"n; DROP": "id"}}, "columns"),
        ({"key": ["number"]}, "key has number, which is none of the columns"),
        ({"table": "t; DROP"}, "table"),
        ({"table": "sqlite_master"}, "are not yours to fill"),
        ({"table": "DUALLOOP_etl_chunks"}, "are not yours to fill"),
        ({"budget": {"share": 2}}, "budget"),
        ({"chunk_rows": 0}, "chunk_rows"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_nonsense_is_refused_before_anything_is_done(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        job(**wrong)


def test_a_job_comes_back_from_the_payload_of_a_stage() -> None:
    of = job(
        columns={"id": "id", "x": {"join": ["name"], "with": "-"}, "n": {"from": "name", "case": "upper"}}, key=["id"]
    )
    assert Job.model_validate_json(of.model_dump_json()) == of
    assert '"with":"-"' in of.model_dump_json()
