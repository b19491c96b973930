"""How far handlers say that they are: the newest value only, a few times a second, for all of a shard at once.

What is told here may be lost, and costs a watcher an update: each commit carries the newest value too.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic_core import to_json

from shared.errors import RedisAwayError
from shared.flights import Flights
from shared.logs import get
from shared.redis import Link

if TYPE_CHECKING:
    from backend_loop.store import Claimed

log = get(__name__)

EVERY_S: Final = 0.25
"""A mission's newest value is told so often at most."""

LONGEST: Final = 200
"""Characters of a message."""

MOST: Final = 1e15
"""Beyond it a float no longer counts by ones, so that nothing which was counted is so large."""


class Progress(NamedTuple):
    """So much is `done`, of so much in all, in the unit that the handler chose, and what is being done."""

    done: float
    total: float | None = None
    message: str | None = None

    def told(self) -> bytes:
        """As the record has it."""
        return to_json(self._asdict())


def progress(done: float, total: float | None = None, message: str | None = None) -> Progress:
    """What a handler may say; a long message is cut.

    Raises:
        ValueError: a number that is negative, not finite, or larger than anything that was counted.
    """
    for name, value in (("done", done), ("total", 0 if total is None else total)):
        # raised within the handler that says so, so it is a failed try like any other
        if not (isinstance(value, int | float) and 0 <= value <= MOST):
            raise ValueError(f"progress: {name} is {value!r}: say a number from 0")
    if message is not None:
        message = str(message)[:LONGEST].encode(errors="replace").decode()
    return Progress(done, total, message)


class _Report(NamedTuple):
    """What one mission has said, and under which lease and commit."""

    owner: str
    fence: int
    rev: int
    said: Progress


class Reports:
    """Tells what missions of one shard say of themselves while their handlers run.

    Args:
        link: to Redis.
        prefix: of the shard.
    """

    def __init__(self, link: Link, prefix: str) -> None:
        """Nothing is told yet."""
        self._flights = Flights(link, "progress", prefix, second_from=1)
        self._newest: dict[str, _Report] = {}
        self._untold, self._flying = set[str](), set[str]()
        self._timer: asyncio.TimerHandle | None = None
        self._told_at = 0.0

    def tell(self, claimed: "Claimed", rev: int, said: Progress) -> None:
        """This is its newest value since its commit `rev`; never waits."""
        self._newest[claimed.task_id] = _Report(claimed.owner, claimed.fence, rev, said)
        self._untold.add(claimed.task_id)
        self._soon()

    def _soon(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._told_at + EVERY_S), self._leave)

    def forget(self, claimed: "Claimed") -> None:
        """Its handler has ended, or a commit carries the value: what is not told yet never is."""
        if (known := self._newest.get(claimed.task_id)) is not None and known.fence == claimed.fence:
            del self._newest[claimed.task_id]
            self._untold.discard(claimed.task_id)

    def _leave(self) -> None:
        self._timer, self._told_at = None, asyncio.get_running_loop().time()
        leaving, self._untold = self._untold - self._flying, self._untold & self._flying
        for task_id in leaving:
            report = self._newest[task_id]
            self._flying.add(task_id)
            flight = self._flights.add((report.owner,), (task_id, report.fence, report.rev, report.said.told()))
            flight.add_done_callback(partial(self._landed, task_id, report))

    def _landed(self, task_id: str, report: _Report, flight: asyncio.Future[Any]) -> None:
        self._flying.discard(task_id)
        error = flight.exception()
        if isinstance(error, RedisAwayError):
            if self._newest.get(task_id) is report:
                self._untold.add(task_id)
        elif error is not None or isinstance(flight.result(), list):
            why = str(error) if error is not None else flight.result()[1].decode(errors="replace")
            log.often("progress not told", task_id=task_id, error=why)
        if task_id in self._untold:
            self._soon()
