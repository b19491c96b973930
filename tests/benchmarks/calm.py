"""The machine: whether it is quiet enough to measure, and what a process has used of it."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

QUIET: Final = 0.2
"""Share of the machine that others may use while a measurement begins."""

PATIENCE_S: Final = 15.0
_LOOK_S: Final = 0.5


def calm() -> float:
    """Wait, for a while, until the machine is quiet; how busy it was at the last look."""
    give_up = time.monotonic() + PATIENCE_S
    while (busy := _busy()) > QUIET and time.monotonic() < give_up:
        pass
    return busy


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
    before = _times()
    time.sleep(_LOOK_S)
    after = _times()
    total = sum(after) - sum(before)
    idle = (after[3] + after[4]) - (before[3] + before[4])
    return 1 - idle / total if total else 0.0


def _times() -> list[int]:
    try:
        return [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except OSError:
        return [0] * 8
