"""What is seen of a mission that one waits for: on a terminal of any width one line, in a pipe a line now and then."""

import re
from collections.abc import AsyncIterator
from io import StringIO
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from dualloop.cli.fitting import GAP
from dualloop.cli.following import Lines, Screen, shared_out
from dualloop.cli.send import Aloud, followed, way_to_answer
from dualloop.client_faults import ClientProblem

MESSAGE = "第 4 块 of the file\norders-2026-11.csv, which is rather long to be told in a terminal"


def event(state: str, status: str = "RUNNING") -> dict[str, Any]:
    return {"op": "event", "at": "2026-11-29T18:00:00.000Z", "status": status, "state": state, "data": None}


def progress(at_s: int, done: float, total: float | None = 100_000, message: str | None = MESSAGE) -> dict[str, Any]:
    value = {"done": done, "total": total, "message": message}
    return event("CLEANING") | {"op": "progress", "at": f"2026-11-29T18:00:{at_s:02d}.000Z", "progress": value}


def drawn(columns: int, *frames: dict[str, Any], title: str = "waiting for etl.run") -> list[str]:
    screen = Screen(title, events=False)
    for frame in frames:
        screen.take(frame)
    paper = Console(file=StringIO(), width=columns, color_system=None, legacy_windows=False, force_terminal=True)
    paper.print(screen)
    assert isinstance(paper.file, StringIO)
    return re.sub("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "*", paper.file.getvalue()).splitlines()


RUNNING = (event("CLEANING"), progress(0, 10_000), progress(1, 12_000))


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (20, "* CLEANING  12,000 …"),
        (50, "* CLEANING  ━  12,000 of 100,000 (12 %)"),
        (45, "* CLEANING  12,000 of 100,000 (12 %)"),
        (60, "* CLEANING  12,000 of 100,000 (12 %)  2,000/s, 44 s left"),
        (80, "* CLEANING  ━━╸  12,000 of 100,000 (12 %)  2,000/s, 44 s left"),
        (120, "* CLEANING  ━━━╸  12,000 of 100,000 (12 %)  2,000/s, 44 s left  第 4 块 of the file orders-20…"),
    ],
)
def test_a_terminal_shows_one_line_of_what_it_has_room_for(columns: int, line: str) -> None:
    [found] = drawn(columns, *RUNNING)
    assert cell_len(found) <= columns
    assert re.sub(r" {2,}", "  ", found.rstrip()) == line


def test_before_anything_is_told_it_says_what_is_waited_for_and_for_how_long() -> None:
    assert drawn(80) == ["* waiting for etl.run  0 s"]
    assert drawn(80, event("LOADING")) == ["* LOADING  0 s"]
    assert drawn(80, event("LOADING", "WAITING")) == ["* WAITING LOADING  0 s"]
    assert drawn(80, event("CANCELLED", "CANCELLED")) == ["* CANCELLED  0 s"]
    assert drawn(20, title="waiting for what has a long name") == ["* waiting for what …"]


def test_another_state_takes_the_progress_of_the_last_one_away() -> None:
    assert drawn(80, *RUNNING, event("LOADING")) == ["* LOADING  0 s"]
    assert "12,000 of 100,000" in drawn(80, *RUNNING, event("CLEANING"))[0], "a try of the same state does not"


def test_without_a_total_there_is_no_bar_and_no_end() -> None:
    assert drawn(80, progress(0, 10, None, None), progress(2, 30, None, None)) == ["* CLEANING  30  10/s"]
    assert "━" not in drawn(80, progress(0, 0, 0, None))[0]


def test_what_a_mission_says_does_not_take_the_terminal_over() -> None:
    assert drawn(80, progress(0, 1, None, "\x1b[2J[bold]x"))[0].endswith("1  �[2J[bold]x")


@given(room=st.integers(-5, 300), share=st.booleans(), texts=st.tuples(*[st.integers(0, 300)] * 3))
def test_no_line_is_longer_than_its_room(room: int, share: bool, texts: tuple[int, int, int]) -> None:
    figures, pace, doing = texts
    shared = shared_out(room, share=share, figures=figures, pace=pace, doing=doing)
    assert sum(width + GAP for width in shared if width) <= max(room, 0)
    assert all(width >= 0 for width in shared)
    bar, *told = shared
    assert all(width <= wanted for width, wanted in zip(told, texts, strict=True))
    assert not bar or (share and told[0] == figures)
    assert not told[2] or told[0] == figures


