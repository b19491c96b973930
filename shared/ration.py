"""So many a second, and the rest counted: what may come once in a while or ten thousand times a second."""

import math
import time


class Ration:
    """What one kind of thing still has left of this second."""

    __slots__ = ("_left", "_most", "_refused", "_until")

    def __init__(self, most: int) -> None:
        """At most so many in a second."""
        self._most, self._left, self._refused, self._until = most, 0, 0, -math.inf

    def take(self) -> int | None:
        """How many were refused since the last one that was not; None: this one is refused too."""
        now = time.monotonic()
        if now >= self._until:
            self._left, self._until = self._most, now + 1
        if not self._left:
            self._refused += 1
            return None
        refused, self._refused = self._refused, 0
        self._left -= 1
        return refused
