"""A worker's verbs on one shard: claim, commit, release, inbox, sweep, retire; nothing else here calls scripts."""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from pydantic_core import to_json

from backend_loop.lease import Lease
from backend_loop.machine import End, Reaction, Transition
from backend_loop.redis_clock import RedisClock, boottime
from backend_loop.reporting import Reports
from backend_loop.suspicion import Losses
from shared import keys
from shared.errors import RedisAwayError, RedisUnknownError
from shared.flights import Flights
from shared.redis import Link, ReplyError
from shared.settings import Settings

COMMITS_FOR_A_SECOND_FLIGHT: Final = 16

REFUSED_S: Final = (0.05, 1.0)
"""First and longest pause before a refused commit is sent again."""

Move = Literal["stay", "offer", "wait", "leave", "yield", "pause", "end", "bury"]
Act = Literal["", "enters", "begins", "kept", "runs"]


class LostError(Exception):
    """The mission is not this runner's any more; whatever it still has in hand is dropped."""


class LapsedError(LostError):
    """As far as this process knows its lease has run out; Redis may think otherwise, so the mission is given back."""


class Claimed(NamedTuple):
    """A mission under lease, as claim answered it. Times are epoch ms by Redis.

    `again`: it was under a lease before, and nothing was committed since, so its handler may have begun.
    """

    task_id: str
    owner: str
    fence: int
    rev: int
    seq: int
    type: str
    version: int
    state: str
    document: bytes
    envelope: bytes
    deadline: int
    deaths: int
    run: int
    key_run: int
    target: str
    started_at: int
    root: str
    lane: str
    intent: str
    again: bool
    unread: tuple[bytes, ...]
    toll: int = 0

    @property
    def correlation_id(self) -> str:
        """The root's id."""
        return self.root or self.task_id

    @property
    def losses(self) -> Losses:
        """What workers it has cost."""
        return Losses(self.deaths, self.toll)

    @property
    def kind(self) -> str:
        """``type@version``."""
        return f"{self.type}@{self.version}"

    @property
    def urgent(self) -> bool:
        """Whether it came by the urgent lane, by itself or for those behind it."""
        return self.lane.startswith("urgent:")

    @property
    def bulk(self) -> bool:
        """Whether it came by the bulk lane."""
        return self.lane.startswith("bulk:")


class Commit(NamedTuple):
    """One guarded write, ready to be sent and, byte for byte, to be sent again."""

    owner: str
    item: tuple[str | bytes | int, ...]
    size: int
    """Bytes that a handler can make many: document, events, result and rows."""


class Written(NamedTuple):
    """What became of a commit; `signalled` and `superseded`: nothing was written.

    Args:
        word: `yielded`: it was written, and the mission has gone to its lane; `doubtful`: it was written, and the
            mission may have gone there.
        entries: the unread ones, of `signalled`.
    """

    word: Literal["written", "yielded", "doubtful", "superseded", "signalled"]
    entries: tuple[bytes, ...] = ()


WRITTEN: Final = Written("written")
YIELDED: Final = Written("yielded")
DOUBTFUL: Final = Written("doubtful")
SUPERSEDED: Final = Written("superseded")


