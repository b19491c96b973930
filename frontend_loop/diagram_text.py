"""A mission type as text for a terminal: one state under the other, the ways between them drawn beside. Pure.

The way from a state to the next one goes straight down. Every other state that is led to has a bus of its own at the
right, where all that lead to it join; so it stays as narrow as a terminal, however many states there are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from frontend_loop.diagram import Diagram, Edge, Label, Mark, Node, Way, width

STATE, ACTS, END = "●", "◆", "■"
APART: Final = 3
"""Cells from one bus to the next."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A line: what stands left in it, and the bus that it touches, if any; `arrives`: the bus ends here."""

    left: str
    bus: str | None = None
    arrives: bool = False


@dataclass(frozen=True, slots=True)
class _Bus:
    """A vertical line: its first and its last row, and its column."""

    first: int
    last: int
    column: int


def text(drawn: Diagram, room: int = 0) -> str:
    """The lines, without a line break at the end; what does not fit into `room` cells loses the notes of states."""
    whole = _text(drawn, notes=True)
    return _text(drawn, notes=False) if room and max(map(width, whole.splitlines())) > room else whole


def _text(drawn: Diagram, *, notes: bool) -> str:
    rows = [row for at in range(len(drawn.nodes)) for row in _rows(drawn, at, notes=notes)]
    buses = _buses(rows)
    margin = max(width(row.left) for row in rows) + 1
    return "\n".join(_line(at, row, buses, margin).rstrip() for at, row in enumerate(rows))


def _rows(drawn: Diagram, at: int, *, notes: bool) -> Iterator[_Row]:
    """A state, and the ways out of it."""
    node = drawn.nodes[at]
    out = [edge for edge in drawn.edges if edge.source == node.name]
    down = [edge for edge in out if _straight(drawn, edge)]
    sides = [edge for edge in out if edge not in down]
    reached = any(edge.target == node.name and not _straight(drawn, edge) for edge in drawn.edges)
    yield _Row(_head(node, notes=notes), node.name if reached else None, arrives=True)
    labels = [(edge.target, _label(label)) for edge in sides for label in edge.labels]
    for number, (target, label) in enumerate(labels, 1):
        yield _Row(f"{'├' if down or number < len(labels) else '└'}─ {label} ", target)
    for edge in down:
        yield from (_Row(f"│  {_label(label)}") for label in edge.labels)
        yield _Row("▼")
    if not down and at + 1 < len(drawn.nodes) and not node.end:
        yield _Row("")


def _straight(drawn: Diagram, edge: Edge) -> bool:
    names = [node.name for node in drawn.nodes]
    return names.index(edge.target) == names.index(edge.source) + 1


def _head(node: Node, *, notes: bool) -> str:
    begin = END if node.end else ACTS if Mark.ACTS in node.marks else STATE
    about = " · ".join((*node.marks, *(node.notes if notes else ())))
    return f"{begin} {node.name}  {about} ".rstrip() + " "


def _label(label: Label) -> str:
    told = {Way.EVENT: "", Way.TIME: " (time is up)", Way.OUTSIDE: " (from outside)"}[label.way]
    return label.text + told + (" (or skipped)" if label.skips and label.text != "skipped" else "")


def _buses(rows: Sequence[_Row]) -> dict[str, _Bus]:
    """By target; a short one stands further left, and shares its column with those that it does not meet."""
    spans: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        if row.bus is not None:
            spans.setdefault(row.bus, []).append(at)
    buses: dict[str, _Bus] = {}
    for target, (first, *_, last) in sorted(spans.items(), key=lambda span: (span[1][-1] - span[1][0], span[1])):
        taken = {bus.column for bus in buses.values() if bus.first <= last and first <= bus.last}
        buses[target] = _Bus(first, last, next(column for column in range(len(spans)) if column not in taken))
    return buses


def _line(at: int, row: _Row, buses: Mapping[str, _Bus], margin: int) -> str:
    columns = max((bus.column for bus in buses.values()), default=-1) + 1
    cells = [" "] * (margin + APART * columns - width(row.left))
    mine = buses[row.bus] if row.bus is not None else None

    def cell(bus: _Bus) -> int:
        return margin + APART * bus.column - width(row.left)

    if mine is not None:
        cells[: cell(mine)] = "─" * cell(mine)
        if row.arrives:
            cells[0] = "◀"
    for bus in buses.values():
        if bus.first <= at <= bus.last:
            cells[cell(bus)] = "┼" if mine is not None and bus.column < mine.column else "│"
    if mine is not None:
        cells[cell(mine)] = "┐" if at == mine.first else "┘" if at == mine.last else "┤"
    return row.left + "".join(cells)
