"""Where the boxes of a graph go: in layers from top to bottom, with a place of its own for each label. Pure.

The method of Sugiyama, Tagawa and Toda (1981): layers by longest path, an order within each layer that has few
crossings (barycentres, up and down), then coordinates. An edge is a chain of items, one in each layer that it passes:
its label in the first, bends in the others; so no label and no line lies under a box. A backward edge is laid out as
if it led forward, which keeps it beside the others.

Why none of a library: those for Python that lay out in layers are unkept (grandalf), under the GPL (igraph) or another
program (Graphviz), and what is drawn here has tens of boxes, not thousands.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import inf
from typing import Final, NamedTuple

SWEEPS: Final = 60
"""Times that order and coordinates are improved, down and up by turns."""

LOOKED_AT: Final = 20_000
"""Items that all sweeps together look at, two sweeps at least: a huge machine is drawn less well, but soon."""

STRAIGHT: Final = 4.0
"""How much more it matters that the bends of one edge stand in line than that a box stands over its neighbours."""

MAIN: Final = 40.0
"""How much more it matters for the way that most missions go."""

STEEP: Final = 7.0
"""A line that goes so many times further across than down gets more room."""


class Size(NamedTuple):
    """Room that an item takes, left and right of its centre."""

    left: float
    right: float
    height: float


class Point(NamedTuple):
    """x to the right, y downwards."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Line:
    """An edge to be laid out.

    Args:
        label: room that its label takes.
        backward: it leads up; its label then stands above its source.
        main: it is part of the way that most missions go, which is kept straight.
    """

    source: str
    target: str
    label: Size
    backward: bool = False
    main: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Least distances: between items of a layer, between layers, between ends of lines at a box."""

    across: float = 18
    down: float = 22
    ports: float = 14


@dataclass(frozen=True, slots=True)
class Route:
    """Where a line goes, from its source to its target, and the centre of its label.

    Through each band of `passed` it goes straight down; in between it may bend.
    """

    points: tuple[Point, ...]
    label: Point


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes by name, and a route for each line."""

    boxes: Mapping[str, Point]
    routes: tuple[Route, ...]
    width: float
    height: float


@dataclass(slots=True)
class _Item:
    """What takes a place in a layer: a box, a label or a bend."""

    size: Size
    layer: int
    bend: bool
    main: bool = False
    above: list["_Item"] = field(default_factory=list)
    below: list["_Item"] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    at: int = 0
    band: float = 0.0


