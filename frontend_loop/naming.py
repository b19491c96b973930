"""How sentences name things: what there is instead of what was asked for, where a handler failed, how many. Pure."""

import difflib
import functools
from collections.abc import Mapping
from typing import Any, Final

MOST: Final = 20
"""Names in one sentence."""


@functools.lru_cache(maxsize=64)  # a batch has its mistake in each of its thousand commands
def instead(wanted: str, names: tuple[str, ...]) -> str:
    """``a.name, another``: of these names the nearest to the wanted one first, then as they come, `MOST` at most.

    How many more there are is said, since whoever looks for a name must not take it for one that is not there.
    """
    near = difflib.get_close_matches(wanted, names, n=3)
    told = [*near, *(name for name in names if name not in near)]
    more = len(told) - MOST
    return ", ".join(told[:MOST]) + (f", and {more} more" if more > 0 else "")


def placed(error: Mapping[str, Any], sentence: Any) -> str:
    """With the line of its author's file in front, where the error says it."""
    return f"{error['at']}: {sentence}" if error.get("at") else str(sentence)


def counted(number: int | None, one: str, many: str | None = None) -> str:
    """``1 child``, ``2 children``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def ordinal(number: int) -> str:
    """``1st``, ``2nd``, ``11th``."""
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
