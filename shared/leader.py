"""One leader a fleet for a named office, by fenced terms: what `one leader` loops run under.

A process campaigns; Redis' own clock says who leads and until when (``term.lua``). Locally a term is trusted only until
it was asked for + its length - a margin, on a clock that runs through suspend, so that two processes never both believe
that they lead. What is in flight when a term ends cannot be called back: so writes carry the term, and a script refuses
them once it has seen a later one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from uuid import uuid4

from shared import keys, logs
from shared.clock import boottime
from shared.errors import RedisAwayError
from shared.loop import After, Answer, Loop, NoTermError
from shared.redis import Link

T = TypeVar("T")

MARGIN: Final = 1 / 6
"""Share of a term that its holder does not use: for the way of its last words, and for clocks that run unlike."""

CUT_S: Final = 1.0
"""How long what runs under a term may take to end before the office is given up all the same."""

_log = logs.get(__name__)


class Leader:
    """A candidate for an office, and its leader while a term of its own is trusted.

    Args:
        link: to the Redis that has shard 0.
        office: what is led.
        length_s: of a term, unless it is renewed; a dead leader is followed within so long.
    """

    def __init__(self, link: Link, office: str, length_s: float) -> None:
        """A fresh candidate: run its `loop`."""
        self.office, self.holder = office, uuid4().hex
        self._link, self._length_s = link, length_s
        self._term, self._trusted_until = 0, 0.0
        self._leading = self._lost = False  # lost: the last term ended, and Redis may not know
        self._ticking: asyncio.TimerHandle | None = None
        self._under: set[asyncio.Task[object]] = set()  # what runs under the present term
        self._told: list[Callable[[], None]] = []
        self.loop = Loop(
            f"leader-{office}",
            self._campaign,
            trigger="woken",
            interval_s=length_s / 3,
            backoff_cap_s=length_s / 6,
            vital=False,
            describe="campaigns for the office, so that one process of the fleet leads in it",
            output="a term",
        )

    def term(self) -> int | None:
        """The term under which this process leads now; None: it does not lead, or does not know."""
        return self._term if self._leading and boottime() < self._trusted_until else None

    def tell(self, begun: Callable[[], None]) -> None:
        """Call this whenever a term of this process begins."""
        self._told.append(begun)

    async def hold(self, work: Callable[[int], Awaitable[T]]) -> T:
        """Do this under the present term; it is cancelled at once where the term ends.

        Raises:
            NoTermError: there is none, or it ended meanwhile.
        """
        term = self.term()
        if term is None:
            raise NoTermError
        task: asyncio.Task[T] = asyncio.ensure_future(_awaited(work, term))
        self._under.add(task)
        cancelled = False
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                cancelled = True
                task.cancel()
        self._under.discard(task)
        failed = task.cancelled() or task.exception() is not None
        if cancelled:
            raise asyncio.CancelledError
        if failed and self.term() != term:
            raise NoTermError
        return task.result()

    def refuse(self, term: int) -> None:
        """A script refused this term, since it has seen a later one: lead no more, and campaign for a new term."""
        if self._leading and term == self._term:
            self._lose("refused by a script that has seen a later one")
            self.loop.wake()

    async def resign(self) -> None:
        """End what runs under the term, then free the office at once, and campaign no more.

        Raises:
            RedisAwayError: nothing is freed: the term will lapse.
        """
        self.loop.stop()
        under = self._under.copy()
        self._lose("resigned")
        if under:
            await asyncio.wait(under, timeout=CUT_S)
        await self._free()

    async def _free(self) -> None:
        await self._link.run("term", keys.prefix(0), self.office, "resign", self.holder, 0)

    async def _campaign(self) -> Answer:
        renew_s = self._length_s / 3
        try:
            if self._lost:
                await self._free()  # a term that was lost is never led again, though Redis might still grant it
                self._lost = False
            sent_at = boottime()
            length_ms = round(self._length_s * 1000)
            word, term, left_ms = await self._link.run(
                "term", keys.prefix(0), self.office, "campaign", self.holder, length_ms
            )
        except RedisAwayError:
            if self._link.connected:
                raise
            return After(renew_s / 4)  # it is away, which its link says in the log
        if word != b"LEADS":
            self._lose("another process leads")
            return After(min(renew_s, left_ms / 1000))
        if not self.loop.stopping:
            self._lead(term, sent_at + self._length_s * (1 - MARGIN))
        return After(renew_s)

    def _lead(self, term: int, until: float) -> None:
        if self._leading and term != self._term:
            self._lose("it lapsed")
        self._trusted_until = until
        if self._leading or boottime() >= until:
            return
        self._term, self._leading = term, True
        _log.info("lead", office=self.office, term=term)
        self._tick()
        for begun in self._told:
            begun()

    def _tick(self) -> None:
        """Look whether the term is still good: a timer for its end alone would not run through suspend."""
        if boottime() >= self._trusted_until:
            self._lose("not renewed in time")
            return
        every_s = self._length_s * MARGIN / 4
        left_s = self._trusted_until - boottime()
        self._ticking = asyncio.get_running_loop().call_later(min(every_s, left_s), self._tick)

    def _lose(self, why: str) -> None:
        if not self._leading:
            return
        self._leading, self._lost = False, True
        if self._ticking is not None:
            self._ticking.cancel()
        _log.info("lead no more", office=self.office, term=self._term, why=why)
        for task in self._under:
            task.cancel()


async def _awaited(work: Callable[[int], Awaitable[T]], term: int) -> T:
    return await work(term)
