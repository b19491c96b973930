"""Files that missions make: how they are called, where they lie, and under which link they are downloaded.

``<files_dir>/<task_id>/<name>``: a name is a plain one, so that no path can be made of it. What begins with a dot is
not finished yet.
"""

import re
from pathlib import Path
from typing import Final

NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
ROUTE: Final = "/v1/files"

_LINK: Final = re.compile(rf"{ROUTE}/([0-9A-Z]{{40}})/({NAME.pattern})")


def link_of(task_id: str, name: str) -> str:
    """Under which path a foreground gives out the file."""
    return f"{ROUTE}/{task_id}/{name}"


def read_link(link: str) -> tuple[str, str] | None:
    """The mission and the name of a link; None: it is none."""
    found = _LINK.fullmatch(link)
    return None if found is None else (found[1], found[2])


def folder_of(files: Path, task_id: str) -> Path:
    """Where the files of a mission lie."""
    return files / task_id