def test_a_pipe_gets_a_line_a_second_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    lines = Lines(events=True, clock=lambda: now)
    for at, done in ((100.0, 1), (100.2, 2), (100.9, 3), (101.0, 4), (101.1, 5)):
        now = at
        lines.take(progress(round(at * 10) % 60, done, message=None))
    lines.take(event("LOADING"))
    now = 103.0
    lines.take(progress(50, 9, None, None))
    said = capsys.readouterr()
    out, err = ([line.split("  ", 1)[1].split(None, 2) for line in text.splitlines()] for text in said)
    assert out == [["RUNNING", "LOADING"]]
    assert err == [
        ["RUNNING", "CLEANING", "1 of 100,000 (0 %)"],
        ["RUNNING", "CLEANING", "4 of 100,000 (0 %), 18/min, 3 d 20 h left"],
        ["RUNNING", "CLEANING", "9, 48/min"],
    ]


class Guarded:
    """A client behind something that lets no sockets through."""

    async def watch(self, _id: str, _after: int) -> AsyncIterator[dict[str, Any]]:
        yield event("CLEANING")
        raise ClientProblem({"status": 400, "code": "refused", "title": "no sockets here"})

    async def wait(self, id_: str) -> dict[str, Any]:
        return {"task_id": id_}


async def test_where_no_socket_is_to_be_had_the_result_comes_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert await followed(cast("Any", Guarded()), "m", Lines(events=True)) == {"task_id": "m"}
    assert "CLEANING" in capsys.readouterr().out


def test_who_only_waits_for_the_result_gets_no_events(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(events=False)
    for frame in (event("CLEANING"), progress(0, 1, 2, "x"), event("LOADING")):
        lines.take(frame)
    assert capsys.readouterr() == ("", "CLEANING  1 of 2 (50 %): x\n")


def test_with_a_question_it_is_said_how_to_answer(capsys: pytest.CaptureFixture[str]) -> None:
    asks = event("ASKING") | {"data": {"spoken": "In which room?", "question": "where"}}
    acts = event("EXECUTING") | {"data": {"spoken": "OK, turning on the light."}}
    aloud = Aloud(Lines(events=False), way_to_answer("04A", None))
    aloud.take(asks)
    aloud.take(acts)
    way = 'Answer from another terminal: dualloop missions event 04A ANSWERED --data \'{"text": "…"}\''
    assert capsys.readouterr().out.splitlines() == ["In which room?", way, "OK, turning on the light."]
    assert way_to_answer("04A", "the hall").endswith(""" dualloop send "…" --session 'the hall'""")
    Aloud(Lines(events=False)).take(asks)
    assert capsys.readouterr().out == "In which room?\n", "who hears of it after the answer has none to give"


def test_what_is_said_to_a_person_is_told_as_it_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    lines, asks = (
        Lines(events=True),
        {"spoken": "在哪个房间？\nHall?", "question": "which_area", "candidates": ["hall"]},
    )
    for data in (asks, {"spoken": "All right."}, {"spoken": None}, {"spoken": ""}):
        lines.take(event("ASKING") | {"data": data})
    said = [line.split("ASKING  ")[-1] for line in capsys.readouterr().out.splitlines()]
    assert said == ["asks: 在哪个房间？ Hall?", "says: All right", '{"spoken":null}', '{"spoken":""}']


def test_a_child_s_end_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"event": "child", "task_id": "04X", "type": "firmware.update", "status": "FAILED", "code": "device_refused"}
    lines = Lines(events=True)
    for one in (data, {**data, "name": "gadget.0013"}, {**data, "status": "SUCCEEDED", "code": None}):
        lines.take(event("CLEANING") | {"data": one})
    ends = [line.split("  ")[-1] for line in capsys.readouterr().out.splitlines()]
    assert ends == [
        "child 04X FAILED, device_refused",
        "child gadget.0013 FAILED, device_refused",
        "child 04X SUCCEEDED",
    ]
