"""What is said in words, as a command: which fields stand in the place of which, and what is refused."""

from typing import Any

import pytest
from typer.testing import CliRunner

from dualloop.cli import app
from frontend_loop.ingress.http import preferred
from frontend_loop.utterance import as_command
from shared.errors import Problem
from shared.sessions import TYPE, target_of

SAID = "打开客厅空调，调到26度"


def test_words_become_a_command_to_the_assistant() -> None:
    assert as_command({"text": SAID, "locale": "zh-CN", "area": "hall", "webhook": None}) == {
        "type": TYPE,
        "payload": {"text": SAID, "locale": "zh-CN"},
        "area": "hall",
        "webhook": None,
    }
    assert as_command({"text": " lights on\0 ", "type": TYPE})["payload"] == {"text": " lights on\0 "}


@pytest.mark.parametrize("value", [[], None, 7, "text", {}, {"type": "device.query", "session": "s", "locale": "zh"}])
def test_all_else_stays_as_it_is(value: Any) -> None:
    assert as_command(value) == value


def test_what_is_said_in_a_session_goes_in_order() -> None:
    said = as_command({"text": SAID, "session": "kitchen"})
    assert (said["target"], said["session"]) == ("session:kitchen", "kitchen")
    assert as_command({"type": TYPE, "payload": {"text": SAID}, "session": "kitchen"})["target"] == "session:kitchen"
    assert as_command({"text": SAID, "session": "kitchen", "target": "mine"})["target"] == "mine"
    assert "target" not in as_command({"text": SAID, "session": ""})
    assert as_command({"text": SAID, "session": 7}).get("target") is None, "it is refused as any wrong field is"


def test_any_session_makes_a_target_that_can_be_one() -> None:
    for session in ("my kitchen", "\0", "x" * 200, "客厅 🙂"):
        target = target_of(session)
        assert target.startswith("session:")
        assert len(target) <= 200
        assert target.isprintable()
        assert " " not in target
    assert target_of("a b") != target_of("a  b")
    assert target_of("客厅") == "session:客厅"


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        ({"text": ""}, "/text"),
        ({"text": " \n"}, "/text"),
        ({"text": None}, "/text"),
        ({"text": ["on"]}, "/text"),
        ({"text": "x" * 1_001}, "/text"),
        ({"text": SAID, "locale": "中文"}, "/locale"),
        ({"text": SAID, "locale": 7}, "/locale"),
        ({"text": SAID, "type": "device.control"}, "/text"),
        ({"text": SAID, "payload": {}}, "/text"),
        ({"text": SAID, "payload": TYPE}, "/text"),
        ({"text": SAID, "type": None}, "/text"),
    ],
)
def test_what_is_wrong_with_it_is_said_and_where(value: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Problem) as raised:
        as_command(value)
    assert (raised.value.status, raised.value.errors[0]["pointer"]) == (422, pointer)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("wait=5", 5), ("respond-async, wait=10", 10), ('Wait="2.5"; x', 2.5), ("wait=-1", 0), ("wait=nan", 0), ("", 0)],
)
def test_how_long_a_client_prefers_to_wait(header: str, seconds: float) -> None:
    assert preferred(header) == seconds


@pytest.mark.parametrize("wrong", [("send",), ("send", "lights on", "--type", "test.noop")])
def test_the_command_line_wants_words_or_a_type(wrong: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, wrong)
    assert told.exit_code == 1
    assert "in words" in str(told.exception)
