"""How a table fits into a terminal: which columns give way there, and in which order. Pure."""

from collections.abc import Sequence
from typing import Final, NamedTuple

GAP: Final = 2
"""Columns of a terminal between two of a table."""


class Column(NamedTuple):
    """A column of a table. Widths are columns of a terminal.

    Args:
        name: its head.
        least: cut or folded below this it is of no use; None: it is neither.
        goes: where there is no room for all columns the one with the highest number goes first; 0: it stays.
        folds: what has no room goes on in the next line; else it is cut.
        first: it is cut before any other is, as an id is, of which the beginning says all.
        below: where little room is left for it, it stands in lines of its own, below its row.
    """

    name: str
    least: int | None = None
    goes: int = 0
    folds: bool = False
    first: bool = False
    below: bool = False


def fitted(columns: Sequence[Column], widest: Sequence[int], empty: Sequence[bool], room: int) -> dict[int, int]:
    """Which columns are shown, by their place, and how wide each is.

    Those that are empty go before anything but an id is cut; of the others those that may go, one by one, and what
    stays is cut. Where even that does not fit, what is left is cut below its least.

    Args:
        columns: all of them.
        widest: of each its widest cell, the head among them.
        empty: of each whether it has nothing to tell.
        room: columns of the terminal.
    """
    shown = list(range(len(columns)))
    least = [_least(column, width) for column, width in zip(columns, widest, strict=True)]
    uncut = [least[n] if column.first else widest[n] for n, column in enumerate(columns)]
    while _needed(shown, uncut) > room and (leaving := [n for n in shown if empty[n]]):
        shown.remove(max(leaving, key=lambda n: columns[n].goes))
    while _needed(shown, least) > room and (leaving := [n for n in shown if columns[n].goes]):
        shown.remove(max(leaving, key=lambda n: columns[n].goes))
    room -= GAP * (len(shown) - 1)
    widths = {n: min(widest[n], max(room, least[n])) for n in shown}
    _narrow(widths, {n: least[n] for n in shown if columns[n].first}, room)
    _narrow(widths, {n: least[n] for n in shown}, room)
    _narrow(widths, dict.fromkeys(shown, 1), room)
    return widths


def _least(column: Column, widest: int) -> int:
    return widest if column.least is None else min(widest, max(column.least, len(column.name)))


def _needed(shown: Sequence[int], widths: Sequence[int]) -> int:
    return sum(widths[n] for n in shown) + GAP * (len(shown) - 1)


def _narrow(widths: dict[int, int], least: dict[int, int], room: int) -> None:
    """Take from the widest, as far as each may give, until all fit."""
    while sum(widths.values()) > room and (wide := [n for n, width in least.items() if widths[n] > width]):
        widths[max(wide, key=widths.__getitem__)] -= 1
