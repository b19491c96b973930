"""Missions as older releases left them: JSON files beside this one, a file for each version of a type."""

import json
from pathlib import Path
from typing import Any, Final

from backend_loop.mission import Example

FOLDER: Final = Path(__file__).parent / "examples"


def stored(kind: str) -> list[dict[str, Any]]:
    """What lies in the file of a ``type@version``: payload, context, state, and what the newest version makes of it."""
    found: list[dict[str, Any]] = json.loads((FOLDER / f"{kind}.json").read_text())
    return found


def examples(kind: str) -> list[Example]:
    """The same as a type wants them for its upcasters."""
    return [Example(one["payload"], one["context"], one["state"]) for one in stored(kind)]
