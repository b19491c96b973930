"""The state folder: what it holds is private to its owner, and locked by whoever runs something in it."""

import contextlib
import os
from pathlib import Path

from dualloop.errors import Refusal


def state_folder(path: Path) -> Path:
    """Make the folder, mode 0700; its absolute path.

    One that exists already and holds things keeps its mode, since closing it could lock somebody out (think of
    ``/tmp``); what we put there is in private folders of its own.

    Raises:
        Refusal: it cannot be made or read.
    """
    path = path.absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.stat().st_uid == os.getuid() and not any(path.iterdir()):
            path.chmod(0o700)
    except OSError as error:
        raise _unusable(path, error) from error
    return path


def private_folder(path: Path) -> Path:
    """Make a folder that only its owner can enter.

    Raises:
        Refusal: it cannot be made, or is another user's or a link, which could be a trap.
    """
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        if path.is_symlink() or path.stat().st_uid != os.getuid():
            raise Refusal(f"{path} belongs to another user: choose another folder with DUALLOOP_STATE_DIR.")
        path.chmod(0o700)
    except OSError as error:
        raise _unusable(path, error) from error
    return path


def _unusable(path: Path, error: OSError) -> Refusal:
    return Refusal(f"{path} cannot be used: {error.strerror}. Choose another folder with DUALLOOP_STATE_DIR.")


def write_whole(path: Path, text: str) -> None:
    """Replace the file in one step, so that no reader sees half of it.

    Raises:
        Refusal: there is no room for it, or it cannot be written.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise _unusable(path, error) from error
