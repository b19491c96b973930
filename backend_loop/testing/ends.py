"""How children end that no handler runs, and what commits cause elsewhere (P5), carried out in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json, to_json

from backend_loop import document
from backend_loop.carrier import told_of
from backend_loop.testing.control import Control
from backend_loop.testing.record import Record
from backend_loop.testing.script import UnscriptedError
from backend_loop.testing.shard import Due, Shard
from backend_loop.testing.skipping import Time
from shared.status import ErrorCode, Reason, Status


@dataclass(frozen=True, slots=True)
class End:
    """The end of a child; made by `succeeded`, `failed`, `cancelled` and `never`."""

    status: Status | None
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    reason: str | None = None
    after_s: float = 0.0


def succeeded(result: Mapping[str, Any] | None = None, *, after_s: float = 0.0) -> End:
    """It succeeds with this result, so many seconds after it began."""
    return End(Status.SUCCEEDED, result, after_s=after_s)


def failed(message: str = "as the test says", code: ErrorCode = ErrorCode.PERMANENT, *, after_s: float = 0.0) -> End:
    """It fails."""
    return End(Status.FAILED, error={"code": code, "message": message}, after_s=after_s)


def cancelled(reason: Reason = Reason.REQUESTED, *, after_s: float = 0.0) -> End:
    """It is cancelled by somebody else than its parent."""
    return End(Status.CANCELLED, reason=reason, after_s=after_s)


def never() -> End:
    """It does not end by itself, only with its deadline or by a cancel of its parent."""
    return End(None)


Ends = End | Callable[[Mapping[str, Any]], End]
"""One end, or a function of the payload."""

UNTOLD: Final = never()


class Carrier:
    """Carries out outbox rows as the real one does: children begin, are told to end, and tell their parents.

    Args:
        shard: whose rows.
        control: says it.
        known: types that are run for real.
        ends: of the others, by type: one for all, or one for each in the order in which they begin, the last one stays.
            None: they end when the test says so.
        time: when.
    """

    def __init__(
        self,
        shard: Shard,
        control: Control,
        known: frozenset[str],
        ends: Mapping[str, Ends | Sequence[Ends]] | None,
        time: Time,
    ) -> None:
        """Nothing is carried yet."""
        self._shard, self._control, self._known, self._ends, self._time = shard, control, known, ends, time
        self._begun = dict[str, int]()
        self._coming: dict[str, tuple[int, End]] = {}
        self._kinds: Mapping[str, Callable[[Record, Mapping[str, Any]], None]] = {
            "accept": self._accept,
            "end": self._end,
            "cancel": self._cancel,
            "cancel_all": self._cancel_all,
        }

    def carry(self) -> None:
        """Everything that is there, and what comes of it.

        Raises:
            UnscriptedError: a child began of which nobody said how it ends.
        """
        for task_id, (at, end) in list(self._coming.items()):
            if at <= self._time.now_ms():
                del self._coming[task_id]
                self.end(self._shard.records[task_id], end)
        while rows := [(record, record.outbox.pop(0)) for record in self._shard.records.values() if record.outbox]:
            for record, raw in rows:
                row = from_json(raw)
                self._kinds[row["row"]](record, row)

    def dues(self) -> list[Due]:
        """When children end as was said."""
        return [Due(at, only=True) for at, _ in self._coming.values()]

    def end(self, record: Record, end: End) -> None:
        """The end of a child that no handler runs."""
        if record.ended or end.status is None:
            return
        data = end.error or ({"reason": end.reason} if end.reason else None)
        self._shard.close(record, end.status, data, result=end.result, error=end.error, reason=end.reason)

    def _accept(self, parent: Record, row: Mapping[str, Any]) -> None:
        child = Record(
            task_id=row["child"],
            type=row["type"],
            version=row["version"],
            envelope=to_json(row["envelope"]),
            state=row["state"],
            lane=row["lane"],
            order=self._shard.next_order(),
            created_at=self._time.now_ms(),
            deadline=row["deadline"],
            target=row["held"] if row["type"] in self._known else "",
            latest=row["latest"],
            root=row["root"],
            parent=parent.task_id,
            parent_run=row["run"],
        )
        if row["type"] in self._known:
            self._shard.accept(child)
        elif child.task_id not in self._shard.records:
            self._await(child, self._next(parent.type, child.type, row["envelope"]["payload"]))

    def live(self, parent: Record, task_id: str, type_: str, run: int) -> None:
        """A child of an exported mission lives, and nothing is known of it but that."""
        child = Record(
            task_id=task_id,
            type=type_,
            version=1,
            envelope=b"{}",
            state="UNKNOWN",
            lane=parent.lane,
            order=self._shard.next_order(),
            created_at=self._time.now_ms(),
            deadline=parent.deadline,
            root=parent.correlation_id,
            parent=parent.task_id,
            parent_run=run,
        )
        self._await(child, self._next(parent.type, type_, {}))

    def _await(self, child: Record, end: End) -> None:
        child.place, child.armed = "scripted", self._ends is not None
        self._shard.records[child.task_id] = child
        if end.status is not None:
            self._coming[child.task_id] = self._time.now_ms() + round(end.after_s * 1000), end
            self._shard.stirred()

    def _next(self, parent: str, type_: str, payload: Mapping[str, Any]) -> End:
        if self._ends is None:
            return UNTOLD
        ends = self._ends.get(type_)
        if ends is None or ends == []:
            raise UnscriptedError(
                f"{parent} spawns {type_}: give the bench its class too, behind that of {parent}, "
                f'or say how it ends, by children={{"{type_}": succeeded({{}})}}'
            )
        if isinstance(ends, Sequence):
            place = self._begun.get(type_, 0)
            self._begun[type_] = place + 1
            ends = ends[min(place, len(ends) - 1)]
        return ends if isinstance(ends, End) else ends(payload)

    def _end(self, record: Record, row: Mapping[str, Any]) -> None:
        entry = {"run": row["run"], **told_of(record.task_id, row["document"])}
        entry_id = f"child:{record.task_id}:{row['child_run']}"
        self._control.run(row["parent"], "child", entry, entry_id=entry_id, run=row["run"])

    def _cancel(self, parent: Record, row: Mapping[str, Any]) -> None:
        self._end_child(parent, row["child"], row["reason"])

    def _cancel_all(self, parent: Record, _row: Mapping[str, Any]) -> None:
        for child in document.read(parent.document, parent.state).course.children:
            if child.live:
                self._end_child(parent, child.task_id, Reason.REQUESTED)

    def _end_child(self, parent: Record, child: str, reason: str) -> None:
        if self._ends is None and child in self._shard.records and self._shard.records[child].place == "scripted":
            return  # it ends when the test says so, however it does
        entry = {"reason": reason, "by": "parent", "note": f"{parent.task_id} has ended"}
        self._control.run(child, "cancel", entry, entry_id=f"parent:{parent.task_id}", run=1)
