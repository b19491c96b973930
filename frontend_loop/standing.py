"""What the sentence of a mission is made of: its record, its document, its log, and what stands around it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from frontend_loop.family import waited_for
from frontend_loop.naming import placed
from frontend_loop.progress import read
from frontend_loop.record import Record, ms, number, pool, target
from frontend_loop.why import Standing, lasting, one_line
from shared.clock import parse_rfc3339
from shared.status import Reason, Status

Log = Sequence[Mapping[str, Any]]

TIMES: Final = ("ready_at", "wake_at", "parked_at", "paused_at", "deadline")
COUNTS: Final = ("deaths", "solo_deaths", "unread")
"""Fields of a record that the sentence takes as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands outside a record: lease, target, neighbours in line, newer commands, what workers know.

    Args:
        lease_end: None: that owner is gone.
        served: some worker listens for work in its pool.
        known_at: when a worker that knows the type of a parked mission last came by.
        entries: what the unread entries of its inbox are.
        outbox: rows still to be carried out. dead_rows: those refused for good, and why.
    """

    now: int
    workers: int
    lease_end: int | None
    holder: str | None
    holds: bool
    waiters: int
    ahead: int | None
    newer: int
    known_at: int | None
    entries: tuple[str, ...]
    dead_since: int | None
    kept_until: int | None
    outbox: int
    dead_rows: tuple[Mapping[str, Any], ...] = ()
    served: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is set down elsewhere: tries of the present state, and of its undo, and limits in milliseconds.

    Args:
        future: workers know the type, but not in this version.
    """

    tries: int | None
    undo_tries: int | None
    future: bool
    pause_limit: int
    park_limit: int
    lease: int


def standing(  # noqa: PLR0913, PLR0917  the sentence looks at everything
    task_id: str,
    record: Record,
    around: Around,
    course: Mapping[str, Any],
    history: Log,
    result: Mapping[str, Any],
    rules: Rules,
) -> Standing:
    """All of it; what is damaged or unknown is left out."""
    last: Mapping[str, Any] = history[-1] if history else {}
    ended = record["place"] == "ended"
    paused, cancelled = _newest(history, "event", "paused"), _newest(history, "reason", Reason.REQUESTED)
    finished = result.get("finished_at") or last.get("at")
    return Standing(
        now=around.now,
        place=record["place"],
        status=record["status"],
        state=record["state"],
        kind=f"{record['type']}@{record['version']}",
        task_id=task_id,
        entered_at=_entered(record, history),
        finished_at=parse_rfc3339(finished) if finished else None,
        kept_until=around.kept_until if around.dead_since is not None else None,
        pause_limit=rules.pause_limit,
        park_limit=rules.park_limit,
        paused_by=_said(paused, "by"),
        paused_for=_said(paused, "note"),
        asked_by=_said(cancelled, "by"),
        asked_for=_said(cancelled, "note"),
        waiting_for=record.get("waiting_for") or None,
        awaited=course.get("awaited"),
        children=waited_for(course),
        blocked=_blocked(record, history),
        attempt=course.get("attempt", 1),
        tries=rules.undo_tries if not ended and _ending(course) else rules.tries,
        run=number(record, "run", 1),
        entries=around.entries,
        owner=record.get("owner"),
        lease_ends_at=around.lease_end,
        workers=around.workers,
        unserved=None if around.served else pool(record),
        known=around.known_at is not None and around.now - around.known_at <= 2 * rules.lease,
        future=rules.future,
        lane=record["lane"].partition(":")[0],
        base=record.get("base"),
        ahead=around.ahead,
        target=target(record),
        holder=around.holder,
        holds=around.holds,
        aspect=record.get("latest", "").rpartition(":")[2] or None,
        newer=0 if ended or record.get("acted") else around.newer,
        trouble=_failure(result, last) if ended else _last_trouble(history),
        reason=result.get("reason") or _data(last).get("reason"),
        begun=ms(record, "started_at") is not None,
        undone=_states(course.get("undone"), result),
        left=_left(course, result, ended=ended),
        ending=_met(result) if ended else _ending(course),
        amid=ended and isinstance(course.get("ending"), dict),
        progress=_far(record, None if ended else around.now),
        **dict[str, Any]({name: ms(record, name) for name in TIMES}),
        **dict[str, Any]({name: number(record, name) for name in COUNTS}),
    )


