"""Files that missions make: written beside their place, published whole, given out by every foreground.

The files of a mission are kept as long as its record, and may take so much of the disk, all together: that is looked at
with each checkpoint and before one is published. All processes of a fleet need the same folder.
"""

import asyncio
import fcntl
import os
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from shared.files import NAME, folder_of, link_of, read_link

CHUNK: Final = 1 << 20
PRIVATE: Final = 0o700
UNBOUNDED: Final = sys.maxsize
"""Bytes that the files of a mission may have together, where nobody has said how many."""
_PART: Final = re.compile(r"\.(.+)\.(\d+)-(\d+)\.part")


class FileNameError(ValueError):
    """No file of a mission can be called so."""


class NoFileError(Exception):
    """There is no such file: it was not published here, or its mission is gone."""


class LostPartError(Exception):
    """What an earlier run has written is not there any more: the file has to be begun anew."""


class FilesTooLargeError(Exception):
    """A mission has written more than it may; let through, it ends the mission as `too_large`."""


class File:
    """One file of a mission, as one run of a handler writes it; made by `tools.file`.

    Each run writes to a place of its own, and holds a lock on it as long as it lives. So one that has lost its lease,
    and does not know yet, cannot spoil what its successor writes.

    Attributes:
        path: where to write; nobody sees it there.
        link: the path under which it is downloaded once it is published.
    """

    __slots__ = ("__weakref__", "_check", "_folder", "_locks", "_most", "_name", "_order", "link", "path")

    def __init__(  # noqa: PLR0913, PLR0917  made by `Files` only
        self, files: Path, task_id: str, name: str, fence: int, check: Callable[[], None], most: int
    ) -> None:
        """Takes a place beside the file's.

        Args:
            files: the folder of all missions' files.
            task_id: whose it is.
            name: letters, digits, ``.``, ``_`` and ``-``, a hundred at most, no dot first.
            fence: of the lease.
            check: raises where the run may not go on.
            most: bytes that all files of the mission may take.

        Raises:
            FileNameError: it cannot be called so.
            OSError: the folder cannot be written.
        """
        if not NAME.fullmatch(name):
            raise FileNameError(
                f"{name!r} cannot be a file's name: letters, digits, . _ and -, no dot first, 100 at most"
            )
        self._folder, self._name, self._check, self._most = folder_of(files, task_id), name, check, most
        self.link = link_of(task_id, name)
        self._folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
        self._locks: list[int] = []
        weakref.finalize(self, _let_go, self._locks)
        self._order, self.path = self._take(fence)

    def _take(self, fence: int) -> tuple[tuple[int, int], Path]:
        """A part that nobody else writes to; the order says which of them is the newest."""
        number = 0
        while True:
            path = self._folder / f".{self._name}.{fence}-{number}.part"
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                number += 1
            else:
                self._locks.append(descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                return (fence, number), path

    def resume(self, length: int) -> IO[bytes]:
        """Open it for writing behind what earlier runs have written, as a checkpoint says.

        Args:
            length: bytes that are right; 0 begins anew.

        Raises:
            LostPartError: they are not there.
        """
        if length:
            self._inherit(length)
        self._drop_older()
        stream = os.fdopen(os.dup(self._locks[-1]), "r+b")  # the lock is held as long as either of them is open
        stream.truncate(length)
        stream.seek(length)
        return stream

    def publish(self) -> str:
        """Give it out, whole, in place of an earlier one of this name; the link. Last thing that is done with it.

        Raises:
            CutError, DeadlinePassedError, LapsedError: this run may not go on; see the `check` of the tools.
            FilesTooLargeError: there is more than may be.
            OSError: it cannot be written.
        """
        self._check()  # whoever was overtaken is told so, not that its part is gone
        _bound(self._folder, self._most)
        _sync(self.path)
        self._check()
        self.path.replace(self._folder / self._name)
        _sync(self._folder)
        self._drop_older()
        return self.link

    def _inherit(self, length: int) -> None:
        """From the newest run that came so far; what was published last comes last."""
        for _, path in sorted(self._older(), reverse=True):
            if self._take_over(path, length) or self._copy(path, length):
                return
        if not self._copy(self._folder / self._name, length):
            raise LostPartError(f"{length} bytes of {self._name} were written, and are not in {self._folder}")

    def _take_over(self, path: Path, length: int) -> bool:
        """The file of a run that lives no more becomes this one's; false: it is too short, or may be written to yet."""
        try:
            descriptor = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            long_enough = os.fstat(descriptor).st_size >= length
        except BlockingIOError:
            long_enough = False
        if not long_enough:
            os.close(descriptor)
            return False
        path.replace(self.path)
        self._locks.append(descriptor)
        return True

    def _copy(self, path: Path, length: int) -> bool:
        """So many bytes of it become this one's; false: it is too short."""
        try:
            source = path.open("rb")
        except FileNotFoundError:
            return False
        with source, self.path.open("r+b") as sink:
            if os.fstat(source.fileno()).st_size < length:
                return False
            _pour(source, sink, length)
        return True

    def _older(self) -> Iterator[tuple[tuple[int, int], Path]]:
        for path in self._folder.iterdir():
            if (found := _PART.fullmatch(path.name)) is not None and found[1] == self._name:
                order = int(found[2]), int(found[3])
                if order < self._order:
                    yield order, path

    def _drop_older(self) -> None:
        for _, path in self._older():
            path.unlink(missing_ok=True)


class Files:
    """The folder of all missions' files.

    Args:
        folder: it is made once there is a file; None: there is none here.
        most: bytes that the files of one mission may take.
    """

    def __init__(self, folder: Path | None, most: int = UNBOUNDED) -> None:
        """Nothing is made yet."""
        self.folder, self.most = folder, most

    def file(self, task_id: str, name: str, fence: int, check: Callable[[], None]) -> File:
        """A file to write; see `File`."""
        return File(self._there(), task_id, name, fence, check, self.most)

    def bound(self, task_id: str) -> None:
        """Look how much a mission has written.

        Raises:
            FilesTooLargeError: more than it may; what was not published of it is gone.
        """
        if self.folder is not None:
            _bound(folder_of(self.folder, task_id), self.most)

    async def bounded(self, task_id: str) -> None:
        """As `bound`, from the event loop: where there are any, in a thread, since a thousand take milliseconds."""
        if self.folder is not None and folder_of(self.folder, task_id).exists():
            await asyncio.to_thread(self.bound, task_id)

    def of(self, task_id: str) -> Path:
        """Where the files of a mission lie.

        Raises:
            RuntimeError: nothing here keeps files.
        """
        return folder_of(self._there(), task_id)

    def find(self, link: str) -> Path:
        """Where a published file lies, to be read: what one mission hands to another is its link.

        Raises:
            NoFileError: there is none.
        """
        if (read := read_link(link)) is None:
            raise NoFileError(f"{link!r} is no link to a file")
        path = self.of(read[0]) / read[1]
        if path.is_symlink() or not path.is_file():
            raise NoFileError(f"there is no file {link} here: it was not published, or its mission is gone")
        return path

    def _there(self) -> Path:
        if self.folder is None:
            raise RuntimeError("nothing here keeps files")
        return self.folder


NO_FILES: Final = Files(None)


def _bound(folder: Path, most: int) -> None:
    """Raise where its files, with what is not published yet, are more; one counts once, however often it was begun."""
    sizes, parts = dict[str, int](), list[str]()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if (part := _PART.fullmatch(entry.name)) is not None:
                    parts.append(entry.path)
                name = entry.name if part is None else part[1]
                sizes[name] = max(sizes.get(name, 0), entry.stat(follow_symlinks=False).st_size)
    except FileNotFoundError:
        return  # there are none, or one has just got its own name
    if (size := sum(sizes.values())) > most:
        for path in parts:
            Path(path).unlink(missing_ok=True)
        raise FilesTooLargeError(f"its files have {size} bytes, of {most} allowed")


def _pour(source: IO[bytes], sink: IO[bytes], length: int) -> None:
    while length:
        chunk = source.read(min(CHUNK, length))
        if not chunk:
            raise LostPartError(f"{source.name} has become shorter")
        sink.write(chunk)
        length -= len(chunk)


def _let_go(locks: Iterable[int]) -> None:
    for descriptor in locks:
        os.close(descriptor)


def _sync(path: Path) -> None:
    """Have the disk write it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
