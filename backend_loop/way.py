"""Bulk missions step aside while urgent ones run in the same process, so that these meet an event loop that is free.

Slots and lanes say who begins. This is about who goes on: fifty bulk missions that are all between two steps would each
have their turn of the loop before an urgent one has its next.
"""

import asyncio
import time
from collections import deque
from typing import Final

ASIDE_S: Final = 0.2
"""How long a bulk mission waits at most before a step of it; and how long an urgent one is given way to."""

GAP_S: Final = 0.001
"""Between two that go on again: all at once would be in the way of the next urgent one."""


class Way:
    """Of one process.

    Args:
        few: so many urgent missions are given way to; where more of them run it is a flood, and lanes have shares.
        most: so many bulk missions step aside at a time; the others go on, whatever comes.
    """

    def __init__(self, few: int, most: int) -> None:
        """Nobody runs yet."""
        self._few, self._most = few, most
        self._urgent, self._until = 0, 0.0
        self._waiting = deque[asyncio.Future[None]]()

    @property
    def aside(self) -> int:
        """How many bulk missions wait."""
        return len(self._waiting)

    @property
    def closed(self) -> bool:
        """Whether bulk missions step aside now."""
        return 0 < self._urgent <= self._few and time.monotonic() < self._until

    def begins(self) -> None:
        """An urgent mission runs from now on."""
        self._urgent += 1
        self._until = time.monotonic() + ASIDE_S

    def ended(self) -> None:
        """It does no more."""
        self._urgent -= 1
        if not self._urgent and self._waiting:
            self._next()

    async def clear(self) -> None:
        """Return when nobody is in a hurry, or after a moment at most."""
        if not (self.closed or self._waiting) or len(self._waiting) >= self._most:
            return
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        late = loop.call_later(ASIDE_S, _let, turn)
        self._waiting.append(turn)
        try:
            await turn
        finally:
            late.cancel()
            if turn in self._waiting:
                self._waiting.remove(turn)

    def _next(self) -> None:
        if self._waiting and not self.closed:
            _let(self._waiting.popleft())
            asyncio.get_running_loop().call_later(GAP_S, self._next)


def _let(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