def _entered(record: Record, history: Log) -> int | None:
    """When it came into its present state: the oldest of the newest events that name it."""
    entered = ms(record, "created_at")
    for event in reversed(history):
        if event.get("state") != record["state"]:
            break
        entered = parse_rfc3339(event["at"])
    return entered


def _far(record: Record, now: int | None) -> str | None:
    """How far it says it is; `now` is None for one that has ended."""
    if (progress := read(record.get("progress"))) is None:
        return None
    at, doing = ms(record, "progress_at"), one_line(progress.message)
    ago = f" {lasting(now - at)} ago" if at and now is not None else ""
    if not (figures := progress.figures()):
        return f"it said{ago}: {doing}" if now is not None else f"it said last: {doing}"
    doing = f", {doing}" if doing else ""
    if now is None:
        return f"it had come to {figures}{doing}"
    return f"{figures} done{doing}" + (f", as it said{ago}" if ago else "")


def _data(event: Mapping[str, Any]) -> Mapping[str, Any]:
    data = event.get("data")
    return data if isinstance(data, dict) else {}


def _newest(history: Log, name: str, value: str) -> Mapping[str, Any]:
    """What was said with the newest event of this run that says so, and by whom."""
    for event in reversed(history):
        data = _data(event)
        if data.get("event") == "replayed":
            break
        if data.get(name) == value and "by" in data:
            return data
    return {}


def _said(data: Mapping[str, Any], name: str) -> str | None:
    return None if data.get(name) is None else str(data[name])


def _blocked(record: Record, history: Log) -> str | None:
    """Which permit is wanted now, as the record says; else what its log said last of a breaker."""
    if scope := record.get("queued", "").partition(" ")[0]:
        return f"no permit of {scope} is free"
    for event in reversed(history):
        if _data(event).get("event") == "no_permit":
            return str(_data(event).get("why"))
    return None


def _last_trouble(history: Log) -> str | None:
    for event in reversed(history):
        if _data(event).get("event") == "retry":
            return placed(_data(event), str(_data(event).get("error")))
    return None


def _failure(result: Mapping[str, Any], last: Mapping[str, Any]) -> str | None:
    if error := result.get("error"):
        return f"{error.get('code')} in {error.get('state')}: {placed(error, error.get('message'))}"
    code = _data(last).get("code")
    return None if code is None else str(code)


def _states(done: Any, result: Mapping[str, Any]) -> tuple[str, ...]:
    """Names out of a course's list of visits, or out of a result."""
    if isinstance(done, list):
        return tuple(str(one[0]) for one in done if isinstance(one, list) and one)
    undone = (result.get("result") or {}).get("undone") if isinstance(result.get("result"), dict) else None
    return tuple(map(str, undone)) if isinstance(undone, list) else ()


def _left(course: Mapping[str, Any], result: Mapping[str, Any], *, ended: bool) -> tuple[str, ...]:
    """What is still to be undone, the next one first; after an end, what was not."""
    if ended:
        left = (result.get("error") or {}).get("not_undone")
        return tuple(map(str, left)) if isinstance(left, list) else ()
    return _states(course.get("done"), {})[::-1]


def _ending(course: Mapping[str, Any]) -> str | None:
    """The end that comes when all is undone."""
    ending = course.get("ending")
    return None if not isinstance(ending, dict) else _end(ending.get("status"), ending)


def _met(result: Mapping[str, Any]) -> str | None:
    """The end that would have come, had the undoing not failed, or its worker been lost amid it."""
    error = result.get("error")
    if not isinstance(error, dict) or not {"error", "reason"} & error.keys():
        return None
    return _end(Status.FAILED if "error" in error else Status.CANCELLED, error)


def _end(status: Any, end: Mapping[str, Any]) -> str:
    error = end.get("error")
    if status == Status.FAILED and isinstance(error, dict):
        return f"{status} with {error.get('code')} in {error.get('state')}: {error.get('message')}"
    return f"{status} ({end['reason']})" if end.get("reason") else str(status)
