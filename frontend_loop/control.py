"""What clients and operators want of a mission under way: entries for its lease holder, or done at once (P3, P23)."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from pydantic_core import to_json

from shared import keys
from shared.errors import Problem, RedisAwayError, unavailable
from shared.ids import MissionId
from shared.logs import get
from shared.redis import Link
from shared.settings import Settings
from shared.status import Priority, Reason, Status

log = get(__name__)

CANCEL_ENTRY: Final = "cancel"
"""Id of the entry: one cancel of a mission is like another, so a double changes nothing."""

ROOM_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class By:
    """Who asks, and why: told to the mission's log and to ours."""

    by: str | None = None
    note: str | None = None

    def told(self) -> dict[str, str]:
        """What of it was said."""
        return {name: text for name, text in (("by", self.by), ("note", self.note)) if text is not None}


NOBODY: Final = By()
OPERATOR: Final = "operator"
"""Who it was, where an operator's verb does not say."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What was asked for is taken; where the mission is now."""

    task_id: str
    correlation_id: str
    status: str
    place: str
    duplicate: bool = False

    @property
    def stopped(self) -> bool:
        """No handler of it runs any more."""
        return self.place != "leased"

    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        return {
            "correlation_id": self.correlation_id,
            "task_id": self.task_id,
            "status": self.status,
            "stopped": self.stopped,
        }


class Control:
    """Says it to missions. All verbs but an event may be repeated without harm.

    Each raises Problem: 409 the mission has ended, 410 it is gone, 429 too much of it is unread, 503.
    """

    def __init__(self, link: Link, settings: Settings) -> None:
        """Ready at once."""
        self._link, self._retention_ms = link, round(settings.retention_s * 1000)

    async def cancel(self, mission: MissionId, by: By = NOBODY, reason: Reason = Reason.REQUESTED) -> Taken:
        """Cancel: at once if it never began, else as soon as its handler can be cut."""
        entry = {"entry": "cancel", "reason": reason, **by.told()}
        note = to_json({"reason": reason, **by.told()})
        answer, taken = await self._run(mission, "cancel", CANCEL_ENTRY, entry, reason=reason, note=note)
        if answer == "ENDED" and taken.status != Status.CANCELLED:
            raise _ended(taken, "nothing is left to cancel")
        return _audited("cancel", taken, by)

    async def pause(self, mission: MissionId, by: By = NOBODY) -> Taken:
        """Pause: at once if no handler runs, else at its next commit."""
        return await self._standing(mission, "pause", "paused", by)

    async def resume(self, mission: MissionId, by: By = NOBODY) -> Taken:
        """Let it go on; nothing happens to one that is not paused."""
        return await self._standing(mission, "resume", "resumed", by)

    async def happen(self, mission: MissionId, event: str, data: Mapping[str, Any], event_id: str | None) -> Taken:
        """Tell an outside event; early ones are remembered, and of those with the same id only the first counts."""
        # in a name space of its own: no client may stand in for an entry of ours
        entry_id = f"event:{event_id}" if event_id is not None else _fresh("event")
        entry = {"entry": "event", "event": event, "data": data}
        return await self._post(mission, "event", entry_id, entry, happened=event, event_id=event_id)

    async def skip(self, mission: MissionId, state: str, by: By) -> Taken:
        """Skip this state, if the mission is in it then, and it is optional."""
        entry = {"entry": "skip", "state": state, "by": by.by or OPERATOR, "note": by.note}
        return await self._post(mission, "skip", _fresh("skip"), entry, by, state=state)

    async def complete(self, mission: MissionId, result: Mapping[str, Any], by: By) -> Taken:
        """End it SUCCEEDED with this result: it was done by hand."""
        entry = {"entry": "complete", "result": result, "by": by.by or OPERATOR, "note": by.note}
        return await self._post(mission, "complete", _fresh("complete"), entry, by)

    async def prioritize(self, mission: MissionId, now: str, to: Priority, by: By) -> Taken:
        """Give it another lane, or another place in line; `now` is the priority that it had until now."""
        said = {"by": by.by or OPERATOR, **({"note": by.note} if by.note is not None else {})}
        note = to_json({"event": "priority", "from": now, "to": to, **said})
        answer, taken = await self._script(mission, "prioritize", mission.text, to, note)
        if answer == "ENDED":
            raise _ended(taken, "it is in no lane any more")
        return _audited("priority", taken, by, to=to, **{"from": now})

    async def _standing(self, mission: MissionId, verb: str, event: str, by: By) -> Taken:
        """A verb that says where it is to stand: asked again it is another entry, and the last one holds."""
        said = {"by": by.by or OPERATOR, **({"note": by.note} if by.note is not None else {})}
        note = to_json({"event": event, **said})
        answer, taken = await self._run(mission, verb, _fresh(verb), {"entry": verb, **said}, note=note)
        _accepted(answer, taken, verb)
        return _audited(verb, taken, by)

    async def _post(
        self, mission: MissionId, verb: str, entry_id: str, entry: Mapping[str, Any], by: By = NOBODY, **logged: Any
    ) -> Taken:
        answer, taken = await self._run(mission, verb, entry_id, entry)
        _accepted(answer, taken, verb)
        return _audited(verb, taken, by, **logged)

    async def _run(  # noqa: PLR0913  the parts of the script's call
        self,
        mission: MissionId,
        verb: str,
        entry_id: str,
        entry: Mapping[str, Any],
        *,
        reason: str = "",
        note: bytes = b"",
    ) -> tuple[str, Taken]:
        retention = self._retention_ms
        args = (mission.text, verb, entry_id, to_json(entry), reason, retention, note)
        return await self._script(mission, "control", *args)

    async def _script(self, mission: MissionId, verb: str, *args: str | bytes | int) -> tuple[str, Taken]:
        task_id = mission.text
        try:
            said, root = await asyncio.gather(
                self._link.run(verb, keys.prefix(mission.shard), *args),
                self._link.call("HGET", keys.mission(mission.shard, task_id), "root"),
            )
        except RedisAwayError as error:
            raise unavailable(f"it may not have been taken: {error}") from error
        answer, status, place = (word.decode() for word in said)
        if answer == "GONE":
            raise Problem("expired", "this mission has ended and is no longer kept", correlation_id=task_id)
        correlation_id = root.decode() if root else task_id
        return answer, Taken(task_id, correlation_id, status, place, duplicate=answer == "DUPLICATE")


def _fresh(verb: str) -> str:
    return f"{verb}:{uuid4().hex}"


def _accepted(answer: str, taken: Taken, verb: str) -> None:
    if answer == "ENDED":
        raise _ended(taken, f"it takes no {verb} any more")
    if answer == "FULL":
        detail = "its inbox is full: as many entries as it keeps are unread; wait until a worker has read them"
        raise Problem(
            "inbox_full", detail, retryable=True, retry_after=ROOM_AGAIN_S, correlation_id=taken.correlation_id
        )


def _ended(taken: Taken, sentence: str) -> Problem:
    detail = f"the mission has ended: {taken.status}; {sentence}"
    return Problem("ended", detail, correlation_id=taken.correlation_id)


def _audited(verb: str, taken: Taken, by: By, **more: Any) -> Taken:
    """One line of the log for each verb that was taken."""
    ids = {"correlation_id": taken.correlation_id, "task_id": taken.task_id}
    log.info(verb, **ids, status=taken.status, place=taken.place, **by.told(), **more)
    return taken
