"""The file that is read: found where files may be read, and the same one from the survey to the last chunk."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from backend_loop.etl.records import SourceError


def find(folder: Path, name: str) -> Path:
    """The file of this name under the folder.

    Raises:
        SourceError: there is none, it is no plain file, or a link leads out of the folder.
    """
    try:
        root, path = folder.resolve(), (folder / name).resolve()
    except RuntimeError as error:  # so it is raised; from 3.13 on `stat` says OSError
        raise SourceError(f"{name} is a link that leads to itself") from error
    if not path.is_relative_to(root):
        raise SourceError(f"{name} leads out of {folder}, where files may be read")
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise SourceError(f"{name} is not in {folder} (DUALLOOP_DATA_DIR): {error.strerror}") from error
    if not stat.S_ISREG(mode):  # opening a pipe would wait for somebody to write
        raise SourceError(f"{name} is no plain file")
    return path


@contextmanager
def opened(folder: Path, name: str, stamp: str = "") -> Iterator[tuple[IO[bytes], str]]:
    """The file to be read, and its stamp, by which it is known again.

    Args:
        folder: see `find`.
        name: see `find`.
        stamp: that it was known by.

    Raises:
        SourceError: see `find`; or it has changed since.
    """
    with find(folder, name).open("rb") as stream:
        facts = os.fstat(stream.fileno())
        now = f"{facts.st_size}-{facts.st_mtime_ns}"
        if stamp and stamp != now:
            raise SourceError(f"{name} has changed since it was surveyed: send it again")
        yield stream, now
