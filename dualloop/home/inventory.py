"""The demonstration home's inventory: what its devices are called, where they are, and what they do at one word."""

import contextlib
from importlib.resources import files
from pathlib import Path

from dualloop.errors import Refusal
from dualloop.state_folder import write_whole


def demonstration_inventory() -> str:
    """The document, as `shared.home` reads it."""
    return (files("dualloop") / "home" / "inventory.json").read_text(encoding="utf-8")


def furnish(path: Path) -> None:
    """Write it there for people to edit, if there is no file yet; one that cannot be written is no reason to stop."""
    if not path.exists():
        with contextlib.suppress(Refusal):
            write_whole(path, demonstration_inventory())
