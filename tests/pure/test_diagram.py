"""What is drawn of a mission type: nothing missing, nothing in the way of something else, nothing that bites."""

import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend_loop.missions.device_control import DeviceControl
from frontend_loop.diagram import Diagram, Mark, Way, diagram, width
from frontend_loop.diagram_layout import Gaps, Line, Size, layout, spread
from frontend_loop.diagram_mermaid import mermaid
from frontend_loop.diagram_svg import POLICY, STYLE, svg
from frontend_loop.diagram_text import text
from shared.catalogue import Row
from shared.status import TERMINAL

SVG = "{http://www.w3.org/2000/svg}"


def machine(*ways: str, **more: object) -> Row:
    """A row out of ``"FROM event TO"``."""
    transitions = [dict(zip(("from", "event", "to"), way.split(), strict=True)) for way in ways]
    names = dict.fromkeys(name for one in transitions for name in (one["from"], one["to"]) if name not in TERMINAL)
    states = {name: {"timeout_s": 30.0, "acting": False, "retry": {"tries": 5}} for name in names}
    fields = {"type": "test.drawn", "version": 1, "payload_schema": {}, "initial": next(iter(states)), "states": states}
    return Row.model_validate(fields | {"transitions": transitions} | more)


ORDER = machine(
    "RECEIVED ok CHARGING",
    "CHARGING charged AWAITING",
    "CHARGING declined FAILED",
    "AWAITING PAID PACKING",
    "AWAITING timed_out CHARGING",
    "PACKING again PACKING",
    "PACKING missing RECEIVED",
    "PACKING packed NOTIFYING",
    "NOTIFYING sent SUCCEEDED",
    events=["PAID"],
    optional=["NOTIFYING"],
    undos=["CHARGING"],
)
ORDER.states["CHARGING"]["acting"] = True
ORDER.states["NOTIFYING"] |= {"runs": "thread", "uses": ["mail"]}
LINEAR = machine("A done B", "B done C", "C done SUCCEEDED")
HUB = machine(*(f"IDLE to_{name} {name}" for name in "ABCDE"), *(f"{name} back IDLE" for name in "ABCDE"))
BIG = machine(
    *(f"S{number:02} done {f'S{number + 1:02}' if number < 19 else 'SUCCEEDED'}" for number in range(20)),
    *(f"S{number:02} broken FAILED" for number in range(0, 20, 3)),
    "S03 ahead S07",
    "S12 back S01",
)
ROWS = {"device": DeviceControl.definition.row(), "linear": LINEAR, "order": ORDER, "hub": HUB, "big": BIG}
every = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


def test_a_row_is_read_as_it_is_meant() -> None:
    drawn = diagram(ORDER)
    assert [node.name for node in drawn.nodes] == [
        *("RECEIVED", "CHARGING", "AWAITING", "PACKING", "NOTIFYING", "SUCCEEDED", "FAILED")
    ]
    nodes = {node.name: node for node in drawn.nodes}
    assert nodes["CHARGING"].marks == (Mark.ACTS, Mark.UNDO)
    assert nodes["NOTIFYING"].marks == (Mark.OPTIONAL,)
    assert nodes["NOTIFYING"].notes == ("30 s", "5 tries", "in a thread", "uses mail")
    labels = {label.text: label for edge in drawn.edges for label in edge.labels}
    assert (labels["PAID"].way, labels["timed_out"].way, labels["ok"].way) == (Way.OUTSIDE, Way.TIME, Way.EVENT)
    assert [name for name, label in labels.items() if label.skips] == ["sent"]
    assert [(edge.source, edge.target) for edge in drawn.edges if drawn.backward(edge)] == [
        *(("AWAITING", "CHARGING"), ("PACKING", "PACKING"), ("PACKING", "RECEIVED"))
    ]


def test_events_between_the_same_two_states_share_a_line() -> None:
    [edge] = diagram(machine("A yes SUCCEEDED", "A no SUCCEEDED")).edges
    assert [label.text for label in edge.labels] == ["yes", "no"]


@every
def test_each_drawing_has_all_states_and_events(row: Row) -> None:
    names = {name for one in row.transitions for name in (one["from"], one["to"])}
    events = {one["event"] for one in row.transitions}
    for told in (mermaid(diagram(row)), svg(diagram(row)), text(diagram(row))):
        assert not [name for name in names | events if not re.search(rf"\b{name}\b", told)]


