"""Missions that failed and are kept to be looked at, replayed or discarded: pages, the newest first over all shards.

A page goes on where the one before ended, by time and id, so what is replayed meanwhile, or comes anew, disturbs none.
"""

import asyncio
import base64
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NamedTuple

from pydantic import Field, FiniteFloat, TypeAdapter
from pydantic_core import from_json, to_json

from frontend_loop.bodies import MOST, Fitting
from frontend_loop.listing import row
from frontend_loop.reading import invalid
from frontend_loop.record import Record, instant, number, readable, whole
from shared import keys
from shared.fleet import Fleet
from shared.redis import Link, ReplyError

LOOKED_AT: Final = 2_000
"""Dead letters that one call reads at most."""

FIELDS: Final = (
    *("type", "version", "status", "state", "place", "waiting_for", "target", "lane", "base", "root"),
    *("created_at", "deadline", "run", "failed_in"),
)


class Spot(NamedTuple):
    """A dead letter among all: when it ended, epoch milliseconds, and its id."""

    ended: float
    task_id: str


_CURSOR: Final = TypeAdapter(tuple[FiniteFloat, Annotated[str, Field(max_length=40)]])


@dataclass(slots=True)
class _Shard:
    """The dead letters of one shard, the newest first, as far as they were fetched."""

    number: int
    ahead: list[Spot] = field(default_factory=list)
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Letters:
    """A page: rows, and the cursor of the next one."""

    rows: list[dict[str, Any]]
    cursor: str | None


class DeadLetters:
    """Walks over them."""

    def __init__(self, link: Link, fleet: Fleet) -> None:
        """Ready at once."""
        self._link, self._fleet = link, fleet

    async def page(self, fitting: Fitting, cursor: str | None, limit: int) -> Letters:
        """Those that fit, `limit` at most.

        Raises:
            Problem: 422, the cursor is not one of ours.
            RedisAwayError: it cannot be read now.
        """
        after = _spot(cursor) if cursor is not None else None
        shards = [_Shard(number) for number in range(self._fleet.shards)]
        wanted, rows, looked = _wanted(fitting), list[dict[str, Any]](), 0
        while looked < LOOKED_AT:
            spots = await self._next(shards, after)
            looked += len(spots)
            for spot, found in zip(spots, await self._rows(spots), strict=True):
                if found is not None and wanted(found):
                    if len(rows) == limit:
                        return Letters(rows, _text(after))
                    rows.append(found)
                after = spot
            if not spots:
                return Letters(rows, None)
        return Letters(rows, _text(after))

    async def _next(self, shards: list[_Shard], after: Spot | None) -> list[Spot]:
        """The next of all shards, in order; none: there are no more."""
        await asyncio.gather(*(self._fetch(shard, after) for shard in shards if not shard.ahead and not shard.whole))
        spots: list[Spot] = []
        while len(spots) < MOST and (left := [shard for shard in shards if shard.ahead]):
            best = max(left, key=lambda shard: shard.ahead[-1])
            spots.append(best.ahead.pop())
            if not best.ahead and not best.whole:
                break  # what follows in that shard may come before what the others have
        return spots

    async def _fetch(self, shard: _Shard, after: Spot | None) -> None:
        """A few more of a shard."""
        start, offset = "+inf" if after is None else repr(after.ended), 0
        while not shard.ahead and not shard.whole:
            part = ("BYSCORE", "REV", "LIMIT", offset, MOST, "WITHSCORES")
            found = await self._link.call("ZRANGE", keys.dead_letters(shard.number), start, "-inf", *part)
            spots = [
                Spot(float(ended), task_id.decode(errors="replace"))
                for task_id, ended in zip(found[::2], found[1::2], strict=True)
            ]
            offset += len(spots)  # more than these may have ended in one and the same millisecond
            shard.whole = len(spots) < MOST
            # to be taken from the end, and without those that were told already
            shard.ahead = [spot for spot in reversed(spots) if self._ours(spot) and (after is None or spot < after)]

    def _ours(self, spot: Spot) -> bool:
        return math.isfinite(spot.ended) and self._fleet.ids.read(spot.task_id) is not None

    async def _rows(self, spots: list[Spot]) -> list[dict[str, Any] | None]:
        """What is told of each; None: it is a dead letter no more."""
        return await asyncio.gather(*(self._row(spot) for spot in spots))

    async def _row(self, spot: Spot) -> dict[str, Any] | None:
        mission = self._fleet.ids.read(spot.task_id)
        if mission is None or mission.shard >= self._fleet.shards:
            return None
        try:
            values, last, result, until = await asyncio.gather(
                self._link.call("HMGET", keys.mission(mission.shard, mission.text), *FIELDS),
                self._link.call("LINDEX", keys.log(mission.shard, mission.text), -1),
                self._link.call("GET", keys.result(mission.shard, mission.text)),
                self._link.call("ZSCORE", keys.retire(mission.shard), mission.text),
            )
        except ReplyError:
            return None  # a key that is not what its name says: the others are told all the same
        known = readable(dict(zip(FIELDS, values, strict=True)))
        if "type" not in known or known.get("place") != "ended":
            return None
        return letter(mission.text, known, spot.ended, until, error(last, result))


