"""The lease of one process on one shard, and the thread that renews all leases of the process (P6)."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import redis
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool
from redis.exceptions import NoScriptError
from redis.retry import Retry

from backend_loop import debugger
from backend_loop.redis_clock import boottime
from shared import keys
from shared.logs import get
from shared.redis_url import options
from shared.scripts import SCRIPTS

log = get(__name__)

STUCK = 70
"""Exit status (EX_SOFTWARE) of a process whose event loop stood still for two leases."""


class Lease:
    """One owner id and how long it is good for. Losing it loses every mission under it.

    `lost` is called in the event loop when Redis says that the lease was taken over. `held_s`: for how long, all
    together, breakpoints have held its process.
    """

    def __init__(self, shard: int, length_s: float, lost: Callable[[str], None], owner: str | None = None) -> None:
        """A fresh owner, registered by its first claim; or `owner`, whose lease stands already."""
        self.shard, self._length_s, self._lost = shard, length_s, lost
        self.held_s = 0.0
        self.signalled: Callable[[str], None] = lambda _id: None
        self.begin()
        if owner is not None:
            self.owner, self.registered = owner, True

    def begin(self) -> None:
        """A new owner id, after a start or a loss; not yet registered."""
        self.owner = uuid4().hex
        self.registered = False
        self._good_until = 0.0

    def renewed(self, owner: str, sent_at: float) -> None:
        """Redis took a claim or renewal that was sent at boot time `sent_at`: local time counts from there."""
        if owner == self.owner:
            if not self.registered:  # `why` and `doctor` name a worker by this
                log.info("lease held", shard=self.shard, owner=owner, pid=os.getpid())
            self.registered = True
            self._good_until = max(self._good_until, sent_at + self._length_s)

    def lose(self, owner: str) -> None:
        """Redis says that this owner was taken over."""
        if owner != self.owner:
            return
        log.warning("lease lost", shard=self.shard, owner=owner)
        self.begin()
        self._lost(owner)

    def good(self) -> bool:
        """Whether an act may still begin."""
        return boottime() < self._good_until


class Renewal(threading.Thread):
    """Renews off the event loop, so that a blocked handler costs no lease; but not for a loop that is dead.

    It stops renewing when the loop has not ticked for one lease time, and ends the process after two; unless a person
    holds the loop at a breakpoint. `overslept` is called where it could not run itself: the process was frozen, or
    native code held the interpreter.
    """

    def __init__(self, url: str, leases: Sequence[Lease], length_s: float, loop: asyncio.AbstractEventLoop) -> None:
        """Connects on its own, without retries: a frozen Redis must not hold the thread."""
        super().__init__(name="lease-renewal", daemon=True)
        self._leases, self._length_s, self._loop = leases, length_s, loop
        self._every_s = length_s / 3
        wait_s = self._every_s / 2
        # not Redis.from_url: what the URL says of time-outs would count for more than ours
        self._redis = redis.Redis.from_pool(
            ConnectionPool(**options(url, wait_s, blocking=True), retry=Retry(NoBackoff(), 0))
        )
        self._ending = threading.Event()
        self._ticked = self._thawed = boottime()
        self._watched, self._held = 0, False
        self.overslept: Callable[[], None] = lambda: None
        self._ticking: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Start ticking and renewing; called in the event loop."""
        self._watched = threading.get_ident()
        self._tick()
        self.start()

    def ticked(self) -> float:
        """When the event loop last ticked, boot time in seconds."""
        return self._ticked

    async def stop(self) -> None:
        """Stop; returns when the thread has ended, at most half a renewal later."""
        self._cease()
        await asyncio.to_thread(self._ended)

    def _cease(self) -> None:
        self._ending.set()
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    def _ended(self) -> None:
        self.join()
        self._redis.close()

    def _tick(self) -> None:
        if self._ending.is_set():
            return
        now = boottime()
        if self._held:
            self._held = False
            for lease in self._leases:
                lease.held_s += now - self._ticked
        self._ticked = now
        self._ticking = self._loop.call_later(self._every_s / 4, self._tick)

    def run(self) -> None:
        """The thread."""
        pause, began = self._every_s, boottime()
        while not self._ending.wait(pause):
            if boottime() - began - pause > self._every_s:
                # this thread slept too long as well: the process was frozen, not the event loop alone
                self._thawed = boottime()
                self.overslept()
            began = boottime()
            if began - self._ticked > self._every_s and self._at_breakpoint():
                self._thawed = began
            blocked = began - max(self._ticked, self._thawed)
            if blocked > 2 * self._length_s:
                log.critical("event loop dead, ending the process", blocked_s=round(blocked, 1))
                os._exit(STUCK)
            if blocked > self._length_s:
                log.error("event loop blocked, not renewing", blocked_s=round(blocked, 1))
                pause = self._every_s / 2
                continue
            pause = self._every_s if self._renew() else self._every_s / 2

    def _at_breakpoint(self) -> bool:
        if not debugger.held(self._watched):
            return False
        if not self._held:
            log.warning("at a breakpoint: the lease is kept, and all missions of this process wait")
        self._held = True
        return True

    def _renew(self) -> bool:
        try:
            for lease in self._leases:
                if lease.registered:
                    self._renew_one(lease)
        except (redis.RedisError, OSError) as error:
            log.warning("renew failed", error=str(error))
            return False
        return True

    def _renew_one(self, lease: Lease) -> None:
        owner, script, sent_at = lease.owner, SCRIPTS["renew"], boottime()
        args = [
            keys.prefix(lease.shard),
            owner,
            str(round(self._length_s * 1000)),
            str(round(self._length_s / 6 * 1000)),
        ]
        answer: Any
        try:
            answer = self._redis.evalsha(script.sha, 1, *args)
        except NoScriptError:
            answer = self._redis.eval(script.text, 1, *args)
        if answer == b"LOST":
            self._loop.call_soon_threadsafe(lease.lose, owner)
            return
        lease.renewed(owner, sent_at)
        for task_id in answer[2]:
            self._loop.call_soon_threadsafe(lease.signalled, task_id.decode())
