"""Ids by their beginnings: what a list shows of one is enough to be typed back, and what is not is said."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from dualloop.cli import app, beginnings
from dualloop.cli.beginnings import NAMED, SHORTEST, canonical, chosen, told_apart, whole
from dualloop.errors import Refusal
from shared.ids import LENGTH, Ids

IDS = Ids(b"k" * 32)
AT = 1_796_000_000_000
MANY = [IDS.new(0, AT + n // 10) for n in range(40)]
ONE, OTHER = MANY[0], IDS.new(3, AT)


def row(task_id: str) -> dict[str, Any]:
    about = {"type": "device.control", "target": "light.卧室", "status": "RUNNING"}
    return {"task_id": task_id, "created_at": "2026-11-30T12:00:00.000Z", **about}


ROWS = [row(id_) for id_ in (*MANY, OTHER)]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(AT, AT + 50)), min_size=1, max_size=60))
def test_what_is_shown_of_each_is_the_beginning_of_no_other(made: list[tuple[int, int]]) -> None:
    ids = [IDS.new(shard, ms) for shard, ms in made]
    shown = told_apart(ids)
    assert SHORTEST <= shown <= LENGTH
    assert len({id_[:shown] for id_ in ids}) == len(ids)
    for id_ in ids:
        assert chosen(id_[:shown], [row(one) for one in ids], complete=True) == id_


def test_a_lone_id_is_not_cut_to_what_the_next_one_will_begin_with_too() -> None:
    assert told_apart([ONE]) == told_apart([]) == 14
    assert told_apart([ONE, ONE]) == 14


def test_it_is_read_as_people_write_it_and_as_lists_cut_it() -> None:
    begins = ONE[:20]
    sloppy = begins.lower().replace("0", "o").replace("1", "l")
    for text in (begins, f"{begins}…", f"{begins}...", f" {sloppy}"):
        assert canonical(text) == begins
    assert canonical(ONE[:-1]) == ONE[:-1]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(ONE, id="a whole id"),  # named, for it is another one in each process that collects
        pytest.param(f"{ONE}0", id="longer than one"),
        *("x", "nonsense", "", "…", "light.kitchen", "../../x", "04客厅客厅客厅客厅"),
    ],
)
def test_a_whole_id_and_what_is_none_go_to_the_foreground_as_they_are(text: str) -> None:
    assert canonical(text) is None
    assert whole([text]) == [text], "nobody was asked"


def test_what_begins_every_id_is_too_short() -> None:
    with pytest.raises(Refusal, match=r"^040000 may begin any id: give 10 characters of it at least\.$"):
        canonical("040000")


def test_several_that_fit_are_named() -> None:
    with pytest.raises(Refusal) as caught:
        chosen(ONE[:12], ROWS, complete=True)
    first, *named, more = str(caught.value).splitlines()
    assert first == f"40 missions begin with {ONE[:12]}: give more of it."
    assert len(named) == NAMED
    assert named[0].startswith(f"  {ONE}  RUNNING  device.control light.卧室, ")
    assert more == f"  and {40 - NAMED} more"


def test_of_those_that_were_not_all_looked_at_no_number_is_claimed() -> None:
    with pytest.raises(Refusal, match=r"^More than 40 missions begin with "):
        chosen(ONE[:12], ROWS, complete=False)


def test_one_is_not_taken_for_the_only_one_before_all_were_looked_at() -> None:
    assert chosen(OTHER[:12], ROWS, complete=True) == OTHER
    with pytest.raises(Refusal, match="give the whole id"):
        chosen(OTHER[:12], ROWS, complete=False)
    with pytest.raises(Refusal, match=f"^No mission begins with {'04ZZZZZZZZZZ'}: "):
        chosen("04ZZZZZZZZZZ", ROWS, complete=True)


def pages(monkeypatch: pytest.MonkeyPatch, cursor: str | None) -> list[dict[str, Any]]:
    """What is asked for, where each page has these missions and goes on there."""
    asked: list[dict[str, Any]] = []

    async def missions(**how: Any) -> dict[str, Any]:
        asked.append(how)
        return {"missions": ROWS, "cursor": cursor}

    async def work(ask: Any) -> Any:
        return await ask(SimpleNamespace(missions=missions))

    def run(ask: Any) -> Any:
        return asyncio.run(work(ask))

    monkeypatch.setattr(beginnings, "ask", run)
    return asked


def test_what_is_looked_for_is_no_shorter_for_being_asked_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = pages(monkeypatch, None)
    assert whole([OTHER[:20], MANY[0][:30], MANY[39][:30]]) == [OTHER, MANY[0], MANY[39]]
    looked = [how["q"] for how in asked]
    assert (len(looked), OTHER[:20] in looked) == (2, True)
    assert all(len(text) >= SHORTEST for text in looked)


def test_of_many_missions_so_many_pages_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = pages(monkeypatch, "next")
    with pytest.raises(Refusal, match="give the whole id"):
        whole([OTHER[:12]])
    assert len(asked) == beginnings.CALLS
    assert [how["cursor"] for how in asked] == [None, *["next"] * (beginnings.CALLS - 1)]


@pytest.mark.parametrize(
    "command",
    [
        *("why", "watch", "missions show", "missions cancel", "missions pause", "missions resume", "missions skip"),
        *("missions complete", "missions files", "missions download", "missions export", "dead-letters show"),
        *("dead-letters replay", "dead-letters discard", "missions ls --correlation-id"),
    ],
)
def test_each_command_takes_it(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    def refuse(_ask: Any) -> Any:
        raise Refusal("looked for")

    monkeypatch.setattr(beginnings, "ask", refuse)
    said = CliRunner().invoke(app, [*command.split(), ONE[:16]])
    assert isinstance(said.exception, Refusal)
    assert str(said.exception) == "looked for"


def test_of_several_one_look_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Any] = []

    def look(ask: Any) -> tuple[list[dict[str, Any]], bool]:
        looks.append(ask)
        return ROWS, True

    monkeypatch.setattr(beginnings, "ask", look)
    assert whole([MANY[0][:30], OTHER, OTHER[:12], "x"]) == [MANY[0], OTHER, OTHER, "x"]
    assert len(looks) == 1
