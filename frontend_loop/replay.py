"""Dead letters run again, or are given up (P22)."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from frontend_loop.bodies import Replayed, ReplayedAll
from frontend_loop.control import OPERATOR, By
from frontend_loop.dead_letters import DeadLetters, undoing, undone
from frontend_loop.kinds import Found, Kinds
from frontend_loop.operating import by
from frontend_loop.reading import invalid, read_payload
from frontend_loop.record import LATEST, ms, priority, target
from shared import keys
from shared.clock import rfc3339
from shared.envelope import VERSION, Envelope
from shared.errors import Problem, RedisAwayError, unavailable
from shared.fleet import Fleet
from shared.ids import MissionId
from shared.logs import get
from shared.redis import Link
from shared.settings import Settings

log = get(__name__)

AT_A_TIME: Final = 20
"""Replays of one bulk that are under way at once."""

ROWS_AGAIN_S: Final = 1.0

FIELDS: Final = ("failed_in", "rev", "root", "lane", "base", "target", "latest", "created_at", "deadline", "run")


@dataclass(frozen=True, slots=True)
class _Dead:
    """A mission that is to run again, as it lies there."""

    mission: MissionId
    found: Found
    envelope: bytes
    undone: list[str]
    """What bars it from going on in the failed state."""

    @property
    def correlation_id(self) -> str:
        """Of its root."""
        return self.found.record.get("root") or self.mission.text


class Replays:
    """Replays and discards.

    Each raises Problem: 409 it is no dead letter, or not yet ready to be replayed; 410 it is gone; 422 what is asked
    for does not fit it; 503.
    """

    def __init__(self, link: Link, kinds: Kinds, letters: DeadLetters, fleet: Fleet, settings: Settings) -> None:
        """Ready at once."""
        self._link, self._kinds, self._letters, self._fleet, self._settings = link, kinds, letters, fleet, settings

    async def replay(self, mission: MissionId, wanted: Replayed) -> dict[str, Any]:
        """Run it again: ``{correlation_id task_id status run from key}``."""
        dead = await self._dead(mission)
        row = dead.found.entry.row if dead.found.entry is not None else None
        from_ = wanted.from_ or ("start" if dead.undone else "failed_state")
        if from_ == "failed_state" and dead.undone:
            detail = f"{', '.join(dead.undone)} of it was undone: replay it from the start"
            raise Problem("undone", detail, correlation_id=dead.correlation_id)
        envelope = b"" if wanted.payload is None else _corrected(dead, wanted.payload)
        key = "new" if envelope else wanted.key
        deadline_s = wanted.deadline_s or (row and row.deadline_s) or self._settings.deadline_s
        run = await self._run(dead, wanted, (from_, key, round(deadline_s * 1000), _initial(dead, from_), envelope))
        now = await self._kinds.find(mission)
        return {
            "correlation_id": dead.correlation_id,
            "task_id": mission.text,
            "status": now.record["status"],
            "run": run,
            "from": from_,
            "key": key,
        }

    async def replay_all(self, wanted: ReplayedAll) -> dict[str, Any]:
        """Run a page of those that fit again: ``{replayed: […], refused: [problem and task_id, …], cursor}``."""
        page = await self._letters.page(wanted.filter, wanted.cursor, wanted.limit)
        gate = asyncio.Semaphore(AT_A_TIME)

        async def one(task_id: str) -> dict[str, Any] | Problem:
            mission = self._fleet.ids.read(task_id)
            assert mission is not None  # noqa: S101  the page holds genuine ones only
            async with gate:
                try:
                    return await self.replay(mission, wanted)
                except RedisAwayError as error:
                    return unavailable(str(error))
                except Problem as problem:
                    return problem

        ids = [row["task_id"] for row in page.rows]
        answers = list(zip(ids, await asyncio.gather(*(one(task_id) for task_id in ids)), strict=True))
        return {
            "replayed": [answer for _, answer in answers if not isinstance(answer, Problem)],
            "refused": [
                {"task_id": task_id} | answer.document() for task_id, answer in answers if isinstance(answer, Problem)
            ],
            "cursor": page.cursor,
        }

    async def discard(self, mission: MissionId, asks: By) -> dict[str, Any]:
        """Give it up: removed with all that is known of it, as soon as the next `retire` comes by."""
        try:
            answer, root = await asyncio.gather(
                self._link.run("discard", keys.prefix(mission.shard), mission.text),
                self._link.call("HGET", keys.mission(mission.shard, mission.text), "root"),
            )
        except RedisAwayError as error:
            raise unavailable(f"it may not have been discarded: {error}") from error
        _allowed(answer.decode(), mission.text, "discarded")
        ids = {"correlation_id": root.decode() if root else mission.text, "task_id": mission.text}
        log.info("discard", **ids, **{"by": OPERATOR, **asks.told()})
        return ids | {"discarded": True}

    async def _dead(self, mission: MissionId) -> _Dead:
        found, (envelope, document) = await asyncio.gather(
            self._kinds.find(mission, *FIELDS),
            self._link.call("HMGET", keys.mission(mission.shard, mission.text), "envelope", "document"),
        )
        if found.record["place"] != "ended":
            _allowed("RUNNING", mission.text, "replayed")
        return _Dead(mission, found, envelope or b"", [] if undoing(document) else undone(document))

    async def _run(self, dead: _Dead, wanted: Replayed, order: tuple[str, str, int, str, bytes]) -> int:
        mission, asks = dead.mission, {"by": OPERATOR, **by(wanted).told()}
        from_, key = order[:2]
        note = to_json({"event": "replayed", "from": from_, "key": key, **asks})
        try:
            answer, run = await self._link.run("replay", keys.prefix(mission.shard), mission.text, *order, note)
        except RedisAwayError as error:
            raise unavailable(f"it may not be replayed: {error}") from error
        _allowed(answer.decode(), mission.text, "replayed")
        ids = {"correlation_id": dead.correlation_id, "task_id": mission.text}
        log.info("replay", **ids, run=run, key=key, corrected=bool(order[4]), **{"from": from_}, **asks)
        return int(run)


def _allowed(answer: str, task_id: str, done: str) -> None:
    """Raise what an answer of the scripts means, unless it is OK."""
    match answer:
        case "GONE":
            raise Problem("expired", "this mission has ended and is no longer kept", correlation_id=task_id)
        case "RUNNING":
            detail = f"the mission is under way, so it cannot be {done}: perhaps somebody has replayed it already"
            raise Problem("not_ended", detail, correlation_id=task_id)
        case "ENDED":
            detail = f"only what failed for good is kept to be {done}; see how it ended at /v1/missions/{task_id}"
            raise Problem("no_dead_letter", detail, correlation_id=task_id)
        case "ROWS":
            detail = "what it has caused elsewhere is not carried out yet: replay it once that is done"
            raise Problem("outbox_left", detail, retryable=True, retry_after=ROWS_AGAIN_S, correlation_id=task_id)


def _initial(dead: _Dead, from_: str) -> str:
    """The state that its type begins in."""
    known = dead.found.record
    if dead.found.entry is not None:
        return dead.found.entry.row.initial
    if known.get("failed_in") and (from_ == "failed_state" or known.get("rev", "0") == "0"):
        return known["failed_in"]  # from the start, it never left that
    raise _unknown(dead.found)


def _corrected(dead: _Dead, payload: dict[str, Any]) -> bytes:
    """The envelope with another payload, which is checked like that of a fresh command."""
    entry, known = dead.found.entry, dead.found.record
    if entry is None:
        raise _unknown(dead.found)
    read_payload(entry.validator, payload)
    envelope = _read(dead.envelope) or _anew(dead)
    _same_target(dead, envelope, payload)
    return to_json(envelope | {"payload": payload, "payload_version": int(known["version"])})


def _same_target(dead: _Dead, envelope: dict[str, Any], payload: dict[str, Any]) -> None:
    """A replay is the same mission: what it holds, and what newer ones replace it for, were fixed when it came in."""
    assert dead.found.entry is not None  # noqa: S101  looked at by the caller
    row, known = dead.found.entry.row, dead.found.record
    was = envelope["payload"]
    if row.target is not None and payload.get(row.target) not in (target(known), was.get(row.target)):
        detail = f"a replay keeps its target, {target(known)}: send a new command for another one, and discard this"
        raise invalid([{"pointer": f"/payload/{row.target}", "detail": detail}])
    if (latest := known.get("latest")) and row.latest_of(known.get("target", ""), payload) != latest:
        detail = f"a replay keeps what of its target it changes, {latest}: send a new command, and discard this"
        raise invalid([{"pointer": "/payload", "detail": detail}])


def _read(raw: bytes) -> dict[str, Any] | None:
    try:
        Envelope.model_validate_json(raw)
        content: dict[str, Any] = from_json(raw)
    except (ValidationError, ValueError):
        return None
    return content


def _anew(dead: _Dead) -> dict[str, Any]:
    """An envelope from the record, for one that cannot be read."""
    known = dead.found.record
    return {
        "v": VERSION,
        "task_id": dead.mission.text,
        "correlation_id": dead.correlation_id,
        "type": known["type"],
        "payload": {},
        "target": target(known),
        "priority": priority(known),
        "created_at": rfc3339(ms(known, "created_at") or 0),
        "deadline": rfc3339(ms(known, "deadline") or LATEST),
        "tenant": known.get("lane", "").split(":", 2)[-1] or "default",
        "source": "http",
    }


def _unknown(found: Found) -> Problem:
    detail = f"no live worker knows {found.kind}: start one that does, or replay as it is from the state it failed in"
    return Problem("unknown_type", detail)
