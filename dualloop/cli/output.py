"""What commands print: tables for a person, JSON for a machine; one line of it is one line of a pipe."""

import functools
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import to_json

from frontend_loop.why import lasting

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="JSON, for machines.")]

_UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

GAP = 2
"""Columns of a terminal between two of a table."""
NARROWEST = 6
"""What is left at least of a column that is cut."""

STYLES = {
    "PENDING": "dim",
    "RUNNING": "cyan",
    "WAITING": "blue",
    "PAUSED": "magenta",
    "COMPENSATING": "yellow",
    "SUCCEEDED": "green",
    "FAILED": "bold red",
    "CANCELLED": "yellow",
    "ok": "green",
    "warn": "yellow",
    "fail": "bold red",
}


@functools.cache
def console() -> "Console":
    """Standard output; a pipe is as wide as its lines."""
    from rich.console import Console  # noqa: PLC0415  other commands start without it

    return Console(width=None if sys.stdout.isatty() else 400, highlight=False, markup=False, emoji=False)


def say(text: str = "", style: str = "", *, whole: bool = False) -> None:
    """A line of text, wrapped by words on a terminal; a `whole` one is not, so that it can be copied from there."""
    console().print(clean(text), style=style or None, soft_wrap=whole or not sys.stdout.isatty())


def machine(document: Any, *, indent: int | None = 2) -> None:
    """A document as JSON."""
    typer.echo(to_json(document, indent=indent, inf_nan_mode="null").decode())


def section(title: str, document: Any) -> None:
    """A titled document for a person; nothing where there is none."""
    if document in (None, {}, []):
        return
    say()
    say(title, "bold")
    text = to_json(document, indent=2, inf_nan_mode="null").decode()
    say("\n".join(f"  {line}" for line in text.splitlines()))


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    fixed: frozenset[str] = frozenset(),
    folded: frozenset[str] = frozenset(),
) -> None:
    """Rows under a head. Where a terminal is too narrow for them all columns but the `fixed` ones give way.

    Those of `folded` go on in the next line there, the others are cut; in a pipe all are cut.
    """
    from rich.table import Table  # noqa: PLC0415  other commands start without it
    from rich.text import Text  # noqa: PLC0415

    grid = Table(box=None, pad_edge=False, header_style="dim", show_edge=False)
    rows = [[clean(cell) for cell in row] for row in rows]
    widest = [max(len(name), *(len(row[column]) for row in rows), 0) for column, name in enumerate(head)]
    bendable = [column for column, name in enumerate(head) if name not in fixed]
    widths = _narrowed(widest, bendable, console().width - GAP * (len(head) - 1))
    for column, name in enumerate(head):
        fold = name in folded and sys.stdout.isatty()
        grid.add_column(name, no_wrap=not fold, overflow="fold" if fold else "ellipsis", width=widths[column])
    for row in rows:
        grid.add_row(*(Text(cell, style=STYLES.get(cell.partition(" ")[0], "")) for cell in row))
    if sys.stdout.isatty():
        console().print(grid)
        return
    with console().capture() as captured:
        console().print(grid)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _narrowed(widths: Sequence[int], bendable: Sequence[int], room: int) -> list[int]:
    """Widths that fit into the room: the widest of the bendable columns gives what is missing, down to `NARROWEST`."""
    widths = [min(width, room) if column in bendable else width for column, width in enumerate(widths)]
    while sum(widths) > room and (wide := [column for column in bendable if widths[column] > NARROWEST]):
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def drawing(lines: str) -> None:
    """A diagram of states, each line as it is; names, and states that act, in colour."""
    from rich.text import Text  # noqa: PLC0415  other commands start without it

    drawn = Text(clean(lines))
    drawn.highlight_regex(r"(?m)^[●◆■] \S+", "bold")
    drawn.highlight_regex(r"(?m)^◆", STYLES["warn"])
    drawn.highlight_regex(r"[─│┐┘└├┤┼◀▼]+", "dim")
    for end in ("SUCCEEDED", "FAILED", "CANCELLED"):
        drawn.highlight_regex(rf"(?m)^■ {end}", STYLES[end])
    console().print(drawn, soft_wrap=True)


def facts(rows: Mapping[str, str]) -> None:
    """Names and what is known; what is empty is left out."""
    width = max(map(len, rows))
    for name, told in rows.items():
        if told:
            say(f"  {name:{width}}  {told}")


def clean(text: str) -> str:
    """Without what could take over the terminal of whoever reads a foreign text, or turn its lines around."""
    return _UNSAFE.sub("�", text)


def moment(at: str | None) -> str:
    """A time of the contract in the reader's time zone, with its date where that is not today's."""
    if not at:
        return ""
    local = datetime.fromisoformat(at).astimezone()
    date = "" if local.date() == datetime.now().astimezone().date() else f"{local:%Y-%m-%d} "
    return f"{date}{local:%H:%M:%S}.{local.microsecond // 1000:03d}"


def ago(at: str) -> str:
    """How long ago, in its largest unit."""
    return " ".join(between(at, datetime.now(UTC).isoformat()).split()[:2])


def between(begin: str | None, end: str | None) -> str:
    """The span from one time to another."""
    if not begin or not end:
        return ""
    return lasting(round((datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds() * 1000))