def test_mermaid_as_it_is_written_down() -> None:
    assert mermaid(diagram(ORDER)).splitlines() == [
        "stateDiagram-v2",
        "    accTitle: test.drawn#64;1",
        "    direction TB",
        '    state "RECEIVED<br/>30 s, 5 tries" as RECEIVED',
        '    state "CHARGING<br/>acts, undo, 30 s, 5 tries" as CHARGING',
        '    state "AWAITING<br/>30 s, 5 tries" as AWAITING',
        '    state "PACKING<br/>30 s, 5 tries" as PACKING',
        '    state "NOTIFYING<br/>optional, 30 s, 5 tries, in a thread, uses mail" as NOTIFYING',
        "    [*] --> RECEIVED",
        "    RECEIVED --> CHARGING: ok",
        "    CHARGING --> AWAITING: charged",
        "    CHARGING --> FAILED: declined",
        "    AWAITING --> PACKING: PAID (from outside)",
        "    AWAITING --> CHARGING: timed_out",
        "    PACKING --> PACKING: again",
        "    PACKING --> RECEIVED: missing",
        "    PACKING --> NOTIFYING: packed",
        "    NOTIFYING --> SUCCEEDED: sent (or skipped)",
        "    SUCCEEDED --> [*]",
        "    FAILED --> [*]",
        "    classDef acts stroke:#b45309,stroke-width:3px",
        "    class CHARGING acts",
        "    classDef optional stroke-dasharray:5 4",
        "    class NOTIFYING optional",
        "    classDef succeeded fill:#dcfce7,stroke:#15803d,color:#14532d",
        "    class SUCCEEDED succeeded",
        "    classDef failed fill:#fee2e2,stroke:#b91c1c,color:#7f1d1d",
        "    class FAILED failed",
    ]


def test_words_of_mermaid_are_no_states_to_it() -> None:
    told = mermaid(diagram(machine("NOTE_TAKING done END", "END done CLASS", "CLASS done SUCCEEDED")))
    assert "    [*] --> s0\n    s0 --> s1: done\n    s1 --> s2: done\n    s2 --> SUCCEEDED: done\n" in told
    assert 'state "NOTE_TAKING<br/>30 s, 5 tries" as s0' in told


def test_the_text_as_it_is_printed() -> None:
    assert text(diagram(ORDER)).splitlines() == [
        "● RECEIVED  30 s · 5 tries ◀─────────────────────────────────────────┐",
        "│  ok                                                                │",
        "▼                                                                    │",
        "◆ CHARGING  acts · undo · 30 s · 5 tries ◀────────────────────────┐  │",
        "├─ declined ──────────────────────────────────────────────────────┼──┼──┐",
        "│  charged                                                        │  │  │",
        "▼                                                                 │  │  │",
        "● AWAITING  30 s · 5 tries                                        │  │  │",
        "├─ timed_out (time is up) ────────────────────────────────────────┘  │  │",
        "│  PAID (from outside)                                               │  │",
        "▼                                                                    │  │",
        "● PACKING  30 s · 5 tries ◀───────────────────────────────────────┐  │  │",
        "├─ again ─────────────────────────────────────────────────────────┘  │  │",
        "├─ missing ──────────────────────────────────────────────────────────┘  │",
        "│  packed                                                               │",
        "▼                                                                       │",
        "● NOTIFYING  optional · 30 s · 5 tries · in a thread · uses mail        │",
        "│  sent (or skipped)                                                    │",
        "▼                                                                       │",
        "■ SUCCEEDED                                                             │",
        "■ FAILED ◀──────────────────────────────────────────────────────────────┘",
    ]


def test_a_narrow_terminal_has_less_of_it() -> None:
    narrow = text(diagram(ORDER), room=60)
    assert max(map(width, narrow.splitlines())) <= 60
    assert "◆ CHARGING  acts · undo ◀" in narrow


@every
def test_each_line_of_the_text_begins_and_ends_somewhere(row: Row) -> None:
    """Cell by cell: what leads out of one leads into the next."""
    right, left = set("─┼◀"), set("─┼┐┤┘")
    down, up = set("│┼┐┤"), set("│┼┤┘")
    lines = [line.ljust(200) for line in text(diagram(row)).splitlines()]
    for line in lines:
        for one, other in pairwise(line[3:]):
            assert other in left or one not in right, line
    for upper, lower in pairwise(lines):
        for x in range(3, 200):
            assert (upper[x] in down) == (lower[x] in up), (upper, lower, x)


def read(document: str) -> ET.Element:
    return ET.fromstring(document)  # noqa: S314  our own


def boxes(document: str) -> Iterator[tuple[float, float, float, float]]:
    """Left, top, right, bottom of what may not overlap: boxes of states, and papers of labels."""
    for rect in read(document).iter(f"{SVG}rect"):
        if rect.get("width") != "100%" and rect.get("width") != "26":
            x, y, wide, high = (float(rect.get(name, "")) for name in ("x", "y", "width", "height"))
            yield x, y, x + wide, y + high


@every
def test_nothing_lies_on_anything_else_in_the_svg(row: Row) -> None:
    document = svg(diagram(row))
    found = list(boxes(document))
    root = read(document)
    assert len(found) >= len(row.states) + len(diagram(row).edges)
    for at, (left, top, right, bottom) in enumerate(found):
        assert left >= 0
        assert top >= 0
        assert right <= float(root.get("width", ""))
        assert bottom <= float(root.get("height", ""))
        for other in found[:at]:
            apart = left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]
            assert apart, (found[at], other)


def test_an_svg_tells_those_who_cannot_see_it() -> None:
    root = read(svg(diagram(ORDER)))
    title, about = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert about is not None
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == f"{title.get('id')} {about.get('id')}"
    assert title.text == "States of test.drawn@1"
    assert "CHARGING (acts, undo, 30 s, 5 tries): charged leads to AWAITING; declined leads to FAILED." in str(
        about.text
    )


