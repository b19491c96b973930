"""What is sent by the clock may be said in words, and a run by hand is one."""

from types import SimpleNamespace
from typing import Any

import pytest

from dualloop.cli import schedules
from dualloop.errors import Refusal

AT = "2026-11-29T18:00:00.000Z"
CRON = "0 18 * * *"


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The commands that were to be kept."""
    commands: list[Any] = []

    def add(_name: str, _cron: str, command: dict[str, Any], **_how: Any) -> dict[str, Any]:
        commands.append(command)
        return {"next": []}

    client = SimpleNamespace(schedules=SimpleNamespace(add=add))
    monkeypatch.setattr(schedules, "ask", lambda work: work(client))
    return commands


def test_a_schedule_is_added_in_words(sent: list[Any]) -> None:
    schedules.add("evening", cron=CRON, text="打开走廊的灯", locale="zh")
    schedules.add("evening", cron=CRON, type_="test.noop", payload='{"n": 1}')
    assert sent == [{"text": "打开走廊的灯", "locale": "zh"}, {"type": "test.noop", "payload": {"n": 1}}]


@pytest.mark.parametrize(
    "wrong", [{}, {"text": "good night", "type_": "test.noop"}, {"text": "good night", "payload": '{"n": 1}'}]
)
def test_it_is_one_or_the_other(sent: list[Any], wrong: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        schedules.add("evening", cron=CRON, **wrong)
    assert not sent


@pytest.mark.parametrize(
    ("fired", "ran", "last"),
    [(None, None, "never"), (None, AT, AT), (AT, None, AT), ("2026-11-28T18:00:00.000Z", AT, AT), (AT, "2026", AT)],
)
def test_the_last_time_is_that_of_the_clock_or_of_a_hand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fired: str | None, ran: str | None, last: str
) -> None:
    row: dict[str, Any] = {
        "name": "s",
        "cron": CRON,
        "zone": "UTC",
        "command": {"type": "t"},
        "next": [],
        "trouble": None,
    }
    row |= {"last_fired": fired and {"at": fired}, "last_run": ran and {"at": ran}}
    monkeypatch.setattr(schedules, "ask", lambda _work: ([row], True))
    monkeypatch.setattr(schedules, "ago", lambda at: at)
    schedules.ls()
    assert capsys.readouterr().out.splitlines()[1].split()[-1] == last
