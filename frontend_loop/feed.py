"""The feed: who in this foreground waits for which mission. Register, then read, then listen, then re-read (P19, P20).

Truth is the mission's log and result in Redis; what is heard is a hint that spares a read. Losing every hint costs
latency only.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from pydantic_core import from_json

from frontend_loop import progress
from frontend_loop.record import instant, whole
from shared import keys
from shared.errors import RedisAwayError
from shared.ids import MissionId
from shared.logs import get
from shared.loop import After, Answer, Idle, Loop
from shared.redis import Link

log = get(__name__)

WATCH_MS: Final = 60_000
RENEW_S: Final = 20.0
"""Registrations are renewed, and the truth is read again, so often."""

AGAIN_S: Final = 0.25
"""While Redis is away they are tried again so often."""

BATCH: Final = 50

Listener = Callable[[list[bytes] | None], None]
"""Gets the lines of a hint (``E{event}``, ``R{result}``), or None: hints may have been lost, read again."""

RECORD: Final = (
    "type",
    "status",
    "state",
    "place",
    "rev",
    "seq",
    "root",
    "run",
    "waiting_for",
    "created_at",
    "started_at",
    "progress",
    "progress_at",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What Redis knew of a mission: its record (None: gone), its result (None: not ended), events after a cursor."""

    record: dict[str, str] | None
    result: bytes | None
    events: tuple[bytes, ...] = ()

    @property
    def progress(self) -> bytes | None:
        """The line that tells how far the mission is; None: it does not say, or not legibly."""
        record = self.record or {}
        if (raw := record.get("progress")) is None or progress.read(raw) is None:
            return None
        at = instant(whole(record.get("progress_at", "")) or None)
        return progress.line(record.get("status", ""), record.get("state", ""), at, raw.encode())


class Feed:
    """Listens on this foreground's channel of every shard."""

    def __init__(self, link: Link, shards: int) -> None:
        """`link` carries the reads; hints come on a connection of their own."""
        self.front = uuid4().hex[:12]
        self._link, self._shards = link, shards
        self._hints: Link | None = None
        self._listeners: dict[tuple[int, str], list[Listener]] = {}
        self.loop = Loop(
            "feed",
            self._renew,
            trigger="timed",
            interval_s=RENEW_S,
            describe="renews this foreground's registrations and lets every waiter read again",
            output="watchers in the records",
        )
        self._left: set[tuple[int, str]] = set()
        self.leaving = Loop(
            "feed-leave",
            self._unregister,
            trigger="woken",
            interval_s=RENEW_S,
            describe="takes this foreground's registrations back where nobody here listens any more",
            output="watchers in the records",
            on_failure="the registrations lapse by themselves",
            vital=False,
        )

    async def open(self, url: str, timeout_s: float) -> None:
        """Begin to listen."""
        channels = tuple(keys.feed(shard, self.front) for shard in range(self._shards))
        self._shard_of = {channel.encode(): shard for shard, channel in enumerate(channels)}
        self._hints = await Link(
            url, timeout_s=timeout_s, channels=channels, on_message=self._hear, on_up=self._came_up
        ).open()

    async def close(self) -> None:
        """Listen no more."""
        if self._hints is not None:
            await self._hints.close()

    def listen(self, shard: int, task_id: str, listener: Listener) -> Callable[[], None]:
        """Hear what this foreground is told of a mission; returns what ends it. Register before you rely on it."""
        key = (shard, task_id)
        self._listeners.setdefault(key, []).append(listener)

        def leave() -> None:
            listeners = self._listeners.get(key, [])
            if listener in listeners:
                listeners.remove(listener)
            if not listeners:
                self._listeners.pop(key, None)

        return leave

    def forgo(self, shard: int, task_id: str) -> None:
        """Be told of this mission no more, unless somebody else here listens: sooner than its registration lapses."""
        self._left.add((shard, task_id))
        self.leaving.wake()

    async def register(self, shard: int, task_ids: Iterable[str]) -> None:
        """Be told of these missions from now on, for `WATCH_MS` unless renewed.

        Raises:
            RedisAwayError: not registered.
        """
        await self._link.run("watch", keys.prefix(shard), self.front, WATCH_MS, *task_ids)

    async def read(self, shard: int, task_id: str, after_seq: int | None = None, most: int = 0) -> Reading:
        """The truth as of now; with `after_seq`, also the events after it, `most` at a time (0: all of them).

        Raises:
            RedisAwayError: cannot be read now.
        """
        reads: list[tuple[Any, ...]] = [
            ("HMGET", keys.mission(shard, task_id), *RECORD),
            ("GET", keys.result(shard, task_id)),
        ]
        if after_seq is not None:
            # one transaction, so that a result never comes without its events; sent in one tick, so unmixed with others
            last = after_seq + most - 1 if most else -1
            reads = [("MULTI",), *reads, ("LRANGE", keys.log(shard, task_id), after_seq, last), ("EXEC",)]
        answers = await asyncio.gather(*(self._link.call(*read) for read in reads))
        values, result, *events = answers if after_seq is None else answers[-1]
        record = None
        if values[0] is not None:
            record = {name: value.decode() for name, value in zip(RECORD, values, strict=True) if value is not None}
        return Reading(record, result, tuple(events[0]) if events else ())

    async def traceparent(self, mission: MissionId) -> str | None:
        """The trace that a mission belongs to.

        Raises:
            RedisAwayError: cannot be read now.
        """
        envelope = await self._link.call("HGET", keys.mission(mission.shard, mission.text), "envelope")
        return None if envelope is None else from_json(envelope).get("traceparent")

    def _hear(self, channel: bytes, message: bytes) -> None:
        task_id, *lines = message.split(b"\n")
        for listener in tuple(self._listeners.get((self._shard_of[channel], task_id.decode()), ())):
            try:
                listener(lines)
            except Exception:
                log.exception("hint not taken")  # one waiter's error must not end the hints of all

    def _came_up(self) -> None:
        """Redis is back: hints were lost, and perhaps the registrations with it."""
        self.loop.wake()

    def _reread(self) -> None:
        for listeners in tuple(self._listeners.values()):
            for listener in tuple(listeners):
                listener(None)

    async def _unregister(self) -> Answer:
        left, self._left = self._left, set()
        for shard, ids in _by_shard(left).items():
            for start in range(0, len(ids), BATCH):
                # looked at last thing before it is sent: who listens again registers after it
                gone = [id_ for id_ in ids[start : start + BATCH] if (shard, id_) not in self._listeners]
                if gone:
                    await self._link.run("watch", keys.prefix(shard), self.front, 0, *gone)
        return Idle()

    async def _renew(self) -> Answer:
        try:
            for shard, ids in _by_shard(self._listeners).items():
                for start in range(0, len(ids), BATCH):
                    await self.register(shard, ids[start : start + BATCH])
        except RedisAwayError:
            return After(AGAIN_S)  # whose link says so in the log
        self._reread()
        return Idle()


def _by_shard(listened: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    ids: dict[int, list[str]] = {}
    for shard, task_id in listened:
        ids.setdefault(shard, []).append(task_id)
    return ids
