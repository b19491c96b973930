"""The moves that the verbs of the kit's shard share, as `places.lua` and `ends.lua` have them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

from backend_loop.testing.record import Record
from backend_loop.testing.skipping import Time
from shared.clock import rfc3339
from shared.settings import Settings
from shared.status import Status

AGED_MS: Final = 30_000
"""A waiter of a lower lane counts as having come so much later."""

ROOM: Final = 64
"""Unread events and pauses that an inbox takes."""


class Places:
    """Where missions stand, and how they get elsewhere.

    Attributes:
        records: all of them, by task id.
        posted: told of a mission that is leased, and was told something.
        stirred: told that something may be done now.
    """

    def __init__(self, time: Time, settings: Settings) -> None:
        """Empty."""
        self._time, self._settings = time, settings
        self.records: dict[str, Record] = {}
        self.unheard()
        self._holds: dict[str, str] = {}

    def unheard(self) -> None:
        """Nobody listens to hints."""
        self.posted: Callable[[str], None] = lambda _task_id: None
        self.stirred: Callable[[], None] = lambda: None

    def enter(self, record: Record) -> None:
        """To its lane, if its target is free or its own; else to the waiters of that."""
        holder = self._holds.setdefault(record.target, record.task_id) if record.target else record.task_id
        if holder == record.task_id:
            record.place = "lane"
        else:
            record.place, record.joined_at = "waiters", self._time.now_ms()
        self.stirred()

    def free(self, record: Record) -> None:
        """Give its target on, to the best of those that wait for it."""
        if self._holds.get(record.target) != record.task_id:
            return
        del self._holds[record.target]
        waiting = [one for one in self.records.values() if (one.place, one.target) == ("waiters", record.target)]
        if waiting:
            self.enter(min(waiting, key=lambda one: (one.joined_at + AGED_MS * one.rank, one.order)))

    def stir(self, record: Record) -> None:
        """What waits, or is paused, towards its lane."""
        if record.place == "paused":
            record.status = record.was or record.at_rest
            record.paused_at, record.was = None, None
        self.enter(record)

    def pause(self, record: Record) -> None:
        """Where it is paused, until somebody resumes it."""
        record.was = record.status if record.status is Status.COMPENSATING else None
        record.place, record.status, record.armed = "paused", Status.PAUSED, True
        record.paused_at = self._time.now_ms()

    def post(self, record: Record, entry_id: str, entry: bytes, *, reserved: bool, rouses: bool) -> str:
        """An entry for its lease holder: OK, DUPLICATE or FULL."""
        if entry_id in record.seen:
            return "DUPLICATE"
        if not reserved and len(record.inbox) >= ROOM:
            return "FULL"
        record.seen.add(entry_id)
        record.inbox.append(entry)
        if record.place == "leased":
            self.posted(record.task_id)
        elif record.place == "waiting" or (record.place == "paused" and rouses):
            self.stir(record)
        return "OK"

    def logged(self, record: Record, status: str, state: str, data: Any) -> None:
        """One more event."""
        record.seq += 1
        at = rfc3339(self._time.now_ms())
        record.log.append({"seq": record.seq, "at": at, "status": str(status), "state": str(state), "data": data})

    def put(self, record: Record, rows: list[bytes]) -> None:
        """What is to be done elsewhere."""
        record.outbox += rows
        self.stirred()

    def keep(self, record: Record, told: Mapping[str, Any]) -> None:
        """It has ended, and its result says this; its parent is to hear of it."""
        now = self._time.now_ms()
        progress = from_json(record.progress) if record.progress else None
        started = None if record.started_at is None else rfc3339(record.started_at)
        times = {"created_at": rfc3339(record.created_at), "started_at": started, "finished_at": rfc3339(now)}
        expires = {"expires_at": rfc3339(now + round(self._settings.retention_s * 1000))}
        record.result = {"seq": record.seq, **told, "progress": progress, **times, **expires}
        record.place, record.armed = "ended", False
        record.inbox.clear()
        self.free(record)
        if record.parent:
            row = {"row": "end", "parent": record.parent, "run": record.parent_run, "child": record.task_id}
            self.put(record, [to_json({**row, "child_run": record.run, "document": record.result})])

    def finish(self, record: Record, reason: str, data: Mapping[str, Any]) -> None:
        """End CANCELLED what no worker ever had."""
        if record.spawned:
            record.outbox.append(b'{"row":"cancel_all"}')
        self.close(record, Status.CANCELLED, dict(data), reason=reason)

    def close(self, record: Record, status: Status, data: Any, **parts: Any) -> None:
        """End what no handler runs; `data`: of its event, `parts`: of its result document."""
        self.logged(record, status, status, data)
        record.status, record.state = status, str(status)
        names = ("correlation_id", "task_id", "type", "run")
        said = {name: getattr(record, name) for name in names} | {"status": str(status), "state": str(status)}
        nothing = dict.fromkeys(("result", "error", "reason", "waiting_for", "freshness"))
        self.keep(record, said | nothing | parts)
