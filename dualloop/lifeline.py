"""A child that must not outlive its parent, however the parent ends."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded before any fork


def ends_with_parent(signum: int = signal.SIGTERM) -> Callable[[], None]:
    """A ``preexec_fn``: the child gets ``signum`` when the thread that spawned it ends, so spawn from the main thread.

    Only Linux can do this; elsewhere it does nothing.
    """
    parent = os.getpid()

    def arm() -> None:
        if _libc is None:
            return
        _libc.prctl(_PR_SET_PDEATHSIG, int(signum))
        if os.getppid() != parent:  # it ended before the wish was made
            os.kill(os.getpid(), signum)

    return arm
