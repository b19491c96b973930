"""What waits to be sent on one socket: bounded, so that a reader who does not read costs no more than this."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import islice
from typing import Final, Generic, TypeVar

About = TypeVar("About")

STUCK_S: Final = 30.0
"""A frame that waits so long to leave has no reader."""


@dataclass(frozen=True, slots=True)
class Parcel(Generic[About]):
    """A frame, and what it is about: `seq` of this mission, which may be its result (final).

    One that is `passing` is worth sending only while there is no newer one about the same mission.
    """

    text: str
    about: About | None = None
    seq: int = 0
    final: bool = False
    passing: bool = False


class Outbox(Generic[About]):
    """One writer takes from it; anybody puts.

    Args:
        most_frames, most_bytes: beyond them the reader is slow. What is passing does not count: of each mission one
            waits at most, and a reader for whom it is too much gets less of it.
        slow: called, perhaps more than once, when it is found to be.
    """

    def __init__(self, most_frames: int, most_bytes: int, slow: Callable[[], None]) -> None:
        """Empty and open."""
        self._most_frames, self._most_bytes, self._slow = most_frames, most_bytes, slow
        self._parcels: OrderedDict[Hashable, Parcel[About]] = OrderedDict()
        self._frames = self._bytes = 0  # of what is not passing
        self._stir = asyncio.Event()  # something is to be sent, or the end has come
        self._room = asyncio.Event()
        self._judging = False
        self._clock = asyncio.get_running_loop().time
        self._moved_at = self._clock()
        self.end: tuple[int, str] | None = None
        """Close code and reason: after what waits, nothing follows but this."""

    @property
    def head(self) -> Parcel[About] | None:
        """What is to leave next, or is just leaving."""
        return next(iter(self._parcels.values()), None)

    def cursor(self) -> tuple[About, int] | None:
        """A mission whose news wait, and the last seq of it that leaves before them; None: no news wait.

        What is just leaving counts as gone: whoever gets to know the cursor has got it before.
        """
        for parcel in islice(self._parcels.values(), 1, None):
            if parcel.about is not None and not parcel.passing:
                return parcel.about, parcel.seq if parcel.final else max(0, parcel.seq - 1)
        head = self.head
        return (head.about, head.seq) if head is not None and head.about is not None else None

    @property
    def stuck(self) -> bool:
        """Whether nothing has left for long, though something waits that has to."""
        return bool(self._frames) and self._clock() - self._moved_at > STUCK_S

    def put(self, parcel: Parcel[About], *, fetched: bool = False) -> None:
        """Send this, unless the end has come. May find the reader slow, once the writer has had its turn.

        What was `fetched` when there was `room` is no sign of that.
        """
        if self.end is not None:
            return
        self._stir.set()
        if parcel.passing:
            self._parcels.pop(parcel.about, None)
            self._parcels[parcel.about] = parcel
            return
        if not self._frames:
            self._moved_at = self._clock()
        self._parcels[id(parcel)] = parcel
        self._frames += 1
        self._bytes += len(parcel.text)
        if not fetched and self._over(1) and not self._judging:
            # much may come in one tick; only what the writer cannot get rid of shows a slow reader
            self._judging = True
            asyncio.get_running_loop().call_soon(self._judge)

    async def first(self) -> Parcel[About] | None:
        """What is to be sent next; None: only the end. Call `sent` when it is."""
        while not self._parcels and self.end is None:
            self._stir.clear()
            await self._stir.wait()
        head = self.head
        if head is not None and head.passing and self._parcels.get(head.about) is head:
            # it leaves now: a newer one comes after it, in a place of its own
            self._parcels[id(head)] = self._parcels.pop(head.about)
            self._parcels.move_to_end(id(head), last=False)
        return head

    def sent(self, parcel: Parcel[About]) -> None:
        """It has left."""
        self._moved_at = self._clock()
        if self.head is parcel:
            self._parcels.popitem(last=False)
            if not parcel.passing:
                self._frames -= 1
                self._bytes -= len(parcel.text)
        if not self._over(2):
            self._room.set()

    async def room(self) -> None:
        """Wait until less than half is taken: for what can be fetched later as well."""
        while self._over(2) and self.end is None:
            self._room.clear()
            await self._room.wait()

    def close(self, code: int, reason: str, *, drop: bool = False) -> None:
        """Send what waits, unless it is to be dropped, then close; the first call counts."""
        if self.end is not None:
            return
        self.end = code, reason
        if drop:
            self._parcels.clear()
            self._frames = self._bytes = 0
        self._stir.set()
        self._room.set()

    def _over(self, parts: int) -> bool:
        return self._frames * parts > self._most_frames or self._bytes * parts > self._most_bytes

    def _judge(self) -> None:
        self._judging = False
        if self.end is None and self._over(1):
            self._slow()
