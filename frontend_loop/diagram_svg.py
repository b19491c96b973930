"""A mission type as an SVG: a picture that stands alone, in light and dark, without scripts. Pure.

All colours are attributes, so that it can be read where a policy (CSP) keeps the style sheet out, and by programs that
know no variables; the style sheet only adds the dark theme. A page that has themes of its own sets the variables
``--diagram-…`` on any element around it.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from frontend_loop.diagram import Diagram, Edge, Label, Mark, Node, Way, width
from frontend_loop.diagram_layout import Gaps, Layout, Line, Point, Route, Size, layout
from shared.status import Status

FONT: Final = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"
NAME, SMALL, LETTER = 13, 11.5, 0.605  # sizes of letters in px; width of one of 1 px in the widest of the fonts
MARGIN, LEGEND = 20.0, 24.0
CORNER, ARROW = 7.0, 7.0
LOOP = 26.0  # how far a line from a box to itself goes out

COLOURS: Final = {
    "paper": ("#ffffff", "#0f172a"),
    "ink": ("#0f172a", "#f1f5f9"),
    "soft": ("#475569", "#a8b5c8"),
    "line": ("#64748b", "#94a3b8"),
    "box": ("#f8fafc", "#1e293b"),
    "acts": ("#b45309", "#f59e0b"),
    "outside": ("#1d4ed8", "#93c5fd"),
    "succeeded": ("#15803d", "#4ade80"),
    "failed": ("#b91c1c", "#f87171"),
    "cancelled": ("#4b5563", "#9ca3af"),
}
"""By meaning: light, dark."""

WAYS: Final = {Way.EVENT: "ink", Way.TIME: "soft", Way.OUTSIDE: "outside"}
ENDS: Final = {Status.SUCCEEDED: "succeeded", Status.FAILED: "failed", Status.CANCELLED: "cancelled"}


def _rules(theme: int, indent: str = "") -> Iterator[str]:
    for name, colours in COLOURS.items():
        colour = f"var(--diagram-{name}, {colours[theme]})"
        yield f"{indent}.dualloop-diagram .f-{name} {{ fill: {colour} }}"
        yield f"{indent}.dualloop-diagram .s-{name} {{ stroke: {colour} }}"


DARK: Final = "@media (prefers-color-scheme: dark)"
# what knows no variables would otherwise paint all of it black: it takes the rule, and then has no colour for it
KNOWS_VARIABLES: Final = "@supports (fill: var(--diagram-ink))"
STYLE: Final = "\n".join(("", f"{KNOWS_VARIABLES} {{", *_rules(0), f"{DARK} {{", *_rules(1, "  "), "}", "}", ""))

POLICY: Final = (
    "default-src 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'; sandbox"
)
"""What a browser is to let a bare document do: nothing but its one style sheet."""


class _Sizes(NamedTuple):
    box: Size
    loop: Edge | None


def svg(drawn: Diagram) -> str:
    """The document; it may stand in a page as it is."""
    sizes = {node.name: _size(node, drawn.edges) for node in drawn.nodes}
    edges = [edge for edge in drawn.edges if edge.source != edge.target]
    lines = [_line(drawn, edge) for edge in edges]
    ends = [node.name for node in drawn.nodes if node.end]
    placed = layout({name: size.box for name, size in sizes.items()}, lines, ends, Gaps(across=20, down=20))
    legend = _legend(drawn)
    wide = max(placed.width, _wide(drawn.title, NAME), *(_wide(text, SMALL) + 34 for text, _ in legend)) + 2 * MARGIN
    first = MARGIN + NAME + 44  # title, and the dot where missions begin
    high = first + placed.height + MARGIN + (LEGEND * len(legend) + 6 if legend else 0)
    shift = Point((wide - placed.width) / 2, first)
    body = [
        *(line for edge, route in zip(edges, placed.routes, strict=True) for line in _path(route, shift)),
        *_begin(placed.boxes[drawn.nodes[0].name], sizes[drawn.nodes[0].name].box, shift),
        *(line for node in drawn.nodes for line in _box(node, sizes[node.name], placed, shift)),
        *(
            line
            for edge, route in zip(edges, placed.routes, strict=True)
            for line in _told(edge.labels, route.label, shift)
        ),
        *_legend_lines(legend, first + placed.height + MARGIN + 6),
    ]
    return "\n".join((*_head(drawn, wide, high), *body, "</svg>", ""))


def _head(drawn: Diagram, wide: float, high: float) -> Iterator[str]:
    name = "diagram-" + re.sub(r"[^a-z0-9]+", "-", drawn.title.lower()).strip("-")
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dualloop-diagram" role="img" width="{wide:.0f}" '
        f'height="{high:.0f}" viewBox="0 0 {wide:.0f} {high:.0f}" font-family={quoteattr(FONT)} '
        f'aria-labelledby="{name}-title {name}-about">'
    )
    yield f'<title id="{name}-title">{escape(f"States of {drawn.title}")}</title>'
    yield f'<desc id="{name}-about">{escape(_spoken(drawn))}</desc>'
    yield f"<style>{STYLE}</style>"
    yield f'<rect width="100%" height="100%" rx="10" {_paint("paper")}/>'
    yield _text(Point(MARGIN, MARGIN + NAME / 2), drawn.title, NAME, "soft", weight=600, anchor="start")


def _spoken(drawn: Diagram) -> str:
    """The whole as sentences, for whoever cannot see it."""
    said = [f"Begins in {drawn.nodes[0].name}."]
    for node in drawn.nodes:
        ways = [
            f"{', '.join(label.text for label in edge.labels)} leads to {edge.target}"
            for edge in drawn.edges
            if edge.source == node.name
        ]
        about = f" ({', '.join((*node.marks, *node.notes))})" if node.marks or node.notes else ""
        if ways:
            said.append(f"{node.name}{about}: {'; '.join(ways)}.")
    return " ".join(([drawn.about] if drawn.about else []) + said)


def _line(drawn: Diagram, edge: Edge) -> Line:
    return Line(edge.source, edge.target, _label_size(edge.labels), drawn.backward(edge), drawn.main(edge))


def _size(node: Node, edges: Iterable[Edge]) -> _Sizes:
    about = _about(node)
    half = max(_wide(node.name, NAME), _wide(about, SMALL)) / 2 + 14
    loop = next((edge for edge in edges if edge.source == edge.target == node.name), None)
    more = LOOP + 6 + _label_size(loop.labels).right * 2 if loop else 0.0
    return _Sizes(Size(half, half + more, 48.0 if about else 34.0), loop)


def _about(node: Node) -> str:
    return " · ".join((*node.marks, *node.notes))


def _label_size(labels: tuple[Label, ...]) -> Size:
    half = max(_wide(_label(label), SMALL) for label in labels) / 2 + 4
    return Size(half, half, 15.0 * len(labels) + 2)


def _label(label: Label) -> str:
    return label.text + (" / skipped" if label.skips and label.text != "skipped" else "")


def _path(route: Route, shift: Point) -> Iterator[str]:
    """A line and its arrow head: straight down through each layer, bent in between."""
    points = [Point(x + shift.x, y + shift.y) for x, y in route.points]
    last, before = points[-1], points[-2]
    way = 1 if last.y > before.y else -1
    tip, points[-1] = last, Point(last.x, last.y - way * ARROW)
    drawn = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
    for one, other in pairwise(points):
        if one.x == other.x:
            drawn.append(f"V{other.y:.1f}")
        else:
            middle = (one.y + other.y) / 2
            drawn.append(f"C{one.x:.1f} {middle:.1f} {other.x:.1f} {middle:.1f} {other.x:.1f} {other.y:.1f}")
    yield f'<path d="{"".join(drawn)}" {_paint(None, "line")} stroke-width="1.4"/>'
    yield _arrow(tip, way)


def _arrow(tip: Point, way: int) -> str:
    back = tip.y - way * (ARROW + 1)
    return f'<path d="M{tip.x:.1f} {tip.y:.1f}L{tip.x - 4:.1f} {back:.1f}h8Z" {_paint("line")}/>'


def _begin(at: Point, size: Size, shift: Point) -> Iterator[str]:
    """The dot where missions begin."""
    x, top = at.x + shift.x, at.y + shift.y - size.height / 2
    yield f'<circle cx="{x:.1f}" cy="{top - 23:.1f}" r="5" {_paint("ink")}/>'
    yield f'<path d="M{x:.1f} {top - 18:.1f}V{top - ARROW:.1f}" {_paint(None, "line")} stroke-width="1.4"/>'
    yield _arrow(Point(x, top), 1)


def _box(node: Node, sizes: _Sizes, placed: Layout, shift: Point) -> Iterator[str]:
    at, size = placed.boxes[node.name], sizes.box
    x, y, half = at.x + shift.x, at.y + shift.y, size.left
    colour = ENDS[Status(node.name)] if node.end else "acts" if Mark.ACTS in node.marks else "line"
    thick = 2.4 if Mark.ACTS in node.marks else 1.4
    dashes = ' stroke-dasharray="5 4"' if Mark.OPTIONAL in node.marks else ""
    yield (
        f'<rect x="{x - half:.1f}" y="{y - size.height / 2:.1f}" width="{2 * half:.1f}" height="{size.height:.1f}" '
        f'rx="{size.height / 2 if node.end else CORNER:g}" {_paint("box", colour)} stroke-width="{thick}"{dashes}/>'
    )
    about = _about(node)
    yield _text(Point(x, y - 8 if about else y), node.name, NAME, colour if node.end else "ink", weight=600)
    if about:
        yield _text(Point(x, y + 11), about, SMALL, "soft")
    if sizes.loop:
        edge, out = sizes.loop, x + half
        yield (
            f'<path d="M{out:.1f} {y - 9:.1f}C{out + LOOP:.1f} {y - 14:.1f} {out + LOOP:.1f} {y + 14:.1f} '
            f'{out + ARROW:.1f} {y + 9:.1f}" {_paint(None, "line")} stroke-width="1.4"/>'
        )
        yield f'<path d="M{out:.1f} {y + 9:.1f}l{ARROW + 1:g} -4v8Z" {_paint("line")}/>'
        told = _label_size(edge.labels)
        yield from _told(edge.labels, Point(out + LOOP + told.left, y), Point(0, 0))


def _told(labels: tuple[Label, ...], at: Point, shift: Point) -> Iterator[str]:
    """Events on a line, on paper of their own."""
    size, x, y = _label_size(labels), at.x + shift.x, at.y + shift.y
    yield (
        f'<rect x="{x - size.left:.1f}" y="{y - size.height / 2:.1f}" width="{size.left + size.right:.1f}" '
        f'height="{size.height:.1f}" rx="3" {_paint("paper")}/>'
    )
    for number, label in enumerate(labels):
        down = (number - (len(labels) - 1) / 2) * 15
        yield _text(Point(x, y + down), _label(label), SMALL, WAYS[label.way], italic=label.way is not Way.EVENT)


def _legend(drawn: Diagram) -> list[tuple[str, str]]:
    """What is explained: only what there is to see."""
    marks = {mark for node in drawn.nodes for mark in node.marks}
    ways = {label.way for edge in drawn.edges for label in edge.labels}
    known = [
        (Mark.ACTS in marks, "acts on something outside", "acts"),
        (Mark.OPTIONAL in marks, "optional: skipped when it finally fails", "optional"),
        (Mark.UNDO in marks, "is undone if the mission fails later", "undo"),
        (Way.OUTSIDE in ways, "event from outside", "outside"),
    ]
    return [(text, look) for there, text, look in known if there]


def _legend_lines(legend: list[tuple[str, str]], top: float) -> Iterator[str]:
    for number, (text, look) in enumerate(legend):
        y = top + LEGEND * number
        if look == "outside":
            yield _text(Point(MARGIN + 13, y), "abc", SMALL, "outside", italic=True)
        elif look == "undo":
            yield _text(Point(MARGIN + 13, y), "undo", SMALL, "soft")
        else:
            more = 'stroke-width="2.4"' if look == "acts" else 'stroke-width="1.4" stroke-dasharray="5 4"'
            colour = "acts" if look == "acts" else "line"
            yield f'<rect x="{MARGIN}" y="{y - 7:.1f}" width="26" height="14" rx="4" {_paint("box", colour)} {more}/>'
        yield _text(Point(MARGIN + 36, y), text, SMALL, "soft", anchor="start")


def _text(  # noqa: PLR0913  what a text can look like
    at: Point, text: str, size: float, colour: str, *, weight: int = 400, italic: bool = False, anchor: str = "middle"
) -> str:
    style = ' font-style="italic"' if italic else ""
    return (
        f'<text x="{at.x:.1f}" y="{at.y + size * 0.35:.1f}" font-size="{size}" font-weight="{weight}" '
        f'text-anchor="{anchor}"{style} {_paint(colour)}>{escape(text)}</text>'
    )


def _wide(text: str, size: float) -> float:
    return width(text) * size * LETTER


def _paint(fill: str | None, stroke: str | None = None) -> str:
    """The colours of a shape: as classes for the style sheet, and as they are without one."""
    classes = [f"f-{fill}"] if fill else []
    classes += [f"s-{stroke}"] if stroke else []
    inside = COLOURS[fill][0] if fill else "none"
    outline = f' stroke="{COLOURS[stroke][0]}"' if stroke else ""
    return f'class="{" ".join(classes)}" fill="{inside}"{outline}'
