"""Debuggers: whether one holds a thread, since a person who looks at a mission must not cost it its lease."""

import os
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Final

from shared.logs import get

log = get(__name__)

FAMILIES: Final = frozenset({"bdb", "pydevd", "_pydevd_bundle", "_pydevd_frame_eval"})
"""Top-level modules whose frames lie on the stack of a thread that is held: pdb, ipdb and others stand on bdb."""


def prepare() -> None:
    """Make `breakpoint` one that leaves Ctrl-C to the worker, and that goes by where nobody could type anything."""
    if "PYTHONBREAKPOINT" not in os.environ:  # else the author has chosen
        sys.breakpointhook = _stop


def _stop(*_args: object, **_kwargs: object) -> None:
    frame = sys._getframe(1)  # noqa: SLF001  whoever called breakpoint
    if sys.stdin is not None and sys.stdin.isatty():
        # here, since it takes in modules with names that an author's own may have, such as code: none is run at a start
        import pdb  # noqa: PLC0415, T100  this is the debugger's home

        pdb.Pdb(nosigint=True).set_trace(frame)
        return
    where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    advice = "start a worker in a terminal: dualloop up --workers 0, and dualloop background beside it"
    log.warning("breakpoint passed by: no terminal", line=where, advice=advice)


def held(thread: int) -> bool:
    """Whether the thread of this number stands at a breakpoint now; to be asked from another thread."""
    innermost = sys._current_frames().get(thread)  # noqa: SLF001  the only way to another thread's stack
    return any(frame.f_globals.get("__name__", "").partition(".")[0] in FAMILIES for frame in outwards(innermost))


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """A stack, from its innermost frame on."""
    while frame is not None:
        yield frame
        frame = frame.f_back