class Store:
    """One shard, under one lease."""

    def __init__(self, link: Link, shard: int, lease: Lease, settings: Settings, clock: RedisClock) -> None:
        """`link` may be shared by shards that lie on the same server."""
        self.shard, self.lease = shard, lease
        self._link, self._settings, self._clock = link, settings, clock
        self._prefix = keys.prefix(shard)
        self._retention_ms = round(settings.retention_s * 1000)
        self._dead_ms = round(settings.dead_retention_s * 1000)
        self._grace_ms = round(settings.disconnect_grace_s * 1000)
        self._commits = Flights(link, "commit", self._prefix, second_from=COMMITS_FOR_A_SECOND_FLIGHT)
        self.reports = Reports(link, self._prefix)

    @property
    def connected(self) -> bool:
        """Whether Redis can be asked now."""
        return self._link.connected

    async def up(self) -> None:
        """Wait until Redis can be asked."""
        await self._link.up()

    async def claim(self, slots: int, urgent_slots: int, kinds: str) -> tuple[float, list[Claimed]] | None:
        """Seconds until something is due, and the missions claimed; None: the lease is lost.

        Args:
            slots: free for any mission.
            urgent_slots: free for urgent ones, those included.
            kinds: what this worker knows, as ``,type@version,…,``.

        Raises:
            RedisAwayError: what it may have claimed is found by `forgotten`.
        """
        settings, lease, sent_at = self._settings, self.lease, boottime()
        owner = lease.owner
        answer = await self._link.run(
            "claim",
            self._prefix,
            owner,
            "0" if lease.registered else "1",
            round(settings.lease_s * 1000),
            round(settings.renew_s * 1000),
            round(settings.poll_s * 1000),
            max(0, slots),
            max(0, urgent_slots),
            ",".join(settings.pools),
            kinds,
            self._retention_ms,
            self._dead_ms,
        )
        if answer == b"LOST":
            lease.lose(owner)
            return None
        self._clock.set(answer[0], sent_at)
        lease.renewed(owner, sent_at)
        return answer[1] / 1000, [_claimed(owner, row) for row in answer[2]]

    async def commit(self, commit: Commit) -> Written:
        """Send until Redis has answered; what it says of it.

        Raises:
            LostError: fence or rev are not the expected ones, or the mission is gone.
        """
        pause_s = REFUSED_S[0]
        while True:
            try:
                answer = await self._commits.add((commit.owner, self._retention_ms, self._dead_ms), commit.item)
                break
            except RedisAwayError as error:
                # perhaps written: sent again as it is, rev tells (P2); the outcome is kept meanwhile
                if not isinstance(error, RedisUnknownError):
                    await asyncio.sleep(random.uniform(0, pause_s))  # noqa: S311  jitter; a full Redis refuses at once
                    pause_s = min(2 * pause_s, REFUSED_S[1])
                await self._link.up()
        if isinstance(answer, int):
            return WRITTEN
        if answer == b"DUPLICATE":
            # whether an offer was taken is not known any more
            return DOUBTFUL if commit.item[4] == "offer" else WRITTEN
        if answer == b"SUPERSEDED":
            return SUPERSEDED
        if answer[0] == b"YIELDED":
            return YIELDED
        if answer[0] == b"SIGNALLED":
            return Written("signalled", tuple(answer[1:]))
        if isinstance(answer, list):
            raise ReplyError(f"commit of {commit.item[0]!r}: {answer[1].decode(errors='replace')}")
        raise LostError(answer.decode())

    async def release(self, owner: str, held: Sequence[tuple[str, int]]) -> None:
        """Hand missions back, given as (id, fence), however long Redis is away; what is not ours is left alone.

        Sent again after a lost answer, it is FENCED, which is as good.
        """
        for start in range(0, len(held), 50):
            items = [part for one in held[start : start + 50] for part in one]
            while True:
                try:
                    await self._link.run("release", self._prefix, owner, *items)
                    break
                except RedisAwayError:
                    await asyncio.sleep(REFUSED_S[0])
                    await self._link.up()

    async def resign(self) -> None:
        """End the lease, if nothing is held under it."""
        await self._link.run("resign", self._prefix, self.lease.owner)

    async def inbox(self, task_id: str) -> tuple[bytes, ...]:
        """The unread entries as of now, however long Redis is away."""
        while True:
            try:
                return tuple(await self._link.call("LRANGE", keys.inbox(self.shard, task_id), 0, -1))
            except RedisAwayError:
                await asyncio.sleep(REFUSED_S[0])
                await self._link.up()

    async def forgotten(self, known: frozenset[str]) -> list[tuple[str, int]]:
        """Missions leased to this owner that this process does not run: their claim's answer was lost."""
        found = []
        for raw in await self._link.call("SMEMBERS", keys.held(self.shard, self.lease.owner)):
            task_id = raw.decode()
            if task_id not in known:
                fence = await self._link.call("HGET", keys.mission(self.shard, task_id), "fence")
                found.append((task_id, int(fence or 0)))
        return found

    async def sweep(self, kinds: str) -> tuple[int, float]:
        """End or post what is past its deadline or was parked too long: how many, seconds until the next (-1: none)."""
        settings = self._settings
        limits = [round(one * 1000) for one in (settings.pause_limit_s, settings.park_limit_s)]
        lease_ms = round(settings.lease_s * 1000)
        done, next_ms = await self._link.run(
            "sweep", self._prefix, self._retention_ms, self._dead_ms, *limits, kinds, lease_ms
        )
        return done, next_ms / 1000

    async def abandon(self) -> tuple[int, float]:
        """Cancel what nobody watches, where that was wished: how many, and seconds until the next look (-1: none)."""
        done, next_ms = await self._link.run("abandon", self._prefix, self._grace_ms, self._retention_ms)
        return done, next_ms / 1000

    async def retire(self) -> tuple[int, float]:
        """Remove what is past its retention: how many, and seconds until the next one (-1: none)."""
        done, next_ms = await self._link.run("retire", self._prefix, 60_000)
        return done, next_ms / 1000


