"""The answer to how much: "26 degrees" is a value, "2 degrees" and "a bit" are by how much more or less. Pure."""

from dataclasses import dataclass, replace
from typing import Final

from backend_loop.language.frame import Frame, Verb
from backend_loop.language.numbers import number
from backend_loop.language.tongues import Tongue
from shared.actions import ACTIONS

_BETWEEN: Final = ACTIONS["set_temperature"].between
LOWEST: Final = _BETWEEN[0] if _BETWEEN else 0
"""Degrees that nothing can be set below: what is less is by how much."""

BIT: Final = 1
"""Degrees."""


@dataclass(frozen=True)
class Amount:
    """Degrees; ``by``: more or less by so many."""

    degrees: float
    by: bool


def amount(text: str, tongue: Tongue) -> Amount | None:
    """What an answer says of how much; None: nothing, or other things as well."""
    found = tongue.amount.match(text)
    if found is None:
        return None
    said = number(found["n"]) if found["n"] else BIT
    return Amount(said, by=said < LOWEST or found["by"] is not None)


def put(frame: Frame, to: Amount) -> Frame:
    """More or less of an unknown amount, now that it is known."""
    told = replace(frame, aspect="temperature", number=to.degrees, percent=False, degrees=True, level=None)
    return told if to.by else replace(told, verb=Verb.SET, change=None)