def layout(boxes: Mapping[str, Size], lines: Sequence[Line], bottom: Iterable[str], gaps: Gaps) -> Layout:
    """Lay out; the same graph always looks the same.

    Args:
        boxes: in reading order: a line that is not `backward` leads to a later one.
        lines: none from a box to itself.
        bottom: boxes that share the last layer.
        gaps: least distances.
    """
    ranks = _ranks(boxes, lines, set(bottom))
    items = {name: _Item(size, 2 * ranks[name], bend=False) for name, size in boxes.items()}
    chains = [_chain(line, items, ranks) for line in lines]
    layers = _layers((*items.values(), *(item for chain in chains for item in chain[1:-1])))
    sweeps = max(2, min(SWEEPS, LOOKED_AT // sum(map(len, layers))))
    _order(layers, sweeps)
    _place(layers, sweeps, gaps)
    for chain in chains:
        _straighten(chain[1:-1], layers, gaps)
    height = _heights(layers, gaps)
    left = min(item.x - item.size.left for layer in layers for item in layer)
    width = max(item.x + item.size.right for layer in layers for item in layer) - left
    for layer in layers:
        for item in layer:
            item.x -= left
    ports = _ports(items.values(), gaps)
    routes = tuple(_route(line, chain, ports) for line, chain in zip(lines, chains, strict=True))
    return Layout({name: Point(item.x, item.y) for name, item in items.items()}, routes, width, height)


def _ranks(boxes: Iterable[str], lines: Sequence[Line], bottom: set[str]) -> dict[str, int]:
    """Layers of boxes alone, by the longest path; a box is no further up than just above what it leads to."""
    names = list(boxes)
    ways = [(line.target, line.source) if line.backward else (line.source, line.target) for line in lines]
    ranks = dict.fromkeys(names, 0)
    for name in names:
        ranks[name] = max((ranks[upper] + 1 for upper, lower in ways if lower == name), default=0)
    last = max((rank for name, rank in ranks.items() if name not in bottom), default=-1) + 1
    return ranks | {name: last for name in names if name in bottom}


def _chain(line: Line, items: Mapping[str, _Item], ranks: Mapping[str, int]) -> list[_Item]:
    """The items of a line from its upper box to its lower one."""
    upper, lower = (line.target, line.source) if line.backward else (line.source, line.target)
    between = range(2 * ranks[upper] + 1, 2 * ranks[lower])
    told = between[-1] if line.backward else between[0]
    none = Size(0, 0, 0)
    bends = [_Item(line.label if at == told else none, at, bend=True, main=line.main) for at in between]
    chain = [items[upper], *bends, items[lower]]
    for above, below in pairwise(chain):
        above.below.append(below)
        below.above.append(above)
    return chain


def _layers(items: Iterable[_Item]) -> list[list[_Item]]:
    items = list(items)
    layers: list[list[_Item]] = [[] for _ in range(max(item.layer for item in items) + 1)]
    for item in items:
        layers[item.layer].append(item)
    return layers


def _order(layers: list[list[_Item]], sweeps: int) -> None:
    """Put the items of each layer into an order with few crossings."""
    _number(layers)
    best = [list(layer) for layer in layers]
    fewest = _crossings(layers)
    for sweep in range(sweeps):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            layer.sort(key=lambda item: _barycentre(item, item.above if down else item.below))
            for at, item in enumerate(layer):
                item.at = at
        _exchange(layers)
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best
    _number(layers)


def _exchange(layers: Iterable[list[_Item]]) -> None:
    """Exchange neighbours in a layer where that saves crossings."""
    for layer in layers:
        for at in range(len(layer) - 1):
            one, other = layer[at], layer[at + 1]
            now, then = _between(one, other), _between(other, one)
            if then < now:
                layer[at], layer[at + 1] = other, one
                one.at, other.at = at + 1, at


def _between(left: _Item, right: _Item) -> int:
    """Crossings of the lines of two neighbours that stand in this order."""
    pairs = ((left.above, right.above), (left.below, right.below))
    return sum(one.at > other.at for lefts, rights in pairs for one in lefts for other in rights)


def _number(layers: Iterable[Iterable[_Item]]) -> None:
    for layer in layers:
        for at, item in enumerate(layer):
            item.at = at


def _barycentre(item: _Item, neighbours: Sequence[_Item]) -> float:
    return sum(one.at for one in neighbours) / len(neighbours) if neighbours else item.at


def _crossings(layers: Iterable[Iterable[_Item]]) -> int:
    total = 0
    for layer in layers:
        ends = [(item.at, below.at) for item in layer for below in item.below]
        total += sum(
            (upper - other) * (lower - beside) < 0
            for at, (upper, lower) in enumerate(ends)
            for other, beside in ends[:at]
        )
    return total


def _place(layers: Sequence[Sequence[_Item]], sweeps: int, gaps: Gaps) -> None:
    """Give each item its x: over and under its neighbours as far as those beside it let it."""
    for layer in layers:
        for item, x in zip(layer, spread([0.0] * len(layer), [1.0] * len(layer), _room(layer, gaps)), strict=True):
            item.x = x
    for sweep in range(sweeps):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wishes = [_wish(item) for item in layer]
            places = spread([x for x, _ in wishes], [weight for _, weight in wishes], _room(layer, gaps))
            for item, x in zip(layer, places, strict=True):
                item.x = x


def _straighten(bends: Sequence[_Item], layers: Sequence[Sequence[_Item]], gaps: Gaps) -> None:
    """Put as many bends of a line as stand free below one another."""
    run: list[_Item] = []
    low, high = -inf, inf
    for bend in (*bends, None):
        left, right = _free(bend, layers[bend.layer], gaps) if bend is not None else (inf, -inf)
        if max(low, left) > min(high, right):
            x = min(max(sum(one.x for one in run) / len(run), low), high)
            for one in run:
                one.x = x
            run, low, high = [], -inf, inf
        if bend is not None:
            run, low, high = [*run, bend], max(low, left), min(high, right)


def _free(item: _Item, layer: Sequence[_Item], gaps: Gaps) -> tuple[float, float]:
    """How far an item may go to either side before it comes too near to another one."""
    before = layer[item.at - 1] if item.at else None
    after = layer[item.at + 1] if item.at + 1 < len(layer) else None
    left = -inf if before is None else before.x + before.size.right + gaps.across + item.size.left
    right = inf if after is None else after.x - after.size.left - gaps.across - item.size.right
    return min(left, item.x), max(right, item.x)  # where it stands is free, whatever rounding says


def _room(layer: Sequence[_Item], gaps: Gaps) -> list[float]:
    return [one.size.right + gaps.across + other.size.left for one, other in pairwise(layer)]


def _wish(item: _Item) -> tuple[float, float]:
    """Where an item would like to be, and how much."""
    near = [(one.x, _pull(item, one)) for one in (*item.above, *item.below)]
    weight = sum(share for _, share in near)
    return (sum(x * share for x, share in near) / weight, weight) if near else (item.x, 0.1)


def _pull(item: _Item, other: _Item) -> float:
    """How much two neighbours want to stand in line."""
    if item.main or other.main:
        return MAIN / max(len(one) for at in (item, other) for one in (at.above, at.below))
    return STRAIGHT if item.bend and other.bend else 1.0


def spread(wishes: Sequence[float], weights: Sequence[float], room: Sequence[float]) -> list[float]:
    """The places nearest to the wishes (least squares) that keep the order and at least the `room` between each two.

    Less the room, the order alone is left to keep, and pooling neighbours that violate it is the exact answer.
    """
    offsets = list(accumulate(room, initial=0.0))[: len(wishes)]
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        mean, total, count = wish - offset, weight, 1
        while pools and pools[-1][0] > mean:
            before, heft, many = pools.pop()
            mean, total, count = (before * heft + mean * total) / (heft + total), heft + total, many + count
        pools.append((mean, total, count))
    means = [mean for mean, _, count in pools for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _heights(layers: Iterable[Sequence[_Item]], gaps: Gaps) -> float:
    """Give each item its y; how high the whole is."""
    top = 0.0
    for layer in layers:
        height = max((item.size.height for item in layer), default=0.0)
        for item in layer:
            item.y, item.band = top + height / 2, height / 2
        across = max((abs(item.x - below.x) for item in layer for below in item.below), default=0.0)
        top += height + max(gaps.down, across / STEEP)
    return top - gaps.down


def _ports(items: Iterable[_Item], gaps: Gaps) -> dict[tuple[int, int], float]:
    """Where lines touch boxes, by box and neighbour: under or over the neighbour, else as near as the box allows."""
    ports: dict[tuple[int, int], float] = {}
    for item in items:
        for side in (item.above, item.below):
            beside = sorted(side, key=lambda one: one.x)
            half = max(0.0, min(item.size.left, item.size.right) - gaps.ports)
            step = min(gaps.ports, 2 * half / max(1, len(beside) - 1))
            wishes = [min(max(one.x, item.x - half), item.x + half) for one in beside]
            places = spread(wishes, [1.0] * len(beside), [step] * (len(beside) - 1))
            for at, (one, place) in enumerate(zip(beside, places, strict=True)):
                after = len(beside) - 1 - at
                ports[id(item), id(one)] = max(min(place, item.x + half - after * step), item.x - half + at * step)
    return ports


def _route(line: Line, chain: Sequence[_Item], ports: Mapping[tuple[int, int], float]) -> Route:
    upper, *bends, lower = chain
    points = [
        Point(ports[id(upper), id(bends[0])], upper.y + upper.size.height / 2),
        *(Point(bend.x, bend.y + side * bend.band) for bend in bends for side in (-1, 1)),
        Point(ports[id(lower), id(bends[-1])], lower.y - lower.size.height / 2),
    ]
    label = bends[-1] if line.backward else bends[0]
    return Route(tuple(reversed(points) if line.backward else points), Point(label.x, label.y))
