"""Named points at which the next request can be held, so that a test puts something exactly in between."""

import asyncio
from enum import StrEnum


class Point(StrEnum):
    """Where in a request: before and after the device is read, before and after it is told."""

    OBSERVE = "observe"
    OBSERVED = "observed"
    ACT = "act"
    ACTED = "acted"


class Gate:
    """The points of one device. A hold stops the next request that comes by, or every one, until `release`."""

    def __init__(self) -> None:
        """Nothing is held."""
        self._armed: dict[Point, bool] = {}  # and whether every request is meant
        self._held: dict[Point, list[asyncio.Event]] = {}
        self._news = asyncio.Condition()

    def hold(self, point: Point, *, every: bool = False) -> None:
        """Stop the next request that comes to ``point``, or all that come."""
        self._armed[point] = every

    def release(self, point: Point | None = None) -> None:
        """Let everything at ``point``, or at all points, go on, and hold nothing more there."""
        for at in Point if point is None else (point,):
            self._armed.pop(at, None)
            for event in self._held.get(at, ()):
                event.set()

    async def pass_by(self, point: Point) -> None:
        """Go through ``point``, or stand there until released."""
        if point not in self._armed:
            return
        if not self._armed[point]:
            del self._armed[point]
        released = asyncio.Event()
        async with self._news:
            self._held.setdefault(point, []).append(released)
            self._news.notify_all()
        try:
            await released.wait()
        finally:
            self._held[point].remove(released)

    @property
    def held(self) -> list[Point]:
        """The points where a request stands."""
        return [point for point, events in self._held.items() if events]

    async def when_held(self, within: float) -> list[Point]:
        """The same, as soon as there is one or ``within`` seconds have passed."""
        try:
            async with asyncio.timeout(within), self._news:
                await self._news.wait_for(lambda: self.held)
        except TimeoutError:
            pass
        return self.held
