"""Carries out what commits cause elsewhere (P5): children begin, are told to end, and tell parents how they ended.

Rows of one mission go in order, the next one only after the last was removed; rows of several go side by side. Every
call is one that may come twice: to die, or to be frozen, between any two of them costs time and does nothing twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from backend_loop import document
from backend_loop.children import brief
from shared import keys
from shared.errors import RedisAwayError
from shared.fleet import Fleet
from shared.logs import get
from shared.loop import After, Answer, Idle, Loop
from shared.redis import Link, ReplyError
from shared.settings import Settings
from shared.status import Reason

log = get(__name__)

OUTBOXES: Final = 20
"""Missions whose rows one iteration carries side by side."""

LATER_S: Final = 1.0
"""When a row that cannot be carried out now is looked at again."""

LARGE: Final = 16_384
"""Bytes of a child's result, or error, that its parent is told; a larger one is read where any result is."""


class Verdict(NamedTuple):
    """What became of a row: `done`, `later`, or `dead`, and then why."""

    word: str
    why: str = ""


DONE, LATER = Verdict("done"), Verdict("later")
FINE: Final = frozenset({"OK", "DUPLICATE", "GONE", "ENDED"})
"""Answers after which a row has done what it was for."""


class Carrier:
    """The deliverer of one shard's outboxes.

    Args:
        link: to Redis, that of all shards.
        shard: whose outboxes.
        fleet: by whose ids it finds the shard of a mission.
        settings: of the process.
    """

    def __init__(self, link: Link, shard: int, fleet: Fleet, settings: Settings) -> None:
        """Nothing runs yet: start its `loop`."""
        self._link, self._shard, self._fleet = link, shard, fleet
        self._prefix = keys.prefix(shard)
        self._hold_ms = round(settings.lease_s * 1000)
        self._retention_ms = round(settings.retention_s * 1000)
        self._poll_s = settings.poll_s
        self._kinds: Mapping[str, Callable[[str, str, dict[str, Any]], Awaitable[Verdict]]] = {
            "accept": self._accept,
            "end": self._end,
            "cancel": self._cancel,
            "cancel_all": self._cancel_all,
        }
        self.loop = Loop(
            f"carry-s{shard}",
            self._once,
            trigger="woken",
            interval_s=settings.poll_s,
            backoff_cap_s=settings.poll_s,
            describe="carries out outbox rows: children begin, end, and tell their parents",
            output="missions, inbox entries",
            on_failure="the row stays where it is, and is carried by whoever comes next",
            scale="sharded",
        )

    async def _once(self) -> Answer:
        await self._link.up()
        due_ms, found = await self._link.run("carry", self._prefix, self._hold_ms, OUTBOXES)
        if not found:
            return Idle() if due_ms < 0 else After(min(due_ms / 1000, self._poll_s))
        rows = [self.carry(task_id.decode(errors="replace"), row, origin.decode()) for task_id, row, origin in found]
        for error in await asyncio.gather(*rows, return_exceptions=True):
            if isinstance(error, RedisAwayError):
                raise error
            if isinstance(error, BaseException):
                log.error("an outbox was left to the next round", shard=self._shard, exc_info=error)
        return After(0)

    async def carry(self, task_id: str, row: bytes, origin: str) -> None:
        """Carry out a mission's rows, from this one on.

        Args:
            task_id: whose they are.
            row: the oldest.
            origin: the age of its root's intent.

        Raises:
            RedisAwayError: a row may have been carried out, or not; it stays.
        """
        while row:
            verdict, kept = await self._judge(task_id, row, origin), ""
            if verdict.word == "dead":
                log.error("outbox row refused for good", task_id=task_id, why=verdict.why)
                kept = to_json({"why": verdict.why, "row": row.decode(errors="replace")}).decode()
            ms = round(LATER_S * 1000) if verdict is LATER else self._hold_ms
            row = await self._link.run("carried", self._prefix, task_id, row, verdict.word, ms, kept)

    async def _judge(self, task_id: str, raw: bytes, origin: str) -> Verdict:
        try:
            row = from_json(raw)
            kind = row["row"]
        except (ValueError, KeyError, TypeError) as error:
            return Verdict("dead", f"no row: {error!r}")
        if (carry := self._kinds.get(kind)) is None:
            log.often("outbox row of a kind that is not known here", task_id=task_id, row=kind)
            return LATER
        try:
            return await carry(task_id, origin, row)
        except (ReplyError, RedisAwayError) as error:
            if not self._link.connected:
                raise
            # Redis is full, or a key is damaged: nothing that the row is to blame for
            log.often("outbox row put off", task_id=task_id, row=kind, error=str(error))
            return LATER
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return Verdict("dead", f"no {kind} row: {error!r}")

    async def _accept(self, task_id: str, origin: str, row: dict[str, Any]) -> Verdict:
        child = row["child"]
        item = (
            *(child, row["type"], row["version"], row["lane"], row["held"]),
            f"{row['root']} {task_id} {row['run']} {origin}",
            *(row["deadline"], row["state"], "", 0, row["latest"], row["used_until"], to_json(row["envelope"])),
        )
        answer = (await self._link.run("accept", self._prefix_of(child), *item))[1]
        word = _word(answer)
        if word in FINE:
            return DONE
        why = f"accept answered {word}" + (
            f": {answer[1].decode(errors='replace')}" if isinstance(answer, list) else ""
        )
        told = await self._never(task_id, row, why)
        return Verdict("dead", why) if told is DONE else told

    async def _never(self, task_id: str, row: Mapping[str, Any], why: str) -> Verdict:
        """Tell a parent that a child of it will never be: nobody else would."""
        error = {"code": "permanent", "message": f"it could not be begun: {why}"}
        entry = {"task_id": row["child"], "type": row["type"], "status": "FAILED", "error": error}
        return await self._tell(task_id, row["run"], f"child:{row['child']}", entry)

    async def _end(self, task_id: str, _origin: str, row: dict[str, Any]) -> Verdict:
        entry = told_of(task_id, row["document"])
        return await self._tell(row["parent"], row["run"], f"child:{task_id}:{row['child_run']}", entry)

    async def _tell(self, parent: str, run: int, entry_id: str, entry: Mapping[str, Any]) -> Verdict:
        text = to_json({"entry": "child", "run": run, **entry})
        return await self._control(parent, "child", entry_id, text, "", run)

    async def _cancel(self, task_id: str, _origin: str, row: dict[str, Any]) -> Verdict:
        return await self._end_child(task_id, row["child"], Reason(row["reason"]))

    async def _cancel_all(self, task_id: str, _origin: str, _row: dict[str, Any]) -> Verdict:
        """No worker has ended it, so none has said who lives: its document does."""
        text, state = await self._link.call("HMGET", keys.mission(self._shard, task_id), "document", "state")
        children = document.read(text or b"", (state or b"").decode()).course.children
        for child in children:
            if child.live and (verdict := await self._end_child(task_id, child.task_id, Reason.REQUESTED)) is not DONE:
                return verdict
        return DONE

    async def _end_child(self, task_id: str, child: str, reason: Reason) -> Verdict:
        entry = {"entry": "cancel", "reason": reason, "by": "parent", "note": f"{task_id} has ended"}
        data = to_json({"reason": reason, "by": "parent"})
        return await self._control(child, "cancel", f"parent:{task_id}", to_json(entry), reason, 1, data)

    async def _control(  # noqa: PLR0913, PLR0917  those of the script
        self, task_id: str, verb: str, entry_id: str, entry: bytes, reason: str, run: int, data: bytes = b"null"
    ) -> Verdict:
        args = (task_id, verb, entry_id, entry, reason, self._retention_ms, data, run)
        word = (await self._link.run("control", self._prefix_of(task_id), *args))[0].decode()
        if word in FINE:
            return DONE
        return LATER if word == "FULL" else Verdict("dead", f"{verb} answered {word}")

    def _prefix_of(self, task_id: str) -> str:
        found = self._fleet.ids.read(task_id)
        if found is None or found.shard >= self._fleet.shards:
            raise ValueError(f"{task_id!r} is no mission of this fleet")
        return keys.prefix(found.shard)


def told_of(task_id: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """What the parent of a mission that has come to its end is told, out of its result document."""
    entry = {"task_id": task_id, **{name: document[name] for name in ("type", "status", "error", "reason")}}
    if (error := entry["error"]) is not None and len(to_json(error)) > LARGE:
        entry["error"] = brief(error)
    if (fresh := document.get("freshness")) is not None:
        entry["freshness"] = fresh
    if (size := len(to_json(document["result"]))) <= LARGE:
        entry |= {"result": document["result"], "size": size}
    return entry


def _word(answer: Any) -> str:
    return str((answer[0] if isinstance(answer, list) else answer).decode())
