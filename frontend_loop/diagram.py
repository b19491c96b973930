"""A mission type as something to draw: what its catalogue row says of states and the ways between them. Pure.

One description for three drawings: Mermaid for documents, SVG for browsers, text for terminals.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from shared.catalogue import Row
from shared.status import TERMINAL, Status

ENDS: Final = (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED)
"""In the order in which they are drawn: they come last."""

SKIPPED: Final = "skipped"
TIMED_OUT: Final = "timed_out"

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


class Way(StrEnum):
    """What makes a mission take a transition."""

    EVENT = "event"
    OUTSIDE = "outside"
    TIME = "time"


class Mark(StrEnum):
    """What a reader should notice of a state before anything else, in the words that are drawn."""

    ACTS = "acts"
    OPTIONAL = "optional"
    UNDO = "undo"


@dataclass(frozen=True, slots=True)
class Label:
    """An event of a transition, and what brings it."""

    text: str
    way: Way = Way.EVENT
    skips: bool = False
    """It is also what happens when an optional state is skipped."""


@dataclass(frozen=True, slots=True)
class Node:
    """A state, or one of the three ends.

    Args:
        marks: what is special about it.
        notes: its limits and needs, as words: ``4 tries``, ``10 s``, ``in a thread``, ``uses bank``.
    """

    name: str
    end: bool = False
    marks: tuple[Mark, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edge:
    """All transitions from one state to another."""

    source: str
    target: str
    labels: tuple[Label, ...]


@dataclass(frozen=True, slots=True)
class Diagram:
    """What is drawn. `nodes` stand in reading order: the first is where missions begin, the ends come last."""

    title: str
    about: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    def backward(self, edge: Edge) -> bool:
        """True for an edge that leads to a state already passed, or to itself."""
        names = [node.name for node in self.nodes]
        return names.index(edge.target) <= names.index(edge.source)

    def main(self, edge: Edge) -> bool:
        """True for an edge on the way that is read first: from a state to the next one, or to success."""
        names = [node.name for node in self.nodes]
        follows = names.index(edge.target) == names.index(edge.source) + 1
        return edge.target == Status.SUCCEEDED or (follows and edge.target not in TERMINAL)


def diagram(row: Row) -> Diagram:
    """What a catalogue row says of the states. A row of whatever release gives something to draw."""
    ways: dict[tuple[str, str], list[Label]] = {}
    optional = {name: _skip_event(row, name) for name in row.states if _optional(row, name)}
    for one in row.transitions:
        source, target, event = one.get("from", ""), one.get("to", ""), one.get("event", "")
        way = Way.TIME if event == TIMED_OUT else Way.OUTSIDE if event in row.events else Way.EVENT
        skips = source in optional and event == optional[source]
        ways.setdefault((clean(source), clean(target)), []).append(Label(clean(event), way, skips))
    nodes = {clean(name): _node(row, name) for name in row.states}
    for pair in ways:
        for name in pair:
            nodes.setdefault(name, Node(name, end=name in TERMINAL))
    first = clean(row.initial)
    nodes.setdefault(first, Node(first))
    edges = tuple(Edge(source, target, tuple(labels)) for (source, target), labels in ways.items())
    ordered = reading_order(first, nodes, edges)
    return Diagram(clean(row.kind), clean(row.description.partition("\n")[0]), tuple(nodes[n] for n in ordered), edges)


def reading_order(first: str, names: Iterable[str], edges: Iterable[Edge]) -> list[str]:
    """`first`, then each state after as many of those that lead to it as loops allow; what is left; then the ends."""
    after: dict[str, list[str]] = {name: [] for name in (first, *names)}
    for edge in edges:
        after[edge.source].append(edge.target)
    seen, finished = set[str](), list[str]()
    for root, reached in after.items():
        stack = [] if root in seen else [(root, iter(reversed(reached)))]
        seen.add(root)
        tree = list[str]()
        while stack:
            name, targets = stack[-1]
            for target in targets:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(reversed(after[target]))))
                    break
            else:
                tree.append(name)
                stack.pop()
        finished = finished + tree[::-1]
    return [name for name in finished if name not in TERMINAL] + [end for end in ENDS if end in after]


def width(text: str) -> int:
    """Cells that a text takes where each letter is as wide as the next one; Chinese ones take two."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def clean(text: str) -> str:
    """In one line, without what no document may carry or what would take over a terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def _node(row: Row, name: str) -> Node:
    spec = row.states[name]
    marks = [
        *([Mark.ACTS] if spec.get("acting") else []),
        *([Mark.OPTIONAL] if _optional(row, name) else []),
        *([Mark.UNDO] if name in row.undos else []),
    ]
    retry, timeout_s = spec.get("retry"), spec.get("timeout_s")
    tries = retry.get("tries") if isinstance(retry, Mapping) else None
    notes = [
        *([f"{timeout_s:g} s"] if isinstance(timeout_s, int | float) else []),
        *([f"{tries} tries" if tries != 1 else "1 try"] if isinstance(tries, int) else []),
        *([f"in a {clean(str(spec['runs']))}"] if spec.get("runs", "loop") != "loop" else []),
        *(f"uses {clean(str(one))}" for one in spec.get("uses") or ()),
    ]
    return Node(clean(name), marks=tuple(marks), notes=tuple(notes))


def _optional(row: Row, name: str) -> bool:
    return name in row.optional or row.states[name].get("on_failure") == "skip"


def _skip_event(row: Row, name: str) -> str | None:
    """The event that a skipped state takes: `skipped`, else its only one."""
    events = [one.get("event") for one in row.transitions if one.get("from") == name]
    return SKIPPED if SKIPPED in events else events[0] if len(events) == 1 else None
