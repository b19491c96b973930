"""What clients and operators want of a mission, as `control.lua` does it: an end, a pause, or an entry."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from backend_loop.document import ANEW
from backend_loop.testing.record import Record
from backend_loop.testing.shard import Shard
from backend_loop.testing.skipping import Time
from shared.status import Status


class Control:
    """The verbs on one shard; each answers OK, DUPLICATE, FULL, ENDED or GONE."""

    def __init__(self, shard: Shard, time: Time) -> None:
        """Nothing is wanted yet."""
        self._shard, self._time, self._fresh = shard, time, 0

    def run(
        self,
        task_id: str,
        verb: str,
        entry: Mapping[str, Any],
        *,
        entry_id: str = "",
        run: int | None = None,
    ) -> str:
        """Say it.

        Args:
            task_id: to whom.
            verb: cancel, pause, resume, event, skip, complete or child.
            entry: what the inbox gets, without its kind; of a pause or resume also the data of their event.
            entry_id: one that was posted is not posted again; empty: a fresh one.
            run: that it is about, of a message between missions.
        """
        record = self._shard.records.get(task_id)
        if record is None:
            return "GONE"
        if record.ended or (run is not None and run != record.run):
            return "ENDED"
        match verb:
            case "cancel" if record.started_at is None:
                self._shard.finish(record, entry["reason"], entry)
            case "pause" if record.place == "paused":
                pass
            case "pause" if record.place != "leased" and not record.inbox:
                self._pause(record, entry)
            case "resume" if record.place == "paused":
                self._resume(record, entry)
            case "resume" if not any(one.startswith(b'{"entry":"pause"') for one in record.inbox):
                pass
            case _:
                self._fresh += 1
                text = to_json({"entry": verb, **entry})
                reserved, rouses = verb not in {"event", "pause"}, verb == "cancel"
                id_ = entry_id or f"{verb}:{self._fresh}"
                return self._shard.post(record, id_, text, reserved=reserved, rouses=rouses)
        return "OK"

    def replay(self, record: Record, *, initial: str, start: bool, deadline_s: float, data: Mapping[str, Any]) -> None:
        """A dead letter runs again, as `replay.lua` has it; `data` is that of its event, and names the key."""
        state = initial if start else record.failed_in
        record.status, record.state = record.at_rest, state
        self._shard.logged(record, record.status, state, dict(data))
        if start and record.document.startswith(b'{"') and not record.document.startswith(ANEW):
            record.document = ANEW + record.document[1:]
        record.run += 1
        if data["key"] == "new":
            record.key_run = record.run
        record.deadline = self._time.now_ms() + round(deadline_s * 1000)
        record.order, record.armed, record.result = self._shard.next_order(), True, None
        record.deaths, record.waiting_for, record.wake_at, record.progress = 0, "", None, b""
        record.failed_in, record.newer = "", False
        self._shard.enter(record)

    def _pause(self, record: Record, said: Mapping[str, Any]) -> None:
        self._shard.logged(record, Status.PAUSED, record.state, {"event": "paused", **said})
        if record.place != "waiting":
            record.waiting_for, record.wake_at = "", None
        self._shard.pause(record)
        self._shard.free(record)

    def _resume(self, record: Record, said: Mapping[str, Any]) -> None:
        over = record.wake_at <= self._time.now_ms() if record.wake_at is not None else not record.waiting_for
        if record.inbox or over:
            self._shard.stir(record)
        else:
            record.place, record.status, record.was = "waiting", record.was or Status.WAITING, None
            record.paused_at = None
        self._shard.logged(record, record.status, record.state, {"event": "resumed", **said})
