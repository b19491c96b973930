"""Whether a dependency may be called now: one truth for all workers, in Redis, in the dependency's home shard (P12).

Why *failures in a row* and no error rate in a window: it needs one counter and no clock, it works for a call an hour as
well as for a thousand a second, and a dependency that answers four of five calls is better served by retries within
their budget than by being left alone.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, TypeVar

from backend_loop.dependency import Breaker, Dependency
from shared import keys
from shared.errors import RedisAwayError, RedisUnknownError
from shared.flights import Flights
from shared.ids import shard_of
from shared.logs import get
from shared.redis import Link, ReplyError

log = get(__name__)

Word = Literal["ok", "failed", "cut", "unused"]
"""What came of a call: it was answered · it failed · nobody knows · it was not made after all."""

RETRIES_PER_S: Final = 10
"""Retries a dependency may have whatever its first tries are, so that nothing stands still."""

FULL_OF_PROBES: Final = 64
"""Where a dependency has no limit of its own, a ramp ends at so many times its probes, and then there is none."""

ASKS_FOR_A_SECOND_FLIGHT: Final = 16

REFUSED_S: Final = (0.05, 1.0)
"""First and longest pause before Redis is asked again that refused."""

T = TypeVar("T")


class Call(NamedTuple):
    """One run of a handler, as a dependency sees it."""

    caller: str
    """Who calls; one call at a time."""
    lasts_ms: int
    """By then it is over, reported or not: so a dead worker's probe comes back."""
    again: bool
    """A retry."""


class Refusal(NamedTuple):
    """Not now."""

    until_ms: int
    """Not before, epoch ms by Redis."""
    wait_ms: int
    why: str
    """The phase of the breaker: open, retry_after, probing, ramping; or retry_budget."""


class Breakers:
    """The breakers of all dependencies, as one process asks them.

    Args:
        link: to Redis.
        shards: of the fleet.
    """

    def __init__(self, link: Link, shards: int) -> None:
        """Nothing is asked yet."""
        self._link = link
        self._flights = [
            Flights(link, "breaker", keys.prefix(shard), second_from=ASKS_FOR_A_SECOND_FLIGHT, stamped=True)
            for shard in range(shards)
        ]
        self._closed: dict[str, tuple[int, str]] = {}

    def left_alone(self, name: str, now_ms: int) -> Refusal | None:
        """What this process knows without asking: until when nobody calls it."""
        if name not in self._closed:
            return None
        until_ms, why = self._closed[name]
        if until_ms > now_ms:
            return Refusal(until_ms, until_ms - now_ms, why)
        del self._closed[name]
        return None

    async def ask(self, dependency: Dependency, call: Call) -> Refusal | None:
        """Whether the call may be made now, however long Redis is away; if so, `report` what came of it."""
        name = dependency.name
        now_ms, answer = await answered(self._link, lambda: self._send("ask", dependency, call, "", 0))
        if answer == b"OK":
            return None
        if answer[0] == b"ERROR":
            raise ReplyError(f"breaker of {name}: {answer[1].decode(errors='replace')}")
        wait_ms, why = int(answer[1]), answer[2].decode()
        if why in ("open", "retry_after"):
            self._closed[name] = (now_ms + wait_ms, why)
        return Refusal(now_ms + wait_ms, wait_ms, why)

    def report(self, dependency: Dependency, call: Call, word: Word, after_ms: int = 0) -> None:
        """Say what came of a call; nobody waits for the answer, and what is lost is over by time.

        `after_ms`: the other side asked to be left alone for so long.
        """
        self._send("report", dependency, call, word, after_ms).add_done_callback(_log_failure)

    def _send(self, verb: str, dependency: Dependency, call: Call, word: str, after_ms: int) -> asyncio.Future[Any]:
        name = dependency.name
        flights = self._flights[shard_of(name, len(self._flights))]
        again = "1" if call.again else ""
        return flights.add((), (verb, name, call.caller, call.lasts_ms, again, word, after_ms, _policy(dependency)))


async def answered(link: Link, ask: Callable[[], Awaitable[T]]) -> T:
    """The answer to what may be asked twice, however long Redis is away or refuses."""
    pause_s = REFUSED_S[0]
    while True:
        try:
            return await ask()
        except RedisAwayError as error:
            if not isinstance(error, RedisUnknownError):
                await asyncio.sleep(random.uniform(0, pause_s))  # noqa: S311  jitter, not a secret
                pause_s = min(2 * pause_s, REFUSED_S[1])
            await link.up()


@lru_cache(maxsize=1024)
def _policy(dependency: Dependency) -> str:
    """As breaker.lua reads it."""
    one = dependency.breaker or Breaker()
    failures = one.failures if dependency.breaker is not None else 0
    full = dependency.concurrency or FULL_OF_PROBES * one.probes
    times = round(one.open_s * 1000), round(one.ramp_s * 1000)
    parts = (failures, times[0], one.probes, one.probes, times[1], full, dependency.retry_ratio, RETRIES_PER_S)
    return " ".join(map(str, parts))


def _log_failure(answer: asyncio.Future[Any]) -> None:
    if not answer.cancelled() and (error := answer.exception()) is not None:
        log.warning("report lost", error=str(error))