def prepare(  # noqa: PLR0913  the parts of one write
    claimed: Claimed,
    reaction: Reaction,
    *,
    rev: int,
    consumed: int,
    move: Move,
    document: bytes,
    version: int | None = None,
    act: Act = "",
    rows: Sequence[bytes] = (),
    progress: bytes = b"",
) -> Commit:
    """The write that makes a reaction durable; the script's header says what its parts are.

    `version` is the type's, where another one wrote the document. With `act` a newer intent keeps it from a state that
    acts (P11): it enters one, or its handler is about to begin, with the permits that it has. So has the handler that
    goes on behind a checkpoint.
    """
    course = reaction.course
    tail = list(rows)
    if move in ("end", "bury"):
        tail.insert(0, _middle(claimed, reaction.course.state, course.status, reaction.end or End()))
    events, told = b"\n".join(map(_event, reaction.transitions)), b"\n".join(tail)
    wake_at = "" if course.wake_at is None else course.wake_at
    return Commit(
        claimed.owner,
        (
            claimed.task_id,
            claimed.fence,
            rev,
            consumed,
            move,
            course.status,
            course.state,
            document,
            events,
            wake_at,
            course.failed_in or "" if move == "bury" else course.waiting_for or "",
            "" if version is None else version,
            act,
            told,
            progress,
        ),
        len(document) + len(events) + len(told),
    )


def _event(transition: Transition) -> bytes:
    return b'"status":"%b","state":"%b","data":%b}' % (
        transition.status.encode(),
        transition.state.encode(),
        b"null" if transition.data is None else to_json(transition.data, inf_nan_mode="null"),
    )


def _middle(claimed: Claimed, state: str, status: str, end: End) -> bytes:
    """The result document between `seq` and what the script knows: progress and times."""
    document: Mapping[str, Any] = {
        "correlation_id": claimed.correlation_id,
        "task_id": claimed.task_id,
        "type": claimed.type,
        "status": str(status),  # plain: an enum costs the serializer a look-up
        "state": str(state),
        "result": end.result,
        "error": end.error,
        "reason": end.reason,
        "waiting_for": None,
        "run": claimed.run,
        "freshness": end.freshness,
    }
    return to_json(document, inf_nan_mode="null")[1:-1]


def _claimed(owner: str, row: list[Any]) -> Claimed:
    (
        task_id,
        fence,
        rev,
        seq,
        type_,
        version,
        state,
        document,
        envelope,
        deadline,
        deaths,
        run,
        key_run,
        target,
        started,
        root,
        lane,
        intent,
        again,
        toll,
        unread,
    ) = row
    return Claimed(
        task_id.decode(errors="replace"),
        owner,
        fence,
        int(rev),
        int(seq),
        type_.decode(),
        int(version),
        state.decode(),
        document,
        envelope,
        int(deadline),
        int(deaths),
        int(run),
        int(key_run),
        target.decode(),
        int(started),
        root.decode(),
        lane.decode(),
        intent.decode(),
        again == b"1",
        tuple(unread),
        int(toll),
    )
