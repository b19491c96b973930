"""The missions that one socket watches: what is heard and read of them goes through their cursors into its outbox."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from frontend_loop import frames
from frontend_loop.feed import Feed, Reading
from frontend_loop.outbox import Outbox, Parcel
from frontend_loop.session import News, Watch
from shared.errors import Problem, RedisAwayError
from shared.logs import get
from shared.status import Status

log = get(__name__)

SLICE: Final = 100
"""Events read at a time."""

QUIET_S: Final = (2.0, 16.0)
"""A mission without news is read again after so long, then ever more seldom: no hint has to arrive."""

PAUSE_S: Final = (0.1, 2.0)
"""Between attempts to read while Redis is away: first and longest, with jitter."""

First = Callable[[Reading], Awaitable[None]]
"""Gets a watch's first reading before anything is told of it; may refuse it with a Problem."""


@dataclass(slots=True, eq=False)
class Watched:
    """A mission that this socket watches; `head` stands before each of its events, `passing` before its progress."""

    shard: int
    task_id: str
    watch: Watch
    look_at: float
    patience_s: float = QUIET_S[0]
    leave: Callable[[], None] = lambda: None
    correlation_id: str = ""
    type: str = ""
    traceparent: str | None = None
    head: bytes = b""
    passing: bytes = b""

    def introduce(self, correlation_id: str, type_: str, traceparent: str | None) -> None:
        """Say what the news of it need to be sent."""
        self.correlation_id, self.type, self.traceparent = correlation_id, type_, traceparent
        self.head = frames.event_head(correlation_id, self.task_id)
        self.passing = frames.progress_head(correlation_id, self.task_id)


class Watching:
    """Of one socket.

    Args:
        feed: where news come from.
        outbox: where they go.
        spawn: runs a coroutine as a task that ends with the socket; does nothing once that has ended.
    """

    def __init__(
        self, feed: Feed, outbox: Outbox[Watched], spawn: Callable[[Coroutine[Any, Any, None]], object]
    ) -> None:
        """None yet."""
        self._feed, self._outbox, self._spawn = feed, outbox, spawn
        self._clock = asyncio.get_running_loop().time
        self._watched: dict[str, Watched] = {}
        self._behind: dict[str, Watched] = {}
        self._catching_up = False
        self._turn = asyncio.Lock()

    def __len__(self) -> int:
        """How many."""
        return len(self._watched)

    def listen(self, shard: int, task_id: str, watch: Watch) -> Watched:
        """Take one in: what is heard of it counts from now on."""
        watched = Watched(shard, task_id, watch, self._clock() + QUIET_S[0])
        watched.leave = self._feed.listen(shard, task_id, partial(self._hear, watched))
        self._watched[task_id] = watched
        return watched

    def find(self, task_id: str) -> Watched | None:
        """This one, if it is watched."""
        return self._watched.get(task_id)

    def forget(self, watched: Watched) -> None:
        """Watch it no longer; nothing if that has come about already."""
        watched.leave()
        if not watched.watch.done:
            self._feed.forgo(watched.shard, watched.task_id)
        if self._watched.get(watched.task_id) is watched:
            del self._watched[watched.task_id]
            self._behind.pop(watched.task_id, None)

    def forget_all(self) -> None:
        """Watch nothing any more."""
        for watched in tuple(self._watched.values()):
            self.forget(watched)

    def tell(self, watched: Watched, news: list[News], *, fetched: bool = False) -> None:
        """Send these; the result is the last of them, and the end of watching."""
        for one in news:
            head = frames.RESULT_HEAD if one.final else watched.passing if one.passing else watched.head
            text = (head + one.body[1:]).decode()
            self._outbox.put(Parcel(text, watched, one.seq, one.final, one.passing), fetched=fetched)
            if one.final:
                self.forget(watched)

    async def look(self, watched: Watched, first: First | None = None) -> None:
        """Read on from its cursor, if it is behind and the reader has room for it.

        Raises:
            Problem: 410, its result is no longer kept; or what `first` raises.
            RedisAwayError: it is still behind.
        """
        async with self._turn:  # so that no more than one slice comes on top of what waits already
            await self._outbox.room()
            after_seq = watched.watch.ask()
            if after_seq is None:
                return
            try:
                reading = await self._feed.read(watched.shard, watched.task_id, after_seq, SLICE)
                _kept(reading, watched.task_id)
                if first is not None:
                    await first(reading)
            except BaseException:
                watched.watch.unread()
                raise
            if self._watched.get(watched.task_id) is watched:
                whole, line = len(reading.events) < SLICE, reading.progress
                news = watched.watch.read(reading.events, reading.result, whole=whole, progress=line)
                self.tell(watched, news, fetched=True)
                self.want(watched)

    def tend(self) -> None:
        """Now and then: doubt what has been quiet for long."""
        now = self._clock()
        for watched in tuple(self._watched.values()):
            if watched.look_at <= now:
                watched.patience_s = min(2 * watched.patience_s, QUIET_S[1])
                watched.look_at = now + watched.patience_s
                watched.watch.doubt()
                self.want(watched)

    def want(self, watched: Watched) -> None:
        """Read on, if it is behind."""
        if not watched.watch.behind or self._watched.get(watched.task_id) is not watched:
            return
        if not watched.head:
            return  # its first reading, which introduces it, is under way: another one would tell news without a head
        self._behind[watched.task_id] = watched
        if not self._catching_up:
            self._catching_up = True
            self._spawn(self._catch_up())

    def _hear(self, watched: Watched, lines: list[bytes] | None) -> None:
        if lines is None:
            watched.watch.doubt()
        else:
            watched.patience_s = QUIET_S[0]
            watched.look_at = self._clock() + QUIET_S[0]
            self.tell(watched, watched.watch.hear(lines))
        self.want(watched)

    async def _catch_up(self) -> None:
        pause_s = PAUSE_S[0]
        while self._behind:
            task_id, watched = next(iter(self._behind.items()))
            try:
                await self.look(watched)
            except RedisAwayError:
                await asyncio.sleep(random.uniform(pause_s / 2, pause_s))  # noqa: S311  jitter, not a secret
                pause_s = min(2 * pause_s, PAUSE_S[1])
                continue
            except Problem as problem:
                self._outbox.put(Parcel(frames.error(None, problem).decode()))
                self.forget(watched)
            pause_s = PAUSE_S[0]
            if self._behind.pop(task_id, None) is not None:
                self.want(watched)  # at the end of the line, if there is more
        self._catching_up = False


def _kept(reading: Reading, task_id: str) -> None:
    if reading.result is None and (reading.record is None or Status(reading.record["status"]).terminal):
        detail = "this mission has ended and its result is no longer kept"
        raise Problem("expired", detail, correlation_id=task_id)
