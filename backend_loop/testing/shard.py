"""A shard in memory, with the guards of the real one: owner, fence, rev, unread entries, a newer command.

Written from the scripts in `shared/lua`, verb by verb; what it lacks is listed where the kit is described. No awaits:
whoever calls it has the shard to itself, as a script has Redis.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from backend_loop.store import SUPERSEDED, WRITTEN, Claimed, LostError, Written
from backend_loop.testing.places import Places
from backend_loop.testing.record import Record
from shared.status import Status, WaitingFor

SKIPPED_TO: Final = frozenset({WaitingFor.RETRY, WaitingFor.TIMER, WaitingFor.PERMIT, WaitingFor.WORKER})
"""Waits that nothing but time ends: a test need not ask for it. What else ends a wait, it may want to say itself."""

ENTERS: Final = frozenset({"enters", "begins"})
"""Commits that a newer command keeps from an act."""


class Due(NamedTuple):
    """When something happens by itself, epoch ms; and whether nothing but time is waited for."""

    at: int
    only: bool


class Write(NamedTuple):
    """A commit's item, by name."""

    task_id: str
    fence: int
    rev: int
    consumed: int
    move: str
    status: Status
    state: str
    document: bytes
    events: bytes
    wake_at: int | str
    waiting_for: str
    version: int | str
    act: str
    tail: bytes
    progress: bytes = b""

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The events that it writes, before they have `seq` and time."""
        return [from_json(b"{" + line) for line in self.events.split(b"\n") if line]


class Shard(Places):
    """The verbs."""

    _fence = 0
    _order = 0

    def next_order(self) -> int:
        """One more than the last."""
        self._order += 1
        return self._order

    def accept(self, record: Record) -> str:
        """Take a mission in: OK, or DUPLICATE."""
        if record.task_id in self.records:
            return "DUPLICATE"
        self.records[record.task_id] = record
        self.enter(record)
        return "OK"

    def claim(self, owner: str) -> list[Claimed]:
        """All that is ready, the best lane first, and leased from here on."""
        for record in list(self.records.values()):
            if record.place == "waiting" and record.wake_at is not None and record.wake_at <= self._time.now_ms():
                self.enter(record)
        ready = [record for record in self.records.values() if record.place == "lane"]
        self._fence += bool(ready)
        return [self._lease(record, owner) for record in sorted(ready, key=lambda one: (one.rank, one.order))]

    def _lease(self, record: Record, owner: str) -> Claimed:
        record.status = Status.COMPENSATING if record.status is Status.COMPENSATING else Status.RUNNING
        if record.started_at is None:
            record.started_at = self._time.now_ms()
            self.logged(record, record.status, record.state, None)
        again = record.leased_at == record.rev
        record.place, record.owner, record.fence, record.leased_at = "leased", owner, self._fence, record.rev
        return Claimed(
            task_id=record.task_id,
            owner=owner,
            fence=record.fence,
            rev=record.rev,
            seq=record.seq,
            type=record.type,
            version=record.version,
            state=record.state,
            document=record.document,
            envelope=record.envelope,
            deadline=record.deadline,
            deaths=record.deaths,
            run=record.run,
            key_run=record.key_run,
            target=record.target,
            started_at=record.started_at,
            root=record.root,
            lane=record.lane,
            intent=str(record.order) if record.latest else "",
            again=again,
            unread=tuple(record.inbox),
        )

    def commit(self, owner: str, write: Write) -> Written:
        """The one write of a lease holder.

        Raises:
            LostError: fence or rev are not the expected ones, or the mission is gone.
        """
        record = self.records.get(write.task_id)
        if record is None:
            raise LostError("GONE")
        if (record.fence, record.rev) == (write.fence, write.rev + 1):
            return WRITTEN
        if (record.place, record.owner, record.fence, record.rev) != ("leased", owner, write.fence, write.rev):
            raise LostError("FENCED")
        if len(record.inbox) != write.consumed:
            return Written("signalled", tuple(record.inbox))
        if write.act in ENTERS and record.newer:
            return SUPERSEDED
        self._apply(record, write)
        return WRITTEN

    def _apply(self, record: Record, write: Write) -> None:
        for line in write.lines:
            self.logged(record, line["status"], line["state"], line["data"])
        record.rev, record.status, record.state = record.rev + 1, Status(write.status), str(write.state)
        record.document, record.version = write.document or record.document, int(write.version or record.version)
        record.progress = write.progress or record.progress
        record.inbox.clear()
        if write.act == "kept" or (write.events and write.waiting_for != WaitingFor.PERMIT and write.act != "runs"):
            record.deaths = 0
        rows = [line for line in write.tail.split(b"\n") if line]
        told = rows.pop(0) if write.move in {"end", "bury"} else b""
        record.spawned = record.spawned or any(row.startswith(b'{"row":"accept"') for row in rows)
        if rows:
            self.put(record, rows)
        self._move(record, write, told)

    def _move(self, record: Record, write: Write, told: bytes) -> None:
        match write.move:
            case "end" | "bury":
                record.failed_in = write.waiting_for if write.move == "bury" else ""
                self.keep(record, from_json(b"{" + told + b"}"))
                return
            case "stay" | "offer":
                return
            case "yield":
                self._rest(record)
                self.enter(record)
                return
            case "pause":
                self.pause(record)
            case _:
                record.place = "waiting"
        record.waiting_for = str(write.waiting_for)
        record.wake_at = None if write.wake_at == "" else int(write.wake_at)
        if write.move != "wait":
            self.free(record)

    def _rest(self, record: Record) -> None:
        if record.status is Status.RUNNING:
            record.status = record.at_rest

    def release(self, owner: str, held: Sequence[tuple[str, int]]) -> None:
        """Back to the lane what this owner leases under this fence."""
        for task_id, fence in held:
            record = self.records[task_id]
            if (record.place, record.owner, record.fence) == ("leased", owner, fence):
                self._rest(record)
                self.enter(record)

    def reclaim(self, owner: str) -> None:
        """What a dead owner leased goes back to its lane, a death counted."""
        for record in self.records.values():
            if (record.place, record.owner) == ("leased", owner):
                self._rest(record)
                record.deaths += 1
                self.logged(record, record.status, record.state, {"event": "reclaimed", "deaths": record.deaths})
                self.enter(record)

    def sweep(self) -> None:
        """Deadlines that have come."""
        for record in list(self.records.values()):
            if record.armed and self._deadline(record) <= self._time.now_ms():
                record.armed = False
                if record.started_at is None:
                    self.finish(record, "expired", {"reason": "expired"})
                else:
                    self.expire(record)

    def expire(self, record: Record) -> None:
        """Tell its worker that its deadline has come."""
        self.post(record, f"deadline:{record.run}", b'{"entry":"deadline"}', reserved=True, rouses=True)
        if record.place == "paused":
            self.stir(record)

    def _deadline(self, record: Record) -> int:
        """A pause outlasts it, by its limit at most."""
        if record.place != "paused" or record.paused_at is None:
            return record.deadline
        return max(record.deadline, record.paused_at + round(self._settings.pause_limit_s * 1000))

    def dues(self) -> Iterator[Due]:
        """What time alone will bring about."""
        for record in self.records.values():
            if record.place == "waiting" and record.wake_at is not None:
                yield Due(record.wake_at, record.waiting_for in SKIPPED_TO)
            if record.armed and not record.ended:
                yield Due(self._deadline(record), only=False)
