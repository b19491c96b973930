"""Everything that Redis knows of one mission, and why it is where it is."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from frontend_loop.listing import row, target
from frontend_loop.why import Standing, why
from shared import keys, traceparent
from shared.catalogue import Catalogue
from shared.clock import parse_rfc3339, rfc3339
from shared.errors import Problem
from shared.ids import MissionId
from shared.redis import Link

HISTORY: Final = 1_000
"""Events shown, the newest; each has its `seq`, so that it is seen where older ones are left out."""

LATEST: Final = 253_402_300_799_999
"""The last millisecond of the year 9999: beyond it no time can be shown, and no number of ours is."""

NUMBERS: Final = frozenset(
    {
        *("created_at", "started_at", "ready_at", "wake_at", "parked_at", "deadline"),
        *("order", "version", "run", "deaths", "fence", "rev", "seq", "unread"),
    }
)
"""Fields of a record that hold whole numbers."""

Record = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What stands outside a record: lease, target, neighbours in line. `lease_end` None: that owner is gone."""

    now: int
    workers: int
    lease_end: int | None
    holder: str | None
    holds: bool
    waiters: int
    ahead: int | None


class Inspection:
    """Reads missions for operators. Two flushes, not one script: what moves in between may look a moment apart."""

    def __init__(self, link: Link, catalogue: Catalogue) -> None:
        """`catalogue` tells how many tries a state has."""
        self._link, self._catalogue = link, catalogue

    async def look(self, mission: MissionId) -> dict[str, Any]:
        """The document of ``GET /v1/missions/{task_id}``.

        Raises:
            Problem: 410, it has ended and is no longer kept.
            RedisAwayError: it cannot be read now.
        """
        shard, task_id = mission.shard, mission.text
        fields, result, log, time = await asyncio.gather(
            self._link.call("HGETALL", keys.mission(shard, task_id)),
            self._link.call("GET", keys.result(shard, task_id)),
            self._link.call("LRANGE", keys.log(shard, task_id), -HISTORY, -1),
            self._link.call("TIME"),
        )
        raw = {name.decode(): value for name, value in zip(fields[::2], fields[1::2], strict=True)}
        if "type" not in raw:
            raise Problem("expired", "this mission has ended and is no longer kept", correlation_id=task_id)
        now = int(time[0]) * 1000 + int(time[1]) // 1000
        envelope, document = _json(raw.pop("envelope", b"")), _json(raw.pop("document", b""))
        record = {name: _sane(name, value.decode(errors="replace")) for name, value in raw.items()}
        around = await self._around(shard, task_id, record, now)
        course = {name: value for name, value in document.items() if name != "context"}
        history, ended = [_json(event) for event in log], _json(result) if result is not None else None
        standing = _standing(record, around, course, history, ended or {}, self._tries(record))
        return {
            **_told(task_id, record, around, course),
            "why": why(standing),
            "course": course,
            "context": document.get("context"),
            "envelope": envelope,
            "trace_id": _trace_id(envelope),
            "history": history,
            "result": ended,
        }

    async def _around(self, shard: int, task_id: str, record: Record, now: int) -> Around:
        """What stands outside its record: lease, target, neighbours in line."""
        held, place = record.get("target", ""), record["place"]
        line = keys.waiters(shard, held) if place == "waiters" else keys.lane(shard, record["lane"])
        workers, lease_end, holder, waiters, ahead = await asyncio.gather(
            self._link.call("ZCOUNT", keys.owners(shard), f"({now}", "+inf"),
            self._link.call("ZSCORE", keys.owners(shard), record.get("owner", "")),
            self._link.call("GET", keys.target(shard, held)),
            self._link.call("ZCARD", keys.waiters(shard, held)),
            self._link.call("ZRANK", line, task_id),
        )
        return Around(
            now=now,
            workers=workers,
            lease_end=_whole(lease_end.decode()) or None if lease_end is not None else None,
            holder=holder.decode() if holder is not None else None,
            holds=holder == task_id.encode(),
            waiters=waiters,
            ahead=ahead if place in {"lane", "waiters"} else None,
        )

    def _tries(self, record: Record) -> int | None:
        entry = self._catalogue.find(record["type"], int(record["version"]))
        tries = entry.row.states.get(record["state"], {}).get("retry", {}).get("tries") if entry else None
        return tries if isinstance(tries, int) else None


