"""Threads for what blocks, such as a handler with ``runs="thread"``: daemons, so none keeps the process from ending."""

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Generic, NamedTuple, TypeVar

from shared.logs import get

log = get(__name__)

R = TypeVar("R")


class Ended(NamedTuple, Generic[R]):
    """What a thread's work left: what it returned, or what it raised."""

    returned: R | None
    raised: BaseException | None


class Threads:
    """At most so many at a time; one that was left behind counts until it has ended.

    A thread is begun for each run (50 us, where a handler takes milliseconds), so nothing is left in it for the next.
    """

    def __init__(self, most: int) -> None:
        """None is started yet."""
        self._places = asyncio.Semaphore(most)

    async def begin(
        self, name: str, work: Callable[[], R], begins: Callable[[], None] = lambda: None
    ) -> asyncio.Future[Ended[R]]:
        """Start a thread, once there is a place; what comes of it. The future is never cancelled by us.

        Raises:
            RuntimeError: the system has no room for one.
        """
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Ended[R]] = loop.create_future()

        def settle(end: Ended[R]) -> None:
            self._places.release()
            ended.set_result(end)

        def run() -> None:
            try:
                end = Ended[R](work(), None)
            except BaseException as error:  # noqa: BLE001  SystemExit too: a handler does not end the worker
                end = Ended[R](None, error)
            try:
                loop.call_soon_threadsafe(settle, end)
            except RuntimeError:
                log.info("thread ended after its worker", thread=name)

        begins()
        try:
            threading.Thread(target=copy_context().run, args=(run,), name=name, daemon=True).start()
        except RuntimeError:
            self._places.release()
            raise
        return ended
