"""Answers a mission's question where one waits for its end: a line of the terminal, while its frames go on coming."""

import asyncio
import os
import sys
import termios
from collections.abc import Awaitable, Callable
from typing import Any

import typer

from dualloop.cli.following import Follower, Frame, Screen
from dualloop.cli.output import say

PROMPT = "> "
LINE = 4096
"""Bytes of a line that a terminal gives at most."""


def can_be_asked(follower: Follower) -> Screen | None:
    """The screen that a question can be answered at: a person sits at both ends of the command."""
    return follower if isinstance(follower, Screen) and sys.stdin.isatty() else None


class Desk:
    """Takes the answer to one question at a time; the line that rewrites itself stands still meanwhile."""

    def __init__(self, screen: Screen, tell: Callable[[str], Awaitable[Any]], terminal: int | None = None) -> None:
        """`tell` carries an answer to who asked; `terminal` is where it is typed, by default the standard input."""
        self._screen, self._tell = screen, tell
        self._terminal = sys.stdin.fileno() if terminal is None else terminal
        self._state: str | None = None
        self._telling: set[asyncio.Task[None]] = set()

    def ask(self, frame: Frame) -> None:
        """Let the question of this event be answered."""
        self._state = frame["state"]
        self._screen.hold()
        # what was typed before it was asked was no answer to it
        termios.tcflush(self._terminal, termios.TCIFLUSH)
        typer.echo(PROMPT, nl=False)
        asyncio.get_running_loop().add_reader(self._terminal, self._typed)

    def see(self, frame: Frame) -> None:
        """Ask no more once the mission has left the state that asked: it was answered elsewhere, or not in time."""
        if self._state is not None and frame["state"] != self._state:
            typer.echo()
            self.close()

    def close(self) -> None:
        """Read nothing any more."""
        if self._state is not None:
            self._state = None
            asyncio.get_running_loop().remove_reader(self._terminal)
            self._screen.go_on()

    def _typed(self) -> None:
        line = os.read(self._terminal, LINE)
        text = line.decode(errors="replace").strip()
        if line and not text:
            typer.echo(PROMPT, nl=False)
            return
        self.close()
        if text:
            task = asyncio.ensure_future(self._answer(text))
            self._telling.add(task)  # the loop itself keeps no task alive
            task.add_done_callback(self._telling.discard)

    async def _answer(self, text: str) -> None:
        from dualloop.client_faults import ClientProblem, UnreachableError  # noqa: PLC0415  other commands start without

        try:
            await self._tell(text)
        except (ClientProblem, UnreachableError) as error:
            say(f"It was not told: {error}", "yellow")