def letter(task_id: str, known: Record, ended: float, until: bytes | None, error: dict[str, Any]) -> dict[str, Any]:
    """What a list says of a dead letter: as of any mission, and how it failed."""
    return row(task_id, known) | {
        "failed_in": known.get("failed_in"),
        "code": error.get("code"),
        "message": error.get("message"),
        "run": number(known, "run", 1),
        "ended_at": instant(_ms(ended)),
        "kept_until": instant(_ms(float(until))) if until is not None else None,
    }


def error(last: bytes | None, result: bytes | None) -> dict[str, Any]:
    """Code and message of its failure: from the result while that is kept, then from the last event of its log."""
    told = (_object(result) or {}).get("error")
    if isinstance(told, dict):
        return {"code": told.get("code"), "message": told.get("message")}
    data = (_object(last) or {}).get("data")
    data = data if isinstance(data, dict) else {}
    return {"code": data.get("code"), "message": data.get("error")}


def undone(document: bytes | None) -> list[str]:
    """The states that were undone, from the record's document; where that cannot be read, nobody knows of any."""
    done = (_object(document) or {}).get("undone")
    return [str(one[0]) for one in done if isinstance(one, list) and one] if isinstance(done, list) else []


def undoing(document: bytes | None) -> bool:
    """Whether it was given up amid its undos: from the failed state it goes on undoing."""
    return (_object(document) or {}).get("ending") is not None


def _object(raw: bytes | None) -> dict[str, Any] | None:
    try:
        value = from_json(raw or b"null")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _ms(score: float) -> int:
    return whole(repr(score))


def _wanted(fitting: Fitting) -> Callable[[dict[str, Any]], bool]:
    text = (fitting.q or "").casefold()
    searched = ("task_id", "correlation_id", "type", "failed_in", "target", "code", "message")

    def wanted(row: dict[str, Any]) -> bool:
        return (
            (fitting.type is None or row["type"] == fitting.type)
            and (fitting.code is None or row["code"] == fitting.code)
            and (not text or any(text in str(row[name] or "").casefold() for name in searched))
        )

    return wanted


def _text(spot: Spot | None) -> str | None:
    """As the opaque cursor of the contract."""
    return None if spot is None else base64.urlsafe_b64encode(to_json(spot)).decode().rstrip("=")


def _spot(cursor: str) -> Spot:
    try:
        return Spot(*_CURSOR.validate_json(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))))
    except ValueError:
        detail = "not a cursor of this list: send the one of the page before, or none to start anew"
        raise invalid([{"pointer": "/cursor", "detail": detail}]) from None
