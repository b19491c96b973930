"""What is shown of a mission that one waits for: a line that rewrites itself, or in a pipe a line now and then."""

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import typer
from pydantic_core import to_json

from dualloop.cli.fitting import GAP
from dualloop.cli.output import STYLES, clean, console, moment, say
from dualloop.cli.pace import Pace, line, span
from frontend_loop.why import one_line
from shared.status import Status

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

APART_S: Final = 1.0
"""In a pipe the next progress is told so much later at the earliest."""

BAR: Final = (10, 30)
"""Columns of a bar, at least and at most."""
READABLE: Final = 12
"""Columns of a message, at least."""
HANG: Final = 14
"""An event that goes on in another line does so below its status."""
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TIMES_A_SECOND: Final = 10

Frame = Mapping[str, Any]


class Follower(Protocol):
    """Shows what frames of a mission tell, up to its result."""

    def take(self, frame: Frame) -> None:
        """Show this one."""


def following(title: str, *, events: bool) -> AbstractContextManager[Follower]:
    """Follow a mission, as the standard output can.

    Args:
        title: what is waited for, while nothing is known of it.
        events: whether each event is to stay on the screen.
    """
    if sys.stdout.isatty() and not console().is_dumb_terminal:
        return Screen(title, events=events)
    return nullcontext(Lines(events=events))


class Lines:
    """Plain lines, for a pipe or a terminal that can do no more."""

    def __init__(self, *, events: bool, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` in seconds."""
        self._events, self._clock, self._pace = events, clock, Pace()
        self._next_at = clock()

    def take(self, frame: Frame) -> None:
        """Print a line for an event; for progress one on the standard error, if the last one is long enough ago."""
        if frame["op"] == "event":
            if self._events:
                say(event_line(frame))
            return
        progress = self._pace.take(frame)
        if progress is None or (now := self._clock()) < self._next_at:
            return
        self._next_at = now + APART_S
        where = f"{moment(frame['at']):12}  {frame['status']:12}  {frame['state']}" if self._events else frame["state"]
        # beside the output: what is piped on are events and the result
        typer.echo(clean(f"{where}  {line(progress, self._pace.words())}"), err=True)


class Screen:
    """One line at the bottom of a terminal, rewritten as long as the mission runs; events go above it."""

    def __init__(self, title: str, *, events: bool) -> None:
        """Shown within ``with``."""
        from rich.live import Live  # noqa: PLC0415  other commands start without it

        self._title, self._events, self._pace = title, events, Pace()
        self._status = self._state = ""
        self._since = time.monotonic()
        self._live = Live(self, console=console(), refresh_per_second=TIMES_A_SECOND, transient=True)

    def __enter__(self) -> Self:
        """Draw it."""
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Wipe it."""
        self._live.stop()

    def hold(self) -> None:
        """Wipe it until it goes on: something is typed there."""
        self._live.stop()

    def go_on(self) -> None:
        """Draw it again."""
        self._live.start()

    def take(self, frame: Frame) -> None:
        """Show what it tells; an event that begins another state takes the progress of the last one away."""
        if frame["op"] == "event":
            if self._events:
                say(event_line(frame), hang=HANG)
            if frame["state"] != self._state:
                self._pace, self._since = Pace(), time.monotonic()
        else:
            self._pace.take(frame)
        self._status, self._state = frame["status"], frame["state"]

    def __rich_console__(self, _terminal: "Console", options: "ConsoleOptions") -> "RenderResult":
        """Rich's way to ask for the line."""
        from rich.progress_bar import ProgressBar  # noqa: PLC0415  other commands start without it
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        where = Text(SPINNER[int(10 * time.monotonic()) % len(SPINNER)])
        if self._status != Status.RUNNING:
            status = clean(self._status or self._title)
            where.append(" ").append(status, STYLES.get(status))
        if self._state != self._status:
            where.append(" ").append(clean(self._state), "bold")
        told = self._pace.newest
        if told is None:
            where.append(f"  {span(int(time.monotonic() - self._since))}", "dim")
            where.truncate(options.max_width, overflow="ellipsis")
            yield where
            return
        texts = [Text(told.figures()), Text(self._pace.words(), "cyan"), Text(clean(one_line(told.message)), "dim")]
        figures, pace, doing = (text.cell_len for text in texts)
        known = told.share is not None
        bar, *widths = shared_out(
            options.max_width - where.cell_len, share=known, figures=figures, pace=pace, doing=doing
        )
        cells: list[Text | ProgressBar] = [where]
        if bar and told.share is not None:
            cells.append(ProgressBar(total=1.0, completed=min(1.0, told.share), width=bar))
        for text, width in zip(texts, widths, strict=True):
            if width:
                text.truncate(width, overflow="ellipsis")
                cells.append(text)
        grid = Table.grid(padding=(0, GAP, 0, 0), pad_edge=False)
        for _ in cells:
            grid.add_column(no_wrap=True, overflow="ellipsis")
        grid.add_row(*cells)
        yield grid


def shared_out(room: int, *, share: bool, figures: int, pace: int, doing: int) -> tuple[int, int, int, int]:
    """Columns of a bar, of figures, pace and message in so much room, a gap before each of them; 0: it is left out.

    What is needed most is there first: figures, pace, a short bar, message. Bar and message share what is left.
    """

    def take(wanted: int, least: int) -> int:
        nonlocal room
        width = min(wanted, room - GAP)
        if width <= 0 or width < min(wanted, least):
            return 0
        room -= width + GAP
        return width

    figures, pace = take(figures, 1), take(pace, pace)
    bar = take(BAR[0], BAR[0]) if share else 0
    told = take(min(doing, max(READABLE, room // 2)), READABLE)
    if bar:
        more = min(max(room, 0), BAR[1] - BAR[0])
        bar, room = bar + more, room - more
    return bar, figures, pace, min(doing, told + room) if told else 0


def _said(data: Any) -> str:
    """In words a child's end, since there may be hundreds of them, and what is said to a person; all else as it is."""
    if isinstance(data, dict) and data.get("event") == "child":
        code = f", {data['code']}" if data.get("code") else ""
        return clean(f"child {data.get('name') or data['task_id']} {data['status']}{code}")
    if isinstance(data, dict) and isinstance(data.get("spoken"), str) and data["spoken"]:
        return clean(f"{'asks' if data.get('question') else 'says'}: {one_line(data['spoken'])}")
    return to_json(data).decode()


def event_line(frame: Frame) -> str:
    """When, status, state and what came with it."""
    data = "" if frame["data"] is None else f"  {_said(frame['data'])}"
    state = "" if frame["state"] == frame["status"] else frame["state"]
    return f"{moment(frame['at'])}  {frame['status']:12}  {state}{data}"
