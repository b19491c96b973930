"""Threads for handlers with ``runs="thread"``: daemons of our own, so that none keeps the process from ending."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import NamedTuple

from backend_loop.outcomes import Outcome
from shared.logs import get

log = get(__name__)


class Ended(NamedTuple):
    """What a handler left: what it returned, or what it raised."""

    returned: Outcome | None
    raised: BaseException | None


class Threads:
    """At most so many at a time; one that was left behind counts until it has ended.

    A thread is begun for each run (50 us, where a handler takes milliseconds), so nothing is left in it for the next.
    """

    def __init__(self, most: int) -> None:
        """None is started yet."""
        self._places = asyncio.Semaphore(most)

    async def begin(
        self, handler: str, work: Callable[[], Outcome], begins: Callable[[], None]
    ) -> asyncio.Future[Ended]:
        """Start a thread, once there is a place; what comes of it. The future is never cancelled by us.

        Raises:
            RuntimeError: the system has no room for one.
        """
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Ended] = loop.create_future()

        def settle(end: Ended) -> None:
            self._places.release()
            ended.set_result(end)

        def run() -> None:
            try:
                end = Ended(work(), None)
            except BaseException as error:  # noqa: BLE001  SystemExit too: a handler does not end the worker
                end = Ended(None, error)
            try:
                loop.call_soon_threadsafe(settle, end)
            except RuntimeError:
                log.info("handler ended after its worker", handler=handler)

        begins()
        try:
            threading.Thread(target=copy_context().run, args=(run,), name=handler, daemon=True).start()
        except RuntimeError:
            self._places.release()
            raise
        return ended
