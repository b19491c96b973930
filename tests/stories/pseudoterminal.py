"""A command as a person sees it: on a terminal of a certain width, rewritten lines included."""

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from dataclasses import dataclass

from dualloop.lifeline import ends_with_parent
from tests.stories.terminal import Terminal

_STYLE = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]")
_MOVES = re.compile(r"(\r|\n|\x1b\[[0-9]*[AK])")


@dataclass(frozen=True)
class Shown:
    """What a terminal showed.

    Attributes:
        code: the command's exit code.
        ever: all lines that were there at any time, in order.
        left: those that are there at the end.
    """

    code: int
    ever: list[str]
    left: list[str]


async def shown(
    terminal: Terminal, columns: int, *args: str, within: float = 120.0, typed: tuple[bytes, bytes] = (b"", b"")
) -> Shown:
    """Run a command on a terminal of so many columns, to its end; where it shows `typed[0]`, type `typed[1]`."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    hidden = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dualloop", *args),
        cwd=terminal.folder,
        env={name: value for name, value in terminal.env.items() if name not in hidden} | {"TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=ends_with_parent(signal.SIGKILL),
    )
    os.close(theirs)
    text, loop, (sign, keys) = b"", asyncio.get_running_loop(), typed
    try:
        async with asyncio.timeout(within):
            while chunk := await loop.run_in_executor(None, _read, ours):
                text += chunk
                if keys and sign in text:
                    os.write(ours, keys)
                    keys = b""
            code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)
    return Shown(code, *_drawn(_STYLE.sub("", text.decode())))


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other side is closed: a terminal's end
        return b""


def _drawn(text: str) -> tuple[list[str], list[str]]:
    """All lines that were ever there, and those that are left, after the few moves that Rich makes."""
    lines, row, column = [""], 0, 0
    ever: list[str] = []
    for part in _MOVES.split(text):
        if part == "\r":
            column = 0
        elif part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("K") and part.startswith("\x1b"):
            lines[row] = ""
        elif part.endswith("A") and part.startswith("\x1b"):
            row -= int(part[2:-1] or 1)
        elif part:
            lines[row] = lines[row][:column] + part + lines[row][column + len(part) :]
            column += len(part)
            ever.append(lines[row].rstrip())
    return ever, [line.rstrip() for line in lines if line.strip()]