def test_only_what_is_there_is_explained() -> None:
    assert "acts on something outside" not in svg(diagram(LINEAR))
    for words in ("acts on something outside", "optional: skipped", "event from outside", "is undone if"):
        assert words in svg(diagram(ORDER))


def test_an_svg_has_its_one_style_sheet_and_its_policy_allows_only_that() -> None:
    root = read(svg(diagram(ORDER)))
    assert [sheet.text for sheet in root.iter(f"{SVG}style")] == [STYLE]
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; sandbox", POLICY)
    assert "prefers-color-scheme: dark" in STYLE
    # for what knows no variables there is no rule at all, so that the attributes hold and not black
    assert re.fullmatch(r"\n@supports \(fill: var\(--diagram-ink\)\) \{(\n[. @}].*)*\n\}\n", STYLE)
    assert not [
        name for tag in root.iter() for name in tag.attrib if name.startswith("on") or "href" in name or name == "style"
    ]


HOSTILE = (
    "<script>alert(1)</script>",
    "a\"b'",
    "]]>",
    "&amp;",
    "x\x00y\ud800",
    "%% x --> y;",
    "#35;",
    "客厅",
    "\u202eabc",
)


def test_names_of_whatever_kind_stay_text() -> None:
    ways = [
        f"{name.replace(' ', '_')} {event.replace(' ', '_')} SUCCEEDED"
        for name, event in zip(HOSTILE, HOSTILE[::-1], strict=True)
    ]
    row = machine(*ways, type="x<&\"'>", description="<b>&\x1b[31m")
    document = svg(diagram(row))
    allowed = {"svg", "title", "desc", "style", "rect", "path", "circle", "text"}
    assert {tag.tag.removeprefix(SVG) for tag in read(document).iter()} <= allowed
    flow = mermaid(diagram(row))
    assert "<" not in flow.replace("<br/>", "")
    assert "%%" not in flow
    for told in (document, flow, text(diagram(row))):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e\ud800-\udfff]", told)
        told.encode()


names = st.sampled_from("ABCDEFGH")
machines = st.lists(
    st.tuples(names, st.sampled_from(("x", "yyyyyyyy")), names | st.sampled_from(sorted(TERMINAL))),
    min_size=1,
    max_size=20,
)


@settings(deadline=None, max_examples=150)
@given(machines)
def test_any_machine_can_be_drawn(ways: list[tuple[str, str, str]]) -> None:
    drawn = diagram(machine(*(" ".join(way) for way in ways)))
    assert {edge.source for edge in drawn.edges} <= {node.name for node in drawn.nodes}
    found = list(boxes(svg(drawn)))
    for at, one in enumerate(found):
        for other in found[:at]:
            assert one[0] >= other[2] or one[2] <= other[0] or one[1] >= other[3] or one[3] <= other[1]
    assert mermaid(drawn).startswith("stateDiagram-v2\n")
    assert text(drawn).count("\n") >= len(drawn.nodes) - 1


def test_a_lonely_state_is_drawn() -> None:
    row = Row.model_validate(
        {"type": "a.b", "version": 1, "payload_schema": {}, "initial": "A", "states": {}, "transitions": []}
    )
    assert "A" in svg(diagram(row))
    assert text(diagram(row)) == "● A"


@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=8).flatmap(
        lambda wishes: st.tuples(
            st.just(wishes), st.lists(st.floats(0, 30), min_size=len(wishes) - 1, max_size=len(wishes) - 1)
        )
    )
)
def test_spreading_keeps_order_and_room_and_moves_nobody_without_need(given_: tuple[list[float], list[float]]) -> None:
    wishes, room = given_
    places = spread(wishes, [1.0] * len(wishes), room)
    gaps = [other - one for one, other in pairwise(places)]
    assert all(gap >= least - 1e-6 for gap, least in zip(gaps, room, strict=True))
    assert sum(places) == pytest.approx(sum(wishes), abs=1e-6)
    if all(other - one >= least for (one, other), least in zip(pairwise(wishes), room, strict=True)):
        assert places == pytest.approx(wishes, abs=1e-6)


def test_a_long_way_passes_beside_the_boxes() -> None:
    size = Size(20, 20, 20)
    lines = [Line("a", "b", size), Line("b", "c", size), Line("a", "c", size), Line("c", "a", size, backward=True)]
    placed = layout({"a": size, "b": size, "c": size}, lines, [], Gaps())
    x, y = placed.boxes["b"]
    for route in placed.routes[2:]:
        beside = [point for point in route.points if abs(point.y - y) <= 10]
        assert beside
        assert all(abs(point.x - x) >= 20 for point in beside)
    up = placed.routes[3].points
    assert up[0].y > up[-1].y


def test_the_same_row_is_always_drawn_the_same() -> None:
    drawn: list[Diagram] = [diagram(BIG), diagram(BIG.model_copy())]
    assert svg(drawn[0]) == svg(drawn[1])
