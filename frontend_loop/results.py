"""A mission's result, now or as soon as there is one."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from frontend_loop import progress
from frontend_loop.feed import Feed, Reading
from frontend_loop.record import whole
from shared.clock import rfc3339
from shared.errors import Problem
from shared.fleet import Fleet
from shared.ids import MissionId
from shared.sessions import TYPE
from shared.status import TERMINAL, Status, WaitingFor

REREAD_S: Final = 2.0
"""A waiter reads again so often, should every hint be lost."""

_WAITS: Final = f'"{Status.WAITING}"'.encode()
"""In a hint: it may be a question that is waited for."""

Gone = Callable[[], Coroutine[Any, Any, None]]
"""Returns when nobody waits for the answer any more; cancelled if the answer comes first."""


@dataclass(frozen=True, slots=True)
class Document:
    """A result document, whether it is the final one, and whether it has a question for who waits for it."""

    body: bytes
    final: bool
    asks: bool = False


class Results:
    """Reads results; waits for them where asked to."""

    def __init__(self, feed: Feed, fleet: Fleet) -> None:
        """Ready at once."""
        self._feed, self._fleet = feed, fleet
        self._waiting, self._draining = set[asyncio.Event](), False

    def drain(self) -> None:
        """Let nobody wait any more: this process goes, and another one can be asked."""
        self._draining = True
        for told in self._waiting:
            told.set()

    def genuine(self, text: str) -> MissionId:
        """The id, if this fleet made it.

        Raises:
            Problem: 404.
        """
        found = self._fleet.ids.read(text)
        if found is None or found.shard >= self._fleet.shards:
            raise Problem("bad_id", "this is no correlation_id of this system: use the one from the ack")
        return found

    async def get(
        self, text: str, wait_s: float = 0.0, gone: Gone | None = None, *, or_asked: bool = False
    ) -> Document:
        """The result document; while the mission is not done and `wait_s` is left, wait.

        Args:
            text: the id.
            wait_s: seconds to wait at most, but for what Redis takes to answer.
            gone: ends the waiting.
            or_asked: so does a question: who is asked cannot answer while he waits for the end.

        Raises:
            Problem: 404 never known, 410 expired.
            RedisAwayError: it cannot be read now.
        """
        mission = self.genuine(text)
        if wait_s <= 0:
            return await self._read(mission)
        loop = asyncio.get_running_loop()
        left: asyncio.Future[None] = loop.create_future() if gone is None else loop.create_task(gone())
        try:
            return await self._wait(mission, loop.time() + wait_s, left, or_asked=or_asked)
        finally:
            if left.done():
                self._feed.forgo(mission.shard, mission.text)
            left.cancel()

    async def _read(self, mission: MissionId) -> Document:
        return _document(mission.text, await self._feed.read(mission.shard, mission.text))

    async def _wait(self, mission: MissionId, end: float, left: asyncio.Future[None], *, or_asked: bool) -> Document:
        clock = asyncio.get_running_loop().time
        told = asyncio.Event()
        final: list[bytes] = []

        def hear(lines: list[bytes] | None) -> None:
            final.extend(line[1:] for line in lines or () if line.startswith(b"R"))
            if lines is None or final or (or_asked and any(_WAITS in line for line in lines)):
                told.set()

        left.add_done_callback(lambda _: told.set())
        leave = self._feed.listen(mission.shard, mission.text, hear)
        self._waiting.add(told)
        try:
            await self._feed.register(mission.shard, [mission.text])
            while True:
                told.clear()
                document = await self._read(mission)
                rest = end - clock()
                if document.final or (or_asked and document.asks) or rest <= 0 or left.done() or self._draining:
                    return document
                try:
                    # neither wait_for nor a time-out around it all: the first (3.11) forgets that the second cancelled
                    # it if it is told something in the same moment
                    async with asyncio.timeout(min(REREAD_S, rest)):
                        await told.wait()
                except TimeoutError:
                    continue
                if final:
                    return Document(final[0], final=True)
        finally:
            leave()
            self._waiting.discard(told)


def _document(task_id: str, reading: Reading) -> Document:
    if reading.result is not None:
        return Document(reading.result, final=True)
    record = reading.record
    if record is None or record.get("status") in TERMINAL:
        raise Problem("expired", "this mission has ended and its result is no longer kept", correlation_id=task_id)
    waits = waiting_for(record)
    return Document(
        to_json(
            {
                "correlation_id": record.get("root", task_id),
                "task_id": task_id,
                "type": record["type"],
                "status": record.get("status"),
                "state": record.get("state"),
                "seq": whole(record.get("seq", "0")),
                "result": None,
                "error": None,
                "reason": None,
                "waiting_for": waits,
                "run": whole(record.get("run", "1")),
                "progress": progress.document(record.get("progress")),
                "freshness": None,
                "created_at": _time(record, "created_at"),
                "started_at": _time(record, "started_at"),
                "finished_at": None,
                "expires_at": None,
            }
        ),
        final=False,
        asks=record["type"] == TYPE and waits == WaitingFor.EVENT,
    )


def _time(record: Mapping[str, str], name: str) -> str | None:
    text = record.get(name)
    return rfc3339(whole(text)) if text else None


def waiting_for(record: Mapping[str, str]) -> str | None:
    """What a mission that is not running waits for, from where it stands."""
    match record.get("place"):
        case "lane" | "parked":
            return WaitingFor.WORKER
        case "waiters":
            return WaitingFor.TARGET
        case "waiting":
            return record.get("waiting_for") or None
        case _:
            return None
