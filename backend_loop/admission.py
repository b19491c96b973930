"""Whether a handler may begin: permits of its shard, then the breakers of what it uses (P12).

What it costs in round trips: nothing where nothing is limited; one for the permits, which the commit that follows ends;
one for each dependency, and a report that nobody waits for. While a process knows that a dependency is left alone it
asks nothing at all.

Permits are counted in each shard, by the same script that guards its missions, so a limit of n over s shards is n / s,
rounded up, in each: with more shards than n that is up to s at once. What belongs to one target lies in one shard.
"""

import random
from collections.abc import Sequence
from typing import Final

from backend_loop.breakers import Breakers, Call, Refusal, Word, answered
from backend_loop.course import Course
from backend_loop.dependency import Dependency
from backend_loop.mission import MissionType
from backend_loop.outcomes import Fail, NoPermit, Outcome, Retry
from backend_loop.redis_clock import RedisClock
from backend_loop.states import StateSpec, UndoSpec
from backend_loop.store import Claimed, LostError
from shared import keys
from shared.redis import Link
from shared.settings import Settings
from shared.status import ErrorCode

QUEUE_MS: Final = (1_000, 100, 20_000)
"""A freed permit wakes the best of its queue; in case that is missed it asks again by itself: after so long, so much
longer for each in front of it, and this at most, which is short enough to keep its target meanwhile."""

SPREAD_MS: Final = (200, 5_000)
"""Whoever waits for a breaker comes back within a span as long as the wait itself, but at least and at most so long."""


class Admission:
    """Asks before each run of a handler in one shard, and says what came of it.

    Args:
        link: to Redis.
        shard: of the missions.
        settings: of the process.
        clock: Redis' time.
        breakers: of the process.
    """

    def __init__(self, link: Link, shard: int, settings: Settings, clock: RedisClock, breakers: Breakers) -> None:
        """Nothing is asked yet."""
        self._link, self._prefix, self._clock, self._breakers = link, keys.prefix(shard), clock, breakers
        self._shards, self._tenant_limit = settings.shards, settings.tenant_concurrency
        self._grace_ms = round(max(settings.lease_s, settings.cut_grace_s) * 1000)

    async def enter(
        self, claimed: Claimed, course: Course, spec: StateSpec | UndoSpec, definition: MissionType
    ) -> NoPermit | None:
        """Ask last thing before the handler; None: it may begin, and `left` is to be called after it.

        What was taken on the way to a NoPermit is given back by the commit that follows.

        Raises:
            LostError: the mission is not ours any more.
        """
        uses = spec.uses
        for dependency in uses:
            known = self._breakers.left_alone(dependency.name, self._clock.now_ms())
            if known is not None:
                return _wait(dependency, known)
        scopes = self._scopes(claimed, uses, definition)
        if scopes and (busy := await self._permits(claimed, scopes)) is not None:
            return busy
        call = self._call(claimed, spec, again=course.attempt > 1) if uses else None
        for n, dependency in enumerate(uses):
            if call is not None and (refusal := await self._breakers.ask(dependency, call)) is not None:
                for asked in uses[:n]:
                    self._breakers.report(asked, call, "unused")
                return _wait(dependency, refusal)
        return None

    def limits(self, claimed: Claimed, spec: StateSpec | UndoSpec, definition: MissionType) -> bool:
        """Whether `enter` would ask anything of anybody."""
        return bool(spec.uses or self._scopes(claimed, spec.uses, definition))

    def unused(self, claimed: Claimed, spec: StateSpec | UndoSpec) -> None:
        """Say that a handler which `enter` let begin did not begin after all."""
        call = self._call(claimed, spec, again=False)
        for dependency in spec.uses:
            self._breakers.report(dependency, call, "unused")

    async def left(self, claimed: Claimed, spec: StateSpec | UndoSpec, outcome: Outcome | None) -> None:
        """Say what came of a handler that `enter` let begin; None: it was cut.

        A Retry is a failure of all that the state uses, whatever it came from: an exception, a time-out, the author's
        own word. Any other outcome means that they answered, a Fail too: an invalid card is no fault of the bank.
        """
        if not spec.uses:
            return
        after_ms = round(outcome.after_s * 1000) if isinstance(outcome, Retry) else 0
        call = self._call(claimed, spec, again=False)
        for dependency in spec.uses:
            self._breakers.report(dependency, call, _word(outcome), after_ms)

    def _call(self, claimed: Claimed, spec: StateSpec | UndoSpec, *, again: bool) -> Call:
        lasts_ms = round(spec.timeout_s * 1000) + self._grace_ms
        return Call(f"{claimed.task_id}:{claimed.fence}", lasts_ms, again)

    def _scopes(self, claimed: Claimed, uses: Sequence[Dependency], definition: MissionType) -> list[str | int]:
        """What is to be held, and how many may hold it in this shard."""
        scopes: list[str | int] = []
        for one in uses:
            if one.per_target is not None and claimed.target:
                scopes += [f"dep:{one.name}:{claimed.target}", one.per_target]
            if one.concurrency is not None:
                scopes += [f"dep:{one.name}", self._share(one.concurrency)]
        if definition.mission.concurrency is not None:
            scopes += [f"type:{definition.type}", self._share(definition.mission.concurrency)]
        if self._tenant_limit:
            scopes += [f"tenant:{claimed.lane.split(':', 2)[2]}", self._share(self._tenant_limit)]
        return scopes

    def _share(self, limit: int) -> int:
        return -(-limit // self._shards)

    async def _permits(self, claimed: Claimed, scopes: Sequence[str | int]) -> NoPermit | None:
        head = (claimed.owner, claimed.task_id, claimed.fence)
        answer = await answered(self._link, lambda: self._link.run("permit", self._prefix, *head, *scopes))
        if answer == b"OK":
            return None
        if answer == b"FENCED":
            raise LostError("FENCED")
        scope, before = answer[1].decode(), answer[2]
        first, each, most = QUEUE_MS
        longest = min(most, first + each * before)
        until = self._clock.now_ms() + round(longest * random.uniform(0.5, 1))  # noqa: S311  jitter, not a secret
        return NoPermit(until, f"no permit of {scope} is free, {before} wait in front")


def _word(outcome: Outcome | None) -> Word:
    if outcome is None or (isinstance(outcome, Fail) and outcome.code is ErrorCode.DEADLINE):
        return "cut"  # by us, before it was known
    return "failed" if isinstance(outcome, Retry) else "ok"


def _wait(dependency: Dependency, refusal: Refusal) -> NoPermit:
    spread = min(max(refusal.wait_ms, SPREAD_MS[0]), SPREAD_MS[1])
    until = refusal.until_ms + round(spread * random.random())  # noqa: S311  jitter, not a secret
    return NoPermit(until, f"{dependency.name} is left alone: {refusal.why}")
