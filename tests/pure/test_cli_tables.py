"""What a person sees of a table, however narrow the terminal, and what a pipe gets: what one was woken for is there."""

import re
import sys
from collections.abc import Callable
from io import StringIO
from typing import Any, cast

import pytest
from rich.cells import cell_len
from rich.console import Console

from dualloop.cli import dead_letters, doctor, home, missions, output, schedules, tables, types
from dualloop.cli.fitting import Column
from dualloop.cli.following import HANG, event_line
from dualloop.cli.tables import table
from dualloop.doctor.finding import warn
from shared.ids import Ids

IDS = Ids(b"k" * 32)
ID = IDS.new(0, 1_796_000_000_000)
AT = "2026-11-29T18:00:00.000Z"
ERROR = '{"event":"retry","attempt":1,"error":"BusyError: the airline cannot give the seat back"}'
WIDTHS = (40, 60, 80, 100, 140)

Seen = Callable[[int, Callable[[], None]], list[str]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The lines that a call leaves on a terminal of so many columns; none is wider than that."""

    def look(columns: int, call: Callable[[], None]) -> list[str]:
        screen = StringIO()
        console = Console(width=columns, file=screen, force_terminal=True, color_system=None, highlight=False)
        with monkeypatch.context() as patched:
            for module in (output, tables, types, doctor):
                patched.setattr(module, "console", lambda: console)
            patched.setattr(sys.stdout, "isatty", lambda: True)
            call()
        lines = screen.getvalue().splitlines()
        assert [line for line in lines if cell_len(line) > columns] == []
        return lines

    return look


def history() -> None:
    head = (*map(Column, ("SEQ", "TIME", "STATUS", "STATE")), Column("DATA", least=1, folds=True, below=True))
    table(head, [("10", "22:58:02.029", "COMPENSATING", "HOLDING", ERROR), ("11", "22:58:03.001", "RUNNING", "A", "")])


def test_a_history_goes_on_in_the_next_line_and_keeps_every_word(seen: Seen) -> None:
    lines = seen(100, history)
    assert lines[0].split() == ["SEQ", "TIME", "STATUS", "STATE", "DATA"]
    assert lines[1].startswith("10   22:58:02.029  COMPENSATING  HOLDING  {")
    folded = "".join([lines[1].split(maxsplit=4)[4], *lines[2:-1]]).replace(" ", "")
    assert folded == ERROR.replace(" ", "")
    assert len(seen(160, history)) == 3


@pytest.mark.parametrize("columns", [60, 80])
def test_where_it_would_be_a_ribbon_it_stands_below_its_row(seen: Seen, columns: int) -> None:
    lines = seen(columns, history)
    assert lines[0].split() == ["SEQ", "TIME", "STATUS", "STATE"]
    assert lines[1].split() == ["10", "22:58:02.029", "COMPENSATING", "HOLDING"]
    assert all(line.startswith("     ") for line in lines[2:-1])
    assert "".join(lines[2:-1]).replace(" ", "") == ERROR.replace(" ", "")
    assert lines[-1].split() == ["11", "22:58:03.001", "RUNNING", "A"]
    assert len(lines) <= 5


def test_names_in_chinese_are_as_wide_as_they_are(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("light.bedroom", "主卧室的床头灯", "on"), ("light.hall", "门厅灯", "off")]
    head = ("DEVICE", "NAME", "SHOWS")
    whole = [
        "DEVICE         NAME            SHOWS",
        "light.bedroom  主卧室的床头灯  on",
        "light.hall     门厅灯          off",
    ]
    assert seen(80, lambda: table(head, rows)) == whole
    table(head, rows)
    assert capsys.readouterr().out.splitlines() == whole
    cut = seen(30, lambda: table((Column("DEVICE"), Column("NAME", least=4), Column("SHOWS")), rows))
    assert [line.split()[1] for line in cut[1:]] == ["主卧室…", "门厅灯"]
    assert cell_len(cut[1].rpartition("on")[0]) == cell_len(cut[2].rpartition("off")[0])


def test_a_pipe_gets_all_of_it_a_row_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    long = "x" * 900
    table(
        (Column("MISSION", least=4, first=True, goes=3), Column("ERROR", least=4, goes=1), "SEEN"),
        [(ID, f"{long}\nand more", "客"), (ID, "", "")],
        hint="never",
    )
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["MISSION", "ERROR", "SEEN"]
    assert first == f"{ID}  {long} and more  客"
    assert second == ID, "no line ends in blanks"


def test_what_could_take_over_a_terminal_does_not(seen: Seen) -> None:
    lines = seen(80, lambda: table(("A", "B"), [("\x1b[2J\x07one\ntwo", "\u202eright")]))
    assert lines[1] == "�[2J�one two  �right"


def test_what_there_is_no_room_for_is_said(seen: Seen) -> None:
    head = (Column("A", least=10), Column("B", goes=2), Column("C", goes=1), Column("", goes=3))
    rows = [("a" * 30, "b" * 20, "c" * 20, "d" * 9)]
    assert seen(33, lambda: table(head, rows, hint="look."))[-1] == "No room for B: look."
    assert seen(31, lambda: table(head, rows, hint="look."))[-1] == "No room for B, C: look."
    assert "No room" not in "".join(seen(90, lambda: table(head, rows, hint="look.")))
    assert seen(40, lambda: table(head, [("a", "", "", "")], hint="look.")) == ["A  B  C", "a"]


def listed(module: Any, monkeypatch: pytest.MonkeyPatch, found: Any, *args: Any) -> Callable[[], None]:
    monkeypatch.setattr(module, "ask", lambda _work: found)
    return lambda: cast("Any", module.ls)(*args)


def mission(n: int, **more: Any) -> dict[str, Any]:
    told = {"status": "SUCCEEDED", "state": "SUCCEEDED", "waiting_for": None, "type": "device.control"}
    told |= {"target": "light.living_room", "progress": None, "created_at": AT}
    return {"task_id": IDS.new(0, 1_796_000_000_000 + n // 3), **told, **more}


FAR = {"done": 7, "total": 10, "message": None}
MISSIONS = [
    mission(0, status="WAITING", state="CALLING_LOGISTICS", waiting_for="children", type="order.fulfil", progress=FAR),
    mission(1, target="卧室里的一个名字很长很长很长很长的灯"),
    *(mission(n) for n in range(2, 9)),
]


@pytest.mark.parametrize(
    ("columns", "gone"),
    [(60, ["STATE", "TARGET", "DONE"]), (80, ["STATE"]), (100, []), (140, [])],
)
def test_missions(seen: Seen, monkeypatch: pytest.MonkeyPatch, columns: int, gone: list[str]) -> None:
    lines = seen(columns, listed(missions, monkeypatch, (MISSIONS, True)))
    heads = [one for one in ("MISSION", "STATUS", "STATE", "TYPE", "TARGET", "DONE", "AGE") if one not in gone]
    assert lines[0].split() == heads
    rows = lines[1 : 1 + len(MISSIONS)]
    assert "WAITING (children)" in rows[0]
    typed = [row.split("…")[0].split()[0] for row in rows]
    for text, row in zip(typed, MISSIONS, strict=True):
        assert [one["task_id"] for one in MISSIONS if one["task_id"].startswith(text)] == [row["task_id"]]
    said = " ".join(line.strip() for line in lines[1 + len(MISSIONS) :])
    told = [one for one in ("STATE", "TARGET", "DONE", "AGE") if one in gone]
    assert said == (f"No room for {', '.join(told)}: widen the terminal, or see one with show." if gone else "")


def test_where_there_is_none_yet_it_says_how_to_have_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(missions, "ask", lambda _work: ([], True))
    cast("Any", missions.ls)()
    cast("Any", missions.ls)(type_="no.such")
    assert capsys.readouterr().out == "There is no mission. Send one: dualloop send --help\nNo mission fits.\n"


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_doctor_s_words_stay_in_their_column(seen: Seen, columns: int) -> None:
    finding = warn("devices", "announced there: " + "light.客厅的落地灯 (zigbee2mqtt/客厅), " * 9, "look\nthere " * 9)
    lines = seen(columns, lambda: doctor._print(finding))
    assert lines[0].startswith("warn    devices            announced there:")
    assert all(line.startswith(" " * 27) for line in lines[1:])
    assert sum(line[27] == "→" for line in lines) == 1
    assert "".join(lines).count("落地灯") == 9


@pytest.mark.parametrize("columns", WIDTHS)
def test_dead_letters_say_what_went_wrong(seen: Seen, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    letter = {"task_id": ID, "code": "retries_exhausted", "failed_in": "CALLING_LOGISTICS", "type": "order.fulfil"}
    letter |= {"target": "A-3", "ended_at": AT, "message": "ServiceRefused: no carrier goes to Atlantis"}
    lines = seen(columns, listed(dead_letters, monkeypatch, ([letter], True)))
    assert lines[0].startswith("MISSION")
    assert lines[1].startswith(ID[:5])
    assert "ERROR" in lines[0]
    if columns >= 60:
        assert " Service" in lines[1]
        assert lines[-2:] == [
            "Look at one:   dualloop dead-letters show ID",
            "Run it again:  dualloop dead-letters replay ID",
        ]


@pytest.mark.parametrize("columns", WIDTHS[1:])
def test_schedules_say_by_which_name_they_are_called_and_what_is_wrong(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    name, trouble = "a-schedule-with-a-very-long-name-for-the-weekly-export", "no worker knows report.export"
    run: dict[str, Any] = {
        "cron": "0 7 * * 1-5",
        "zone": "America/Argentina/Buenos_Aires",
        "command": {"type": "report.export"},
    }
    run |= {"next": [{"local": "2026-12-01T07:00:00-03:00"}], "last_fired": {"at": AT}, "last_run": None}
    lines = seen(
        columns, listed(schedules, monkeypatch, ([run | {"name": name, "trouble": {"detail": trouble}}], True))
    )
    wide = re.match("SCHEDULE +", lines[0])
    assert wide is not None
    assert "".join(line[: wide.end()].strip() for line in lines[1:] if not line.startswith(" ")).startswith(name)
    assert lines[1].count("2026-12-01T07:00:00-03:00") == 1
    assert "no worker" in " ".join(lines)


@pytest.mark.parametrize(
    ("columns", "heads"),
    [
        (65, ["DEVICE", "SHOWS"]),
        (80, ["AREA", "DEVICE", "SHOWS"]),
        (90, ["AREA", "DEVICE", "NAME", "SHOWS"]),
    ],
)
def test_a_home_shows_how_its_devices_stand(
    seen: Seen, monkeypatch: pytest.MonkeyPatch, columns: int, heads: list[str]
) -> None:
    entity = "climate.living_room"
    named = {"entity": entity, "area": "living_room", "names": {"en": ["living room AC"]}}
    state = {"entity": entity, "value": {"power": "on", "temperature": 24, "mode": "cool"}, "faults": {"lie": True}}
    known = {"areas": [{"id": "living_room"}], "devices": [named]}
    monkeypatch.setattr(home, "ask", lambda _work: (known, [state]))
    lines = seen(columns, cast("Any", home.ls))
    assert lines[0].split() == heads
    assert "power on, temperature 24, mode cool  lies" in lines[1]


@pytest.mark.parametrize("columns", WIDTHS)
def test_types_say_what_they_do(seen: Seen, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    told = "Reach a goal: ask a model what to do, have its tools do it, look at what came of it, and so on."
    row = {"type": "agent.run", "versions": [1, 2], "priority": "normal", "pool": "etl-transform", "target": "order"}
    lines = seen(columns, listed(types, monkeypatch, [row | {"description": told}]))
    at = lines[0].index("WHAT IT DOES")
    assert " ".join(line[at:].strip() for line in lines[1:] if not line.startswith(("No room", "see one"))).startswith(
        told
    )


def test_an_event_that_goes_on_does_so_below_its_status(seen: Seen) -> None:
    event = {
        "at": AT,
        "status": "RUNNING",
        "state": "ASKING",
        "data": {"spoken": "在哪个房间？ " * 12, "question": "x"},
    }
    lines = seen(80, lambda: output.say(event_line(event), hang=HANG))
    assert " RUNNING       ASKING  asks: 在哪个房间？" in lines[0]
    assert all(line.startswith(" " * HANG + "在哪个房间？") for line in lines[1:])
    assert "".join(lines).count("在哪个房间？") == 12


def test_a_long_fact_goes_on_below_its_own_beginning(seen: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    told = {
        "Names": "hall light, hall lamp, 门厅灯, 门厅的灯, 门厅电灯, 灯, 电灯, lights",
        "Area": "hall",
        "Trouble": "",
    }
    lines = seen(40, lambda: output.facts(told))
    assert [line[:11] for line in lines] == ["  Names    ", *2 * ["           "], "  Area     "]
    assert " ".join(line[11:].strip() for line in lines[:3]) == told["Names"]
    output.facts(told)
    assert capsys.readouterr().out == f"  Names    {told['Names']}\n  Area     hall\n"
