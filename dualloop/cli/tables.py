"""Tables for a person: as wide as a terminal is, and whole in a pipe, where one row is one line."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import typer

from dualloop.cli.fitting import GAP, Column, fitted
from dualloop.cli.output import STYLES, clean, console, hung, say

if TYPE_CHECKING:
    from rich.text import Text

BELOW: Final = 48
"""What may stand below its row does so where it would be narrower than this."""
INDENT: Final = 5

Row = Sequence[str]


def table(columns: Iterable[Column | str], rows: Iterable[Row], *, hint: str = "") -> None:
    """Print rows under a head; `hint` says how to see what a narrow terminal has no room for."""
    heads = [Column(one) if isinstance(one, str) else one for one in columns]
    cells = [[" ".join(clean(cell).split("\n")) for cell in row] for row in rows]
    if sys.stdout.isatty():
        hidden = _print(heads, cells)
        if hidden and hint:
            say(f"No room for {', '.join(hidden)}: {hint}", "dim")
    else:
        _pipe([[column.name for column in heads], *cells])


def _pipe(rows: Sequence[Row]) -> None:
    """Nothing is cut."""
    from rich.cells import cell_len  # noqa: PLC0415  other commands start without it

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    gap = " " * GAP
    for row in rows:
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        typer.echo(gap.join(padded).rstrip())


def _print(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    """On a terminal; the heads of what it has no room for."""
    from rich.text import Text  # noqa: PLC0415  other commands start without it

    every = range(len(columns))
    empty = [n for n in every if not any(row[n] for row in rows)]
    widths = _fit(columns, rows, every)
    below = [n for n in widths if columns[n].below and n not in empty and widths[n] < min(_widest(rows, n), BELOW)]
    if below:
        widths = _fit(columns, rows, [n for n in every if n not in below])
    _lines([Text(column.name, "dim") for column in columns], columns, widths)
    for row in rows:
        _lines([Text(cell, STYLES.get(cell.partition(" ")[0], "")) for cell in row], columns, widths)
        for n in (place for place in below if row[place]):
            hung(row[n], "", INDENT)
    return [columns[n].name for n in every if n not in (*widths, *below, *empty) and columns[n].name]


def _fit(columns: Sequence[Column], rows: Sequence[Row], places: Sequence[int]) -> dict[int, int]:
    """Of the columns at these places those that are shown, and how wide each is."""
    widest = [max(_widest(rows, n), len(columns[n].name)) for n in places]
    empty = [not any(row[n] for row in rows) for n in places]
    widths = fitted([columns[n] for n in places], widest, empty, console().width)
    return {places[n]: width for n, width in widths.items()}


def _widest(rows: Sequence[Row], place: int) -> int:
    from rich.cells import cell_len  # noqa: PLC0415  other commands start without it

    return max((cell_len(row[place]) for row in rows), default=0)


def _lines(cells: Sequence["Text"], columns: Sequence[Column], widths: Mapping[int, int]) -> None:
    from rich.text import Text  # noqa: PLC0415  as above

    blocks = [list(_block(cells[n], width, folds=columns[n].folds)) for n, width in widths.items()]
    for place in range(max(map(len, blocks))):
        parts = [block[place] if place < len(block) else Text() for block in blocks]
        for part, width in zip(parts, widths.values(), strict=True):
            part.truncate(width, pad=True)
        line = Text(" " * GAP).join(parts)
        line.rstrip()
        console().print(line, soft_wrap=True)


def _block(cell: "Text", width: int, *, folds: bool) -> Iterator["Text"]:
    """The lines of a cell."""
    if folds:
        yield from cell.wrap(console(), width, overflow="fold")
        return
    if cell.cell_len > width:
        cell.truncate(width - 1)
        cell.rstrip()
        cell.append("…")
    yield cell
