"""What commands print: tables for a person, JSON for a machine; one line of it is one line of a pipe."""

import functools
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic_core import to_json

from frontend_loop.why import lasting

if TYPE_CHECKING:
    from rich.console import Console

Json = Annotated[bool, typer.Option("--json", help="JSON, for machines.")]

_UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

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


def say(text: str = "", style: str = "", *, whole: bool = False, hang: int = 0) -> None:
    """A line of text, wrapped by words on a terminal; a `whole` one is not, so that it can be copied from there.

    What goes on in further lines begins `hang` columns further right in those.
    """
    text = clean(text)
    if whole or not sys.stdout.isatty():
        console().print(text, style=style or None, soft_wrap=True)
        return
    first, rest = text, ""
    if hang:
        from rich.text import Text  # noqa: PLC0415  other commands start without it

        first = Text(text).wrap(console(), console().width, overflow="fold")[0].plain
        rest = text[len(first) :].strip()
    console().print(first, style=style or None)
    if rest:
        hung(rest, style, hang)


def hung(text: str, style: str, margin: int) -> None:
    """Lines of text on a terminal, wrapped by words, all of them so many columns from its left."""
    from rich.text import Text  # noqa: PLC0415  other commands start without it

    for line in Text(text, style).wrap(console(), max(1, console().width - margin), overflow="fold"):
        line.rstrip()
        line.pad_left(margin)
        console().print(line, soft_wrap=True)


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
    """Names and what is known; what is empty is left out. On a terminal a long one goes on below its own beginning."""
    width = max(map(len, rows))
    for name, told in rows.items():
        if told:
            say(f"  {name:{width}}  {told}", hang=width + 4)


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


def zone() -> str:
    """The reader's time zone as ``UTC+08:00``; empty where it is UTC, in which sentences tell their times."""
    offset = f"{datetime.now().astimezone():%z}"
    return "" if offset == "+0000" else f"UTC{offset[:3]}:{offset[3:5]}"


def ago(at: str) -> str:
    """How long ago, in its largest unit."""
    return " ".join(between(at, datetime.now(UTC).isoformat()).split()[:2])


def between(begin: str | None, end: str | None) -> str:
    """The span from one time to another."""
    if not begin or not end:
        return ""
    return lasting(round((datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds() * 1000))
