"""The scripts: one verb a file in ``lua/``, each sent with the moves that all share in front of it.

The schema of the product is these files and `shared.keys`. An answer is a word or a list; never a guess.
"""

import hashlib
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

TAKES_IN: Final = frozenset(
    {"accept", "announce", "attend", "deposit", "furnish", "reserve", "schedule", "session", "speak"}
)
"""Verbs that take in new data; all others may write while Redis is full, or nothing would ever drain (P4)."""

VERBS: Final = (
    "abandon",
    "accept",
    "adopt",
    "announce",
    "attend",
    "audit",
    "breaker",
    "carried",
    "carry",
    "claim",
    "commit",
    "control",
    "deposit",
    "discard",
    "fire",
    "furnish",
    "listen",
    "permit",
    "prioritize",
    "progress",
    "release",
    "renew",
    "replay",
    "reserve",
    "resign",
    "retire",
    "schedule",
    "session",
    "speak",
    "steer",
    "sweep",
    "term",
    "watch",
)


ENDS: Final = frozenset({"abandon", "audit", "claim", "control", "prioritize", "replay", "sweep"})
"""Verbs that also need what is done to a mission behind its lease holder's back: ``ends.lua``."""

RECORDS: Final = frozenset({"deposit", "speak"})
"""Verbs that take in what people say, where there is room: ``room.lua``."""


@dataclass(frozen=True, slots=True)
class Script:
    """A verb's whole text and the SHA-1 that Redis knows it by."""

    verb: str
    text: str
    sha: str


def _load(verb: str) -> Script:
    folder = files("shared") / "lua"
    names = ("places", *(("ends",) if verb in ENDS else ()), *(("room",) if verb in RECORDS else ()), verb)
    flags = "" if verb in TAKES_IN else " flags=allow-oom"
    text = f"#!lua{flags}\n" + "".join((folder / f"{name}.lua").read_text() for name in names)
    return Script(verb, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


SCRIPTS: Final = {verb: _load(verb) for verb in VERBS}
