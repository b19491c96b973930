"""What the door takes and what it refuses, without a server: B54, B56, B57 and RFC 6901 pointers."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from frontend_loop.reading import read_command, read_json, read_payload
from shared.errors import Problem

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**300), max_value=10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_b56_what_passes_comes_back_exactly(value: Any) -> None:
    raw = json.dumps({"payload": value}).encode()
    kept = to_json(read_json(raw, 64))
    back = from_json(kept)["payload"]
    assert back == value
    assert json.dumps(back) == json.dumps(value)  # types too: 1 is not 1.0, and -0.0 stays


@pytest.mark.parametrize("text", ["\x00", "😀", "שלום مرحبا", "\u2028", "𠜎", "é", "\x7f", '\\"', "\u202e"])
def test_b56_odd_texts_come_back_exactly(text: str) -> None:
    raw = json.dumps({"payload": {text: text}}, ensure_ascii=False).encode()
    assert from_json(to_json(read_json(raw, 64))) == {"payload": {text: text}}


@pytest.mark.parametrize(
    ("raw", "code", "status"),
    [
        (b"", "bad_json", 400),
        (b"{", "bad_json", 400),
        (b'{"a":1}}', "bad_json", 400),
        (b"\xff\xfe{}", "bad_encoding", 400),
        (b'{"a":"\xc3\x28"}', "bad_encoding", 400),
        (b'{"a":"\\ud800"}', "bad_json", 400),
        (b'{"a":"\\udc00\\ud800"}', "bad_json", 400),
        (b'{"a":NaN}', "not_finite", 422),
        (b'{"a":-Infinity}', "not_finite", 422),
        (b'{"a":[0,{"b/c~":1e400}]}', "not_finite", 422),
        (b"[" * 65 + b"]" * 65, "too_deep", 422),
        (b"[" * 5000 + b"]" * 5000, "too_deep", 422),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "too_deep", 422),
        (b'{"a":' + b"9" * 5000 + b"}", "bad_json", 400),
    ],
)
def test_b54_b57_what_cannot_be_kept_is_refused(raw: bytes, code: str, status: int) -> None:
    with pytest.raises(Problem) as caught:
        read_json(raw, 64)
    assert (caught.value.code, caught.value.status) == (code, status)
    assert caught.value.detail


def test_the_pointer_leads_to_the_fault() -> None:
    with pytest.raises(Problem) as caught:
        read_json(b'{"a":[0,{"b/c~":1e400}]}', 64)
    assert caught.value.errors[0]["pointer"] == "/a/1/b~1c~0"


def test_depth_64_passes_and_65_does_not() -> None:
    read_json(b"[" * 64 + b"]" * 64, 64)
    with pytest.raises(Problem):
        read_json(b"[" * 65 + b"]" * 65, 64)


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ([], ""),
        ("text", ""),
        ({}, "/type"),
        ({"type": 3}, "/type"),
        ({"type": ""}, "/type"),
        ({"type": "a b"}, "/type"),
        ({"type": "a", "payload": []}, "/payload"),
        ({"type": "a", "priority": "high"}, "/priority"),
        ({"type": "a", "deadline_s": 0}, "/deadline_s"),
        ({"type": "a", "deadline_s": 1e10}, "/deadline_s"),
        ({"type": "a", "payload_version": 0}, "/payload_version"),
        ({"type": "a", "on_disconnect": "explode"}, "/on_disconnect"),
        ({"type": "a", "target": "x" * 201}, "/target"),
        ({"type": "a", "session": "x" * 201}, "/session"),
    ],
)
def test_each_field_of_a_command_is_held_to_its_kind(value: Any, pointer: str) -> None:
    with pytest.raises(Problem) as caught:
        read_command(value)
    assert caught.value.status == 422
    assert [error["pointer"] for error in caught.value.errors] == [pointer]


def test_unknown_fields_of_a_command_are_kept() -> None:
    assert read_command({"type": "a", "colour": "red"}).model_extra == {"colour": "red"}


def test_all_faults_of_a_payload_are_named_up_to_a_bound() -> None:
    validator = jsonschema_rs.Draft202012Validator(
        {"type": "object", "additionalProperties": {"type": "integer"}, "required": ["a"]}
    )
    with pytest.raises(Problem) as caught:
        read_payload(validator, {str(n): "x" * 1000 for n in range(50)})
    assert len(caught.value.errors) == 20
    assert all(error["pointer"].startswith("/payload") and len(error["detail"]) < 400 for error in caught.value.errors)
    read_payload(validator, {"a": 10**400})
