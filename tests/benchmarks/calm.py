"""The machine: whether it is quiet enough to measure, and what a process has used of it."""

import contextlib
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

QUIET: Final = 0.2
"""Share of the machine that others may use while a measurement begins."""

_LOOK_S: Final = 0.5


def calm(patience_s: float) -> None:
    """Wait, for so long at most, until the machine is quiet."""
    give_up = time.monotonic() + patience_s
    while time.monotonic() < give_up and _busy() > QUIET:
        pass


class Others:
    """What share of the machine other people's processes have used since this was made."""

    def __init__(self, server: int) -> None:
        """`server`: the one process of ours that goes on living."""
        self._server = server
        self._began, self._busy, self._own = time.monotonic(), _busy_s(), self._own_s()

    def share(self) -> float:
        """Up to now, of all cores; the processes that were started meanwhile have to have ended."""
        seconds = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        return max(0.0, (_busy_s() - self._busy) - (self._own_s() - self._own)) / seconds

    def _own_s(self) -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return cpu_s(self._server) + sum(one.ru_utime + one.ru_stime for one in used)


def cpu_s(pid: int) -> float:
    """Processor seconds that a process has used; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def apart(server: int, *others: int) -> Iterator[None]:
    """The server's main thread on the first core, those of the other processes on the rest, where there are two.

    Two that talk all the time are else often put on one core, and then take turns.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cores) < 2:
        yield
        return
    os.sched_setaffinity(server, cores[:1])
    for other in others:
        os.sched_setaffinity(other, cores[1:])
    try:
        yield
    finally:
        os.sched_setaffinity(server, cores)


def _busy() -> float:
    before, began = _busy_s(), time.monotonic()
    time.sleep(_LOOK_S)
    return (_busy_s() - before) / ((time.monotonic() - began) * (os.cpu_count() or 1))


def _busy_s() -> float:
    """Seconds of all cores that were not idle; 0 where the system does not tell."""
    try:
        user, nice, system, _, _, *rest = (
            int(part) for part in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
        )
    except OSError:
        return 0.0
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")
