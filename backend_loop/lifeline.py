"""A child process that does not outlive its worker, and takes along what it has started."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final, NoReturn

_PR_SET_PDEATHSIG: Final = 1
_KEPT: Final = 3
"""Descriptors of a keeper: none of the pipes whose end would tell of its parent's."""


def die_with(parent: int, signum: int = signal.SIGKILL) -> None:
    """Have the kernel send us `signum` when the thread that started us ends; call it first thing in the child.

    Only Linux can do this; elsewhere a child notices at its pipe, once it looks.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signum))
        if os.getppid() != parent:  # it ended before the wish was made
            os.kill(os.getpid(), signum)


def take_along() -> Callable[[], None]:
    """However this process ends, what it started ends too: fork a keeper that then kills the process group.

    The caller leads the group and runs no thread yet. A keeper costs next to nothing: it shares all its memory.

    Returns:
        Lets the keeper go; for a clean end, so that it leaves no zombie where nobody reaps orphans.
    """
    parent = os.getpid()
    if sys.platform != "linux":
        return lambda: None
    keeper = os.fork()
    if keeper == 0:
        _keep(parent)

    def let_go() -> None:
        os.kill(keeper, signal.SIGKILL)
        os.waitpid(keeper, 0)

    return let_go


def _keep(parent: int) -> NoReturn:
    try:
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        os.closerange(_KEPT, os.sysconf("SC_OPEN_MAX"))
        die_with(parent, signal.SIGUSR1)
        signal.sigwait({signal.SIGUSR1})
        os.killpg(parent, signal.SIGKILL)  # ours too
    finally:
        os._exit(1)
