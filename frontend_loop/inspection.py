"""Everything that Redis knows of one mission, and why it is where it is."""

import asyncio
import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from frontend_loop.dead_letters import error, undone
from frontend_loop.family import children, shown
from frontend_loop.listing import row
from frontend_loop.record import Record, instant, ms, number, pool, readable, target, whole
from frontend_loop.standing import Around, Rules, standing
from frontend_loop.why import why
from shared import keys, traceparent
from shared.catalogue import Catalogue
from shared.envelope import Envelope
from shared.errors import Problem
from shared.fleet import Fleet
from shared.ids import MissionId
from shared.redis import Link
from shared.settings import Settings

HISTORY: Final = 1_000
"""Events shown, the newest; each has its `seq`, so that it is seen where older ones are left out."""

MOST_ENTRIES: Final = 100
"""Unread entries looked at; an inbox has room for fewer, but for the ends of children."""

MOST_ASKED: Final = 200
"""Children whose present status is looked up."""

_WHOLE: Final = dict.fromkeys(("place", "lane", "status", "state", "version"), "")
"""What a damaged record may lack."""


class Inspection:
    """Reads missions for operators. Two flushes, not one script: what moves in between may look a moment apart."""

    def __init__(self, link: Link, fleet: Fleet, catalogue: Catalogue, settings: Settings) -> None:
        """`catalogue` tells how many tries a state has, `settings` how long a mission may be paused or parked."""
        self._link, self._fleet, self._catalogue, self._settings = link, fleet, catalogue, settings

    async def look(self, mission: MissionId) -> dict[str, Any]:
        """The document of ``GET /v1/missions/{task_id}``.

        Raises:
            Problem: 410, it has ended and is no longer kept.
            RedisAwayError: it cannot be read now.
        """
        shard, task_id = mission.shard, mission.text
        fields, result, log, inbox, time = await asyncio.gather(
            self._link.call("HGETALL", keys.mission(shard, task_id)),
            self._link.call("GET", keys.result(shard, task_id)),
            self._link.call("LRANGE", keys.log(shard, task_id), -HISTORY, -1),
            self._link.call("LRANGE", keys.inbox(shard, task_id), 0, MOST_ENTRIES - 1),
            self._link.call("TIME"),
        )
        raw = {name.decode(): value for name, value in zip(fields[::2], fields[1::2], strict=True)}
        if "type" not in raw:
            raise Problem("expired", "this mission has ended and is no longer kept", correlation_id=task_id)
        now = int(time[0]) * 1000 + int(time[1]) // 1000
        sent, kept = raw.pop("envelope", b""), raw.pop("document", b"")
        envelope, document, record = _json(sent), _json(kept), _WHOLE | readable(raw)
        around = await self._around(shard, task_id, record, now)
        course = {name: value for name, value in document.items() if name != "context"}
        history, ended = [_json(event) for event in log], _json(result) if result is not None else None
        told = standing(task_id, record, around, course, history, ended or {}, self._rules(record))
        return {
            **_told(task_id, record, around, course),
            "why": why(told),
            "course": {name: value for name, value in course.items() if name != "children"},
            "parent": record.get("parent", "").partition(" ")[0] or None,
            "children": await self._children(course),
            "context": document.get("context"),
            "document": document,
            "inbox": [_json(entry) for entry in inbox],
            "envelope": envelope,
            "envelope_base64": None if _is_envelope(sent) else base64.b64encode(sent).decode(),
            "trace_id": _trace_id(envelope),
            "history": history,
            "result": ended,
            "dead_letter": _dead_letter(record, around, error(log[-1] if log else None, result), undone(kept)),
        }

    async def _children(self, course: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Its children, with the present status of the first ones that live."""
        known = children(course)
        living = [one["task_id"] for one in known if one["status"] is None and one["spec"] is None][:MOST_ASKED]
        found = [mission for one in living if (mission := self._fleet.ids.read(one)) is not None]
        asked = [self._link.call("HGET", keys.mission(one.shard, one.text), "status") for one in found]
        told = zip(found, await asyncio.gather(*asked), strict=True)
        statuses = {mission.text: status.decode() for mission, status in told if status is not None}
        return [shown(one, statuses.get(one["task_id"])) for one in known]

    async def _around(self, shard: int, task_id: str, record: Record, now: int) -> Around:
        """What stands outside its record: lease, target, neighbours in line."""
        held, place = record.get("target", ""), record["place"]
        kind, line = f"{record['type']}@{record['version']}", _line(shard, record)
        workers, lease_end, holder, waiters, ahead, newer, known, inbox, dead, until, *rows = await asyncio.gather(
            self._link.call("ZCOUNT", keys.owners(shard), f"({now}", "+inf"),
            self._link.call("ZSCORE", keys.owners(shard), record.get("owner", "")),
            self._link.call("GET", keys.target(shard, held)),
            self._link.call("ZCARD", keys.waiters(shard, held)),
            self._link.call("ZRANK", line, task_id),
            self._link.call("ZCOUNT", *_newer(shard, record)),
            self._link.call("HGET", keys.parked_known(shard), kind),
            self._link.call("LRANGE", keys.inbox(shard, task_id), 0, MOST_ENTRIES - 1),
            self._link.call("ZSCORE", keys.dead_letters(shard), task_id),
            self._link.call("ZSCORE", keys.retire(shard), task_id),
            self._link.call("LLEN", keys.outbox(shard, task_id)),
            self._link.call("LRANGE", keys.dead_rows(shard, task_id), 0, -1),
            self._link.call("PUBSUB", "NUMSUB", keys.wake(shard, pool(record))),
        )
        return Around(
            now=now,
            workers=workers,
            lease_end=whole(lease_end.decode()) or None if lease_end is not None else None,
            holder=holder.decode() if holder is not None else None,
            holds=holder == task_id.encode(),
            waiters=waiters,
            ahead=ahead if place in {"lane", "waiters", "waiting"} else None,
            newer=newer,
            known_at=whole(known.decode()) if known is not None else None,
            entries=tuple(str(_json(entry).get("entry")) for entry in inbox),
            dead_since=whole(dead.decode()) if dead is not None else None,
            kept_until=whole(until.decode()) if until is not None else None,
            outbox=rows[0],
            dead_rows=tuple(_json(row) for row in rows[1]),
            served=rows[2][1] > 0,
        )

    def _rules(self, record: Record) -> Rules:
        entry = self._catalogue.find(record["type"], number(record, "version"))
        state = entry.row.states.get(record["state"], {}) if entry else {}
        limits = self._settings
        return Rules(
            tries=_tries(state),
            undo_tries=_tries(state.get("undo")),
            future=entry is None and self._catalogue.find(record["type"]) is not None,
            pause_limit=round(limits.pause_limit_s * 1000),
            park_limit=round(limits.park_limit_s * 1000),
            lease=round(limits.lease_s * 1000),
        )


def _tries(said: Any) -> int | None:
    """What the catalogue says of a handler, which another release may have written."""
    retry = said.get("retry") if isinstance(said, Mapping) else None
    tries = retry.get("tries") if isinstance(retry, Mapping) else None
    return tries if isinstance(tries, int) else None


def _line(shard: int, record: Record) -> str:
    """The line that it stands in."""
    if record["place"] == "waiters":
        return keys.waiters(shard, record.get("target", ""))
    if record["place"] == "waiting":
        return keys.permit_queue(shard, record.get("queued", "").partition(" ")[0])
    return keys.lane(shard, record["lane"])


def _newer(shard: int, record: Record) -> tuple[str, str, str]:
    """Where newer commands on its aspect are counted (P11)."""
    own = record.get("intent", "")
    return keys.intents(shard, record.get("latest", "")), f"({own if own.isascii() and own.isdecimal() else 0}", "+inf"


def _told(task_id: str, record: Record, around: Around, course: Mapping[str, Any]) -> dict[str, Any]:
    """The record as a document."""
    place, visits = record["place"], course.get("visits", {})
    hold = {"holder": around.holder, "waiters": around.waiters} if target(record) is not None else None
    lease = {"owner": record.get("owner"), "ends_at": instant(around.lease_end)} if place == "leased" else None
    return row(task_id, record) | {
        "place": place,
        "lane": record["lane"],
        "inherits": record["lane"].partition(":")[0] if record.get("base") else None,
        "order": number(record, "order"),
        "ahead": around.ahead,
        "attempt": course.get("attempt", 1),
        "visit": visits.get(record["state"], 1),
        "visits": visits,
        "transitions": course.get("transitions", 0),
        **{name: number(record, name) for name in ("deaths", "solo_deaths", "fence", "rev", "seq", "unread")},
        "run": number(record, "run", 1),
        "key_run": number(record, "key_run") or number(record, "run", 1),
        "permits": record.get("permits", "").split(),
        "latest": record.get("latest", "").partition(":")[2] or None,
        "outbox": {"rows": around.outbox, "dead": list(around.dead_rows)},
        "lease": lease,
        "hold": hold,
        "started_at": instant(ms(record, "started_at")),
        "ready_at": instant(ms(record, "ready_at")),
        "wake_at": instant(ms(record, "wake_at")) if place in {"waiting", "paused"} else None,
        "parked_at": instant(ms(record, "parked_at")) if place == "parked" else None,
        "paused_at": instant(ms(record, "paused_at")) if place == "paused" else None,
        "progress_at": instant(ms(record, "progress_at")),
    }


def _dead_letter(
    record: Record, around: Around, why: Mapping[str, Any], undone: Sequence[str]
) -> dict[str, Any] | None:
    """What replaying it needs; None: it is no dead letter."""
    if around.dead_since is None or record["place"] != "ended":
        return None
    return {
        "failed_in": record.get("failed_in"),
        "code": why.get("code"),
        "message": why.get("message"),
        "ended_at": instant(around.dead_since),
        "kept_until": instant(around.kept_until),
        "undone": undone,
        "outbox": around.outbox,
    }


def _is_envelope(raw: bytes) -> bool:
    try:
        Envelope.model_validate_json(raw)
    except ValidationError:
        return False
    return True


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
