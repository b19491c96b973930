"""A mission type as a Mermaid ``stateDiagram-v2``: for documents and for everybody's own renderer. Pure.

Syntax: https://mermaid.js.org/syntax/stateDiagram.html, looked at for Mermaid 11.
"""

import re
from collections.abc import Iterator
from typing import Final

from frontend_loop.diagram import Diagram, Label, Mark, Node, Way
from shared.status import Status

CLASSES: Final = {
    Mark.ACTS: "stroke:#b45309,stroke-width:3px",
    Mark.OPTIONAL: "stroke-dasharray:5 4",
    Status.SUCCEEDED: "fill:#dcfce7,stroke:#15803d,color:#14532d",
    Status.FAILED: "fill:#fee2e2,stroke:#b91c1c,color:#7f1d1d",
    Status.CANCELLED: "fill:#e5e7eb,stroke:#4b5563,color:#1f2937",
}
"""What a class looks like; the ends bring their own dark text, so that they can be read in every theme."""

_PLAIN: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_WORDS: Final = re.compile(
    r"(NOTE|STATE|CLASS|CLASSDEF|STYLE|END|AS|DIRECTION|DEFAULT|CLICK|HREF|SCALE|ACC|HIDE|TITLE)"
)
"""Words that Mermaid reads, in capitals too, even as the beginning of a longer one."""

_SPECIAL: Final = re.compile(r"[^A-Za-z0-9_ .,()/·\u3400-\u9fff]")


def mermaid(drawn: Diagram) -> str:
    """The text, with a line break at its end."""
    ids = {node.name: _id(node.name, number) for number, node in enumerate(drawn.nodes)}
    return "\n".join(("stateDiagram-v2", *(f"    {line}" for line in _lines(drawn, ids)), ""))


def _lines(drawn: Diagram, ids: dict[str, str]) -> Iterator[str]:
    yield f"accTitle: {_escaped(drawn.title)}"
    if drawn.about:
        yield f"accDescr: {_escaped(drawn.about)}"
    yield "direction TB"
    for node in drawn.nodes:
        text = _description(node)
        if text != ids[node.name]:
            yield f'state "{text}" as {ids[node.name]}'
    yield f"[*] --> {ids[drawn.nodes[0].name]}"
    for edge in drawn.edges:
        yield f"{ids[edge.source]} --> {ids[edge.target]}: {'<br/>'.join(map(_label, edge.labels))}"
    for node in drawn.nodes:
        if node.end:
            yield f"{ids[node.name]} --> [*]"
    for name, look in CLASSES.items():
        members = [ids[node.name] for node in drawn.nodes if name in node.marks or name == node.name]
        if members:
            yield f"classDef {name.lower()} {look}"
            yield f"class {','.join(members)} {name.lower()}"


def _id(name: str, number: int) -> str:
    return name if _PLAIN.fullmatch(name) and not _WORDS.match(name) else f"s{number}"


def _description(node: Node) -> str:
    more = ", ".join((*node.marks, *node.notes))
    return f"{_escaped(node.name)}<br/>{_escaped(more)}" if more else _escaped(node.name)


def _label(label: Label) -> str:
    told = {Way.EVENT: "", Way.TIME: "", Way.OUTSIDE: " (from outside)"}[label.way]
    return _escaped(label.text + told + (" (or skipped)" if label.skips and label.text != "skipped" else ""))


def _escaped(text: str) -> str:
    """With entities for all that Mermaid, or the HTML that it makes, could read as something else."""
    return _SPECIAL.sub(lambda letter: f"#{ord(letter[0])};", text)
