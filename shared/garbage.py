"""The garbage collector, told what a server knows: what is there when it begins to serve stays to its end.

As it comes, it looks through every module and class again and again: a third of a busy worker's time, and pauses of
tens of milliseconds in a foreground.
"""

import gc
from typing import Final

YOUNG: Final = 20_000
"""Objects made and not freed before it looks at the young ones: what some hundred missions hold at a time."""


def settle() -> None:
    """Call it in a process of our own, right before it serves: it never looks again at what is there by now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)