def _told(task_id: str, record: Record, around: Around, course: Mapping[str, Any]) -> dict[str, Any]:
    """The record as a document."""
    place, visits = record["place"], course.get("visits", {})
    hold = {"holder": around.holder, "waiters": around.waiters} if target(record) is not None else None
    lease = {"owner": record.get("owner"), "ends_at": _time(around.lease_end)} if place == "leased" else None
    return row(task_id, record) | {
        "place": place,
        "lane": record["lane"],
        "order": int(record["order"]),
        "ahead": around.ahead,
        "attempt": course.get("attempt", 1),
        "visit": visits.get(record["state"], 1),
        "visits": visits,
        "transitions": course.get("transitions", 0),
        **{name: int(record.get(name, 0)) for name in ("deaths", "fence", "rev", "seq", "unread")},
        "run": int(record.get("run", 1)),
        "lease": lease,
        "hold": hold,
        "started_at": _time(_ms(record, "started_at")),
        "ready_at": _time(_ms(record, "ready_at")),
        "wake_at": _time(_ms(record, "wake_at")) if place in {"waiting", "paused"} else None,
        "parked_at": _time(_ms(record, "parked_at")) if place == "parked" else None,
    }


def _standing(  # noqa: PLR0913, PLR0917  the sentence looks at everything
    record: Record,
    around: Around,
    course: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    result: Mapping[str, Any],
    tries: int | None,
) -> Standing:
    last: Mapping[str, Any] = history[-1] if history else {}
    ended = record["place"] == "ended"
    finished = result.get("finished_at") or last.get("at")
    return Standing(
        now=around.now,
        place=record["place"],
        status=record["status"],
        state=record["state"],
        kind=f"{record['type']}@{record['version']}",
        entered_at=_entered(record, history),
        ready_at=_ms(record, "ready_at"),
        wake_at=_ms(record, "wake_at"),
        parked_at=_ms(record, "parked_at"),
        deadline=_ms(record, "deadline"),
        finished_at=parse_rfc3339(finished) if finished else None,
        waiting_for=record.get("waiting_for") or None,
        awaited=course.get("awaited"),
        attempt=course.get("attempt", 1),
        tries=tries,
        deaths=int(record.get("deaths", 0)),
        unread=int(record.get("unread", 0)),
        owner=record.get("owner"),
        lease_ends_at=around.lease_end,
        workers=around.workers,
        lane=record["lane"].partition(":")[0],
        ahead=around.ahead,
        target=target(record),
        holder=around.holder,
        holds=around.holds,
        trouble=_failure(result, last) if ended else _last_trouble(history),
        reason=result.get("reason") or (last.get("data") or {}).get("reason"),
    )


def _entered(record: Record, history: Sequence[Mapping[str, Any]]) -> int | None:
    """When it came into its present state: the oldest of the newest events that name it."""
    entered = _ms(record, "created_at")
    for event in reversed(history):
        if event.get("state") != record["state"]:
            break
        entered = parse_rfc3339(event["at"])
    return entered


def _last_trouble(history: Sequence[Mapping[str, Any]]) -> str | None:
    for event in reversed(history):
        data = event.get("data") or {}
        if data.get("event") == "retry":
            return str(data.get("error"))
    return None


def _failure(result: Mapping[str, Any], last: Mapping[str, Any]) -> str | None:
    if error := result.get("error"):
        return f"{error.get('code')} in {error.get('state')}: {error.get('message')}"
    code = (last.get("data") or {}).get("code")
    return None if code is None else str(code)


def _json(raw: bytes) -> dict[str, Any]:
    """What a process of ours wrote; should it be unreadable, an operator sees the text of it."""
    if not raw:
        return {}
    try:
        value = from_json(raw)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"unreadable": raw.decode(errors="replace")}


def _trace_id(envelope: Mapping[str, Any]) -> str | None:
    header = traceparent.valid(envelope.get("traceparent"))
    return header.split("-")[1] if header is not None else None


def _sane(name: str, text: str) -> str:
    """A number of a record as `int` reads it: whoever wrote it, an operator is shown the mission all the same."""
    return str(_whole(text)) if text and name in NUMBERS else text


def _whole(text: str) -> int:
    try:
        number = float(text)
    except ValueError:
        return 0
    return 0 if math.isnan(number) else int(min(max(number, 0), LATEST))


def _ms(record: Record, name: str) -> int | None:
    return int(record[name]) if record.get(name) else None


def _time(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)
