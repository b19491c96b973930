"""Whether a debugger holds a thread: a person who looks at a mission must not cost it its lease."""

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Final

FAMILIES: Final = frozenset({"bdb", "pydevd", "_pydevd_bundle", "_pydevd_frame_eval"})
"""Top-level modules whose frames lie on the stack of a thread that is held: pdb, ipdb and others stand on bdb."""


def held(thread: int) -> bool:
    """Whether the thread of this number stands at a breakpoint now; to be asked from another thread."""
    innermost = sys._current_frames().get(thread)  # noqa: SLF001  the only way to another thread's stack
    return any(frame.f_globals.get("__name__", "").partition(".")[0] in FAMILIES for frame in outwards(innermost))


def outwards(frame: FrameType | None) -> Iterator[FrameType]:
    """A stack, from its innermost frame on."""
    while frame is not None:
        yield frame
        frame = frame.f_back
