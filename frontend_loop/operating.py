"""What is asked of one mission and depends on its type: outside events, and the verbs of an operator."""

from typing import Final

from frontend_loop.bodies import Completed, Happening, Reprioritized, Said, Skipped
from frontend_loop.control import By, Control, Taken
from frontend_loop.kinds import Found, Kinds
from frontend_loop.reading import invalid
from frontend_loop.record import priority
from shared.errors import Problem
from shared.ids import MissionId
from shared.status import Status

COMPENSATING: Final = str(Status.COMPENSATING)


def by(said: Said) -> By:
    """Who asks, and why."""
    return By(said.by, said.note)


class Operating:
    """Asks for it, where the type allows it; each raises Problem as `Control` does, and where it is not allowed."""

    def __init__(self, control: Control, kinds: Kinds) -> None:
        """Ready at once."""
        self._control, self._kinds = control, kinds

    async def look(self, mission: MissionId) -> Taken:
        """Where it is now."""
        found = await self._kinds.find(mission, "root")
        return Taken(mission.text, _root(mission, found), found.record["status"], found.record["place"])

    async def happen(self, mission: MissionId, happening: Happening, key: str | None) -> Taken:
        """Tell an outside event; `key` stands in for its id."""
        found = await self._kinds.find(mission, "root")
        # of a type that no worker knows now nobody can tell what it declares: the event is kept for one that does
        if found.entry is not None and happening.event not in found.entry.row.events:
            known = ", ".join(sorted(found.entry.row.events)) or "none"
            detail = f"{found.kind} declares no event {happening.event!r}; those that it does: {known}"
            raise Problem("no_such_event", detail, correlation_id=_root(mission, found))
        return await self._control.happen(mission, happening.event, happening.data, happening.id or key)

    async def skip(self, mission: MissionId, skipped: Skipped) -> Taken:
        """Skip the optional state that it is in."""
        found = await self._kinds.find(mission, "root", "was")
        root, state = _root(mission, found), found.record["state"]
        if found.record["place"] != "ended":
            if COMPENSATING in (found.record["status"], found.record.get("was")):
                detail = f"the mission undoes {state}: what was done by hand is completed, and nothing else left out"
                raise Problem("not_optional", detail, correlation_id=root)
            wanted = skipped.state or state
            if found.entry is not None and wanted not in found.entry.row.states:
                raise invalid([{"pointer": "/state", "detail": f"{found.kind} has no state {wanted!r}"}])
            if found.entry is not None and wanted not in found.entry.row.optional:
                detail = f"{wanted} of {found.kind} is not optional: let it be done, complete the mission, or cancel it"
                raise Problem("not_optional", detail, correlation_id=root)
            if wanted != state:
                detail = f"the mission is in {state}, not in {wanted}: look at it again before you skip"
                raise Problem("other_state", detail, correlation_id=root)
        return await self._control.skip(mission, state, by(skipped))

    async def complete(self, mission: MissionId, completed: Completed) -> Taken:
        """End it SUCCEEDED: it was done by hand."""
        return await self._control.complete(mission, completed.result, by(completed))

    async def prioritize(self, mission: MissionId, wanted: Reprioritized) -> Taken:
        """Give it another priority."""
        found = await self._kinds.find(mission, "base", "lane")
        return await self._control.prioritize(mission, priority(found.record), wanted.priority, by(wanted))


def _root(mission: MissionId, found: Found) -> str:
    return found.record.get("root") or mission.text
