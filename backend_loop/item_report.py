"""The report of a batch, item by item: JSON lines in a file that goes on where the last checkpoint has left it."""

import os
from typing import IO

from pydantic_core import to_json

from backend_loop.files import File, LostPartError


class ItemReport:
    """Appends to the file; each call blocks until the disk has it.

    Args:
        file: made for this run.
        done: items whose lines earlier runs have written.
    """

    def __init__(self, file: File, done: int) -> None:
        """Nothing is opened yet."""
        self._file, self._done = file, done
        self._begun = False

    def append(self, at: int, lines: bytes) -> int:
        """Write these behind the first `at` bytes, which alone are right; the length then.

        Raises:
            OSError: the disk does not take it.
        """
        with self._open(at) as stream:
            stream.write(lines)
            stream.flush()
            os.fsync(stream.fileno())
            return stream.tell()

    def publish(self) -> str:
        """Give it out; the link. Raises as `File.publish`."""
        return self._file.publish()

    def _open(self, at: int) -> IO[bytes]:
        if self._begun:
            stream: IO[bytes] = self._file.path.open("r+b")
            stream.truncate(at)
            stream.seek(at)
            return stream
        self._begun = True
        try:
            return self._file.resume(at)
        except LostPartError:  # another machine has it: what was done there is done, and is not told again
            stream = self._file.resume(0)
            stream.write(to_json({"lost": self._done}) + b"\n")
            return stream
