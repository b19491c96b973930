"""Pages of missions. There is no index of all of them: a page is a bounded walk over the keys, shard after shard.

What stands in Redis during the whole walk is found; what comes or goes meanwhile may be missed or come twice.
"""

import asyncio
import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, TypeAdapter
from pydantic_core import to_json

from frontend_loop import progress
from frontend_loop.reading import invalid
from frontend_loop.record import Record, instant, ms, number, priority, readable, target
from frontend_loop.results import waiting_for
from shared import keys
from shared.fleet import Fleet
from shared.redis import Link, ReplyError
from shared.status import Status

MOST: Final = 200
"""Rows of a page."""

LOOKED_AT: Final = 2_000
"""Records that one call reads at most, and about a fifth of the keys that it walks over."""

STEPS: Final = 50
"""SCAN calls of one call at most: a shard may hold many keys that are no missions."""

FIELDS: Final = (
    *("type", "version", "status", "state", "place", "waiting_for"),
    *("target", "lane", "base", "root", "created_at", "deadline", "progress"),
)


class Filters(BaseModel):
    """What to list. All that is given must hold; a name that is none of these is refused, since it would list all."""

    model_config = ConfigDict(extra="forbid")

    status: list[Status] = Field([], description="one of these; may be repeated")
    type: str | None = Field(None, description="mission type, exactly")
    state: str | None = Field(None, description="state of the mission's own machine, exactly")
    target: str | None = Field(None, description="target, exactly")
    correlation_id: str | None = Field(None, description="the root and all its children")
    q: str | None = Field(None, max_length=200, description="text within an id, type, status, state or target")
    cursor: str | None = Field(None, max_length=65_536, description="where the page before this one ended")
    limit: int = Field(50, ge=1, le=MOST, description="rows at most; a page may have fewer, even none, and a cursor")


_CURSOR: Final = TypeAdapter(tuple[NonNegativeInt, Annotated[int, Field(ge=0, lt=2**64)], list[str]])


@dataclass(slots=True)
class Walk:
    """How far a walk is: `ids` were found already and come first, then the keys of `shard` from `scan` on."""

    shard: int = 0
    scan: int = 0
    ids: list[str] = field(default_factory=list)

    def text(self) -> str:
        """As the opaque cursor of the contract."""
        return base64.urlsafe_b64encode(to_json([self.shard, self.scan, self.ids])).decode().rstrip("=")


class Listing:
    """Walks over the missions."""

    def __init__(self, link: Link, fleet: Fleet) -> None:
        """Ready at once."""
        self._link, self._fleet = link, fleet

    async def page(self, filters: Filters) -> dict[str, Any]:
        """``{"missions": [row, …], "cursor": text or null}``, the youngest of the page first.

        Raises:
            Problem: 422, the cursor is not one of ours.
            RedisAwayError: it cannot be read now.
        """
        root = self._genuine(filters.correlation_id)
        if filters.correlation_id is not None and root is None:
            return {"missions": [], "cursor": None}
        # the one row that most who name a correlation_id are after comes first, and is not looked for again
        walk = self._walk(filters.cursor) if filters.cursor is not None else Walk(ids=[root] if root else [])
        wanted = _wanted(filters, root)
        rows: list[dict[str, Any]] = []
        looked = steps = 0
        while len(rows) < filters.limit and looked < LOOKED_AT:
            if walk.ids:
                taken, walk.ids = walk.ids[:MOST], walk.ids[MOST:]
                looked += len(taken)
                found = [row for row in await self._rows(taken) if wanted(row)]
                room = filters.limit - len(rows)
                rows += found[:room]
                walk.ids[:0] = [row["task_id"] for row in found[room:]]
            elif walk.shard < self._fleet.shards and steps < STEPS:
                steps += 1
                await self._step(walk, min(400, 4 * filters.limit + 40), root)
            else:
                break
        rows.sort(key=lambda row: row["created_at"] or "", reverse=True)
        done = not walk.ids and walk.shard == self._fleet.shards
        return {"missions": rows, "cursor": None if done else walk.text()}

    def _genuine(self, text: str | None) -> str | None:
        found = self._fleet.ids.read(text or "")
        return None if found is None or found.shard >= self._fleet.shards else found.text

    def _walk(self, cursor: str) -> Walk:
        try:
            shard, scan, ids = _CURSOR.validate_json(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        except ValueError:
            shard, scan, ids = 0, 0, [""]
        genuine = [task_id for text in ids if (task_id := self._genuine(text)) is not None]
        if len(genuine) < len(ids) or shard > self._fleet.shards:
            detail = "not a cursor of this list: send the one of the page before, or none to start anew"
            raise invalid([{"pointer": "/cursor", "detail": detail}])
        return Walk(shard, scan, genuine)

    async def _step(self, walk: Walk, count: int, root: str | None) -> None:
        """Walk over the next few keys."""
        start = keys.mission(walk.shard, "")
        scan, found = await self._link.call("SCAN", walk.scan, "MATCH", start + "*", "COUNT", count)
        walk.scan = int(scan)
        ids = (key.decode()[len(start) :] for key in found)
        walk.ids = [task_id for task_id in dict.fromkeys(ids) if task_id != root]
        if walk.scan == 0:
            walk.shard += 1

    async def _rows(self, ids: Iterable[str]) -> list[dict[str, Any]]:
        """The rows of those that are there still."""
        missions = [mission for text in ids if (mission := self._fleet.ids.read(text)) is not None]
        reads = [self._link.call("HMGET", keys.mission(one.shard, one.text), *FIELDS) for one in missions]
        answers = await asyncio.gather(*reads, return_exceptions=True)
        rows = []
        for one, values in zip(missions, answers, strict=True):
            if isinstance(values, ReplyError):
                continue  # a key that is no record of ours, whatever its name: the others are told all the same
            if isinstance(values, BaseException):
                raise values
            found = readable(dict(zip(FIELDS, values, strict=True)))
            if "type" in found:
                rows.append(row(one.text, found))
        return rows


def row(task_id: str, record: Record) -> dict[str, Any]:
    """What a list says of a mission, from its record."""
    return {
        "task_id": task_id,
        "correlation_id": record.get("root") or task_id,
        "type": record["type"],
        "version": number(record, "version"),
        "status": record.get("status", ""),
        "state": record.get("state", ""),
        "waiting_for": waiting_for(record),
        "target": target(record),
        "priority": priority(record),
        "created_at": instant(ms(record, "created_at")),
        "deadline": instant(ms(record, "deadline")),
        "progress": progress.document(record.get("progress")),
    }


def _wanted(filters: Filters, root: str | None) -> Callable[[dict[str, Any]], bool]:
    exact = {"type": filters.type, "state": filters.state, "target": filters.target, "correlation_id": root}
    exact = {name: value for name, value in exact.items() if value is not None}
    text = (filters.q or "").casefold()
    searched = ("task_id", "correlation_id", "type", "status", "state", "target")

    def wanted(row: dict[str, Any]) -> bool:
        return (
            (not filters.status or row["status"] in filters.status)
            and all(row[name] == value for name, value in exact.items())
            and (not text or any(text in str(row[name] or "").casefold() for name in searched))
        )

    return wanted
