"""Other processes, as the kernel tells of them."""

from pathlib import Path


def gone(pid: int) -> bool:
    """Whether a process has ended, reaped or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def offspring(tally: Path) -> int:
    """The process that a handler of `tests.missions.heavy` has started; 0: none yet."""
    words = [line.split()[0] for line in tally.read_text().splitlines()] if tally.exists() else []
    return next((int(word.partition("-")[2]) for word in words if word.startswith("offspring-")), 0)
