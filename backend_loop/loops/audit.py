"""The audit: one process of a fleet holds all records, indexes and counts against each other (P1, B03, B08).

It goes over all keys of a shard again and again, a bounded step at a time; ``audit.lua`` repairs what disagrees in the
very script that sees it. What fails is tried again in the next pass, and nothing depends on a pass being whole.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from backend_loop.loops.recount import Recount
from shared import keys
from shared.clock import boottime
from shared.errors import RedisAwayError
from shared.leader import Leader
from shared.logs import get
from shared.loop import After, Answer, Idle, Led, Loop, NoTermError
from shared.redis import Link, ReplyError
from shared.settings import Settings

log = get(__name__)

OFFICE: Final = "audit"
KEYS_A_STEP: Final = 200
"""Keys that a step scans; a hundred thousand missions have about three hundred thousand: a pass of half an hour."""
BATCH: Final = 25
"""Missions, or entries of an index, that one script looks at: less than half a millisecond of Redis."""
ENTRIES_A_STEP: Final = 150
LEAST_COST: Final = 5  # that an index costs a step, in entries
REST_STEPS: Final = 10  # a small shard is gone over once in so many steps, not in each
SAID_AT_MOST: Final = 20  # lines a step; what is damaged as a whole is damaged alike
BROKEN_KEPT: Final = 1000
TELL_S: Final = 600.0  # how often it says that it goes round

SCANS: Final = (
    {"held": "SSCAN", "signals": "SSCAN", "permits": "HSCAN"}
    | dict.fromkeys(("lane", "timers", "deadlines", "retire", "waiters", "parked", "paused", "dead_letters"), "ZSCAN")
    | dict.fromkeys(("intents", "outboxes", "permit_queue"), "ZSCAN")
)
"""The indexes that are walked, by the first word of their key, and the command that does."""


@dataclass(slots=True)
class Pass:
    """One round over all keys of a shard."""

    server: int  # which connection it began on: a scan goes on only on the server where it began
    cursor: bytes = b"0"
    began: float = field(default_factory=boottime)
    repairs: int = 0


class ShardAudit:
    """The audit of one shard.

    Args:
        link: to its Redis.
        shard: whose keys.
        leader: under whose term it repairs.
        settings: of the process.
    """

    def __init__(self, link: Link, shard: int, leader: Leader, settings: Settings) -> None:
        """Nothing runs yet: start its `loop`."""
        self._link, self._shard, self._leader = link, shard, leader
        self._prefix = keys.prefix(shard)
        self._retention_ms, self._pace_s = round(settings.retention_s * 1000), settings.audit_s
        self._term = 0
        self._pass: Pass | None = None
        self._began = self._told = -REST_STEPS * self._pace_s
        self._recount = Recount()
        self._indexes: dict[str, None] = {}  # names to be walked, in order; the first one is under way
        self._entry_cursor = b"0"
        self._targets: list[str] = []
        self._broken: dict[str, str] = {}
        self.loop = Loop(
            f"audit-s{shard}",
            Led(leader, self._step),
            trigger="timed",
            interval_s=settings.audit_s,
            vital=False,
            describe="holds records, indexes and counts against each other, and repairs what disagrees",
            output="repairs, said as warnings",
            on_failure="the pass begins anew: each piece is looked at by itself",
        )

    async def _step(self, term: int) -> Answer:
        if term != self._term:  # others have led since: what this process found is old
            self._term = term
            self._forget()
        try:
            await self._walk()
            await self._scan()
        except RedisAwayError:
            self._forget()
            if self._link.connected:
                raise
            return After(self._pace_s)
        return Idle()

    def _forget(self) -> None:
        """Begin anew."""
        self._pass, self._recount = None, Recount()

    async def _scan(self) -> None:
        """Look at the next records, and note the names of indexes."""
        if self._pass is not None and self._pass.server != self._link.ups:
            self._forget()
        if self._pass is None and boottime() - self._began < REST_STEPS * self._pace_s:
            return
        one = self._pass or await self._begin()
        one.cursor, names = await self._link.call("SCAN", one.cursor, "MATCH", self._prefix + "*", "COUNT", KEYS_A_STEP)
        records = []
        for raw in names:
            kind, _, rest = raw.decode(errors="replace").removeprefix(self._prefix).partition(":")
            if kind == "mission":
                records.append(rest)
            elif kind == "target":
                self._targets.append(rest)
            elif kind in SCANS:
                self._indexes.setdefault(f"{kind}:{rest}" if rest else kind)
        for part in _parts(records):
            rows = await self._run("records", *part)
            self._recount.add(zip(rows[::2], rows[1::2], strict=True))
        if one.cursor == b"0":
            await self._end(one)

    async def _begin(self) -> Pass:
        self._pass = one = Pass(self._link.ups)
        self._began = one.began
        if self._recount.suspects:
            await self._run("mark", *self._recount.suspects)
        return one

    async def _end(self, one: Pass) -> None:
        pairs = [part for kind, number in self._recount.pairs() for part in (kind, str(number))]
        told = await self._run("counted", *pairs)
        missions = self._recount.missions
        self._recount.end({kind: int(number) for kind, number in zip(told[::2], told[1::2], strict=True)})
        self._pass = None
        if one.repairs or boottime() - self._told >= TELL_S:
            self._told = boottime()
            seconds = round(self._told - one.began, 1)
            log.info("audit", shard=self._shard, missions=missions, repairs=one.repairs, seconds=seconds)

    async def _walk(self) -> None:
        """Look at the next entries of the indexes."""
        for part in _parts(self._targets):
            await self._run("index", "target", *part)
        self._targets.clear()
        left = ENTRIES_A_STEP
        while left > 0 and self._indexes:
            name = next(iter(self._indexes))
            members = await self._entries(name)
            for part in _parts(members):
                await self._run("index", name, *part)
            if self._entry_cursor == b"0":
                del self._indexes[name]
            left -= max(LEAST_COST, len(members))

    async def _entries(self, name: str) -> list[str]:
        """The next ones of an index; what is no index at all has none."""
        scan = SCANS[name.partition(":")[0]]
        try:
            self._entry_cursor, found = await self._link.call(
                scan, self._prefix + name, self._entry_cursor, "COUNT", BATCH
            )
        except ReplyError as error:
            self._entry_cursor = b"0"
            self._say([("", name, str(error))])
            return []
        return [raw.decode(errors="replace") for raw in (found if scan == "SSCAN" else found[::2])]

    async def _run(self, what: str, *args: str) -> list[str]:
        """One call of the script under the present term; says what it repaired.

        Raises:
            NoTermError: the term is over, or a later leader has been here.
        """
        if self._leader.term() != self._term:  # asked anew each time: this process may have been frozen
            raise NoTermError
        answer: Any = await self._link.run("audit", self._prefix, self._term, self._retention_ms, what, *args)
        if answer[0] == b"FENCED":
            log.warning("audit refused", shard=self._shard, term=self._term, later=answer[1])
            self._leader.refuse(self._term)
            raise NoTermError
        texts = [raw.decode(errors="replace") for raw in answer[1]]
        self._say(list(zip(texts[::3], texts[1::3], texts[2::3], strict=True)))
        return [raw.decode() for raw in answer[2]]

    def _say(self, found: Sequence[tuple[str, str, str]]) -> None:
        repairs = [one for one in found if one[0]]
        for task_id, why in ((task_id, why) for index, task_id, why in found if not index):
            if self._broken.get(task_id) != why:
                self._broken[task_id] = why
                log.error("cannot be audited", shard=self._shard, what=task_id, why=why)
        while len(self._broken) > BROKEN_KEPT:
            del self._broken[next(iter(self._broken))]
        if self._pass is not None:
            self._pass.repairs += len(repairs)
        for index, task_id, done in repairs[:SAID_AT_MOST]:
            log.warning("repair", shard=self._shard, index=index, task_id=task_id, done=done)
        if len(repairs) > SAID_AT_MOST:
            log.warning("repair", shard=self._shard, further=len(repairs) - SAID_AT_MOST)


def audits(link: Link, leader: Leader, settings: Settings) -> Iterator[Loop]:
    """The loops of the audit: of each shard one, all of which the same process leads."""
    for shard in range(settings.shards):
        yield ShardAudit(link, shard, leader, settings).loop


def _parts(found: Sequence[str]) -> Iterator[Sequence[str]]:
    return (found[start : start + BATCH] for start in range(0, len(found), BATCH))
