"""The files that missions have published, as a foreground finds them: below one folder, and nowhere else."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

from shared.clock import rfc3339
from shared.files import NAME, link_of


class Shelf:
    """Looks into the folder; every call blocks, for the time of a look.

    No symbolic link is followed below it, nor is anything given out that is no plain file.

    Args:
        folder: of the files of all missions; itself it may be a link.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is opened yet."""
        self._folder = folder

    def open(self, task_id: str, name: str) -> int | None:
        """A descriptor of a published file, to be closed by whoever asks; None: there is none.

        Raises:
            OSError: it cannot be read.
        """
        if not NAME.fullmatch(name):
            return None
        with self._of(task_id) as inside:
            if inside is None:
                return None
            try:
                found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=inside)
            except FileNotFoundError:
                return None
            except OSError:
                if _is_plain(inside, name):
                    raise
                return None  # a link, or a socket
        if not stat.S_ISREG(os.fstat(found).st_mode):
            os.close(found)
            return None
        return found

    def list(self, task_id: str) -> list[dict[str, Any]] | None:
        """What is published of a mission, by name: ``name bytes modified_at link``; None: it has no folder.

        Raises:
            OSError: it cannot be read.
        """
        with self._of(task_id) as inside:
            if inside is None:
                return None
            return sorted(_told(task_id, inside), key=itemgetter("name"))

    @contextmanager
    def _of(self, task_id: str) -> Iterator[int | None]:
        """The mission's own folder."""
        try:
            outer = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            yield None
            return
        try:
            inner = os.open(task_id, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=outer)
        except (FileNotFoundError, NotADirectoryError):  # the latter of a link too
            inner = None
        finally:
            os.close(outer)
        try:
            yield inner
        finally:
            if inner is not None:
                os.close(inner)


def _is_plain(inside: int, name: str) -> bool:
    return stat.S_ISREG(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode)


def _told(task_id: str, inside: int) -> Iterator[dict[str, Any]]:
    with os.scandir(inside) as entries:
        for entry in entries:
            if NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):  # the mission has been retired this moment
                    found, link = entry.stat(follow_symlinks=False), link_of(task_id, entry.name)
                    at = rfc3339(found.st_mtime_ns // 1_000_000)
                    yield {"name": entry.name, "bytes": found.st_size, "modified_at": at, "link": link}
