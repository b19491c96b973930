"""What a test may look at of a mission on the bench."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import from_json, to_json

from backend_loop.document import Kept, read
from backend_loop.mission import MissionType
from backend_loop.testing.faults import Call
from backend_loop.testing.points import Kill
from backend_loop.testing.record import Record
from shared.clock import parse_rfc3339
from shared.status import Status

if TYPE_CHECKING:
    from backend_loop.testing.world import World


SHOWN: Final = 100
"""Characters of an answer that a story has."""

LINES: Final = 30
"""Lines of a log, or of calls, that a story begins and ends with."""


class View:
    """One mission of a run, in the words of the API."""

    def __init__(self, world: "World", record: Record) -> None:
        """Made by a bench."""
        self._world, self._record = world, record

    @property
    def task_id(self) -> str:
        """Its id; the same in each run of a bench."""
        return self._record.task_id

    @property
    def type(self) -> str:
        """Its type's name."""
        return self._record.type

    @property
    def status(self) -> str:
        """``PENDING RUNNING WAITING PAUSED COMPENSATING SUCCEEDED FAILED CANCELLED``."""
        return str(self._record.status)

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        return self._record.ended

    @property
    def state(self) -> str:
        """Where its own machine is; after its end the status again."""
        return self._record.state

    @property
    def waiting_for(self) -> str | None:
        """``retry timer event children target permit``; None: it does not wait."""
        record = self._record
        if record.place == "waiters":
            return "target"
        return record.waiting_for or None if record.place == "waiting" else None

    @property
    def result(self) -> dict[str, Any] | None:
        """What it ended with, if with something."""
        told: dict[str, Any] | None = self._told("result")
        return told

    @property
    def error(self) -> dict[str, Any] | None:
        """``code message state attempts`` of a FAILED."""
        told: dict[str, Any] | None = self._told("error")
        return told

    @property
    def reason(self) -> str | None:
        """Why it was CANCELLED."""
        told: str | None = self._told("reason")
        return told

    @property
    def freshness(self) -> dict[str, Any] | None:
        """The observation behind its result."""
        told: dict[str, Any] | None = self._told("freshness")
        return told

    @property
    def progress(self) -> dict[str, Any] | None:
        """``done total message`` as it said last."""
        return from_json(self._record.progress) if self._record.progress else None

    @property
    def document(self) -> dict[str, Any] | None:
        """Its whole result document, as clients get it; None: it has not ended."""
        return self._record.result

    @property
    def context(self) -> Any:
        """Its Context, as of its last commit; of a child whose end was scripted, None."""
        definition = self._definition
        if definition is None:
            return None
        kept = self._kept
        return definition.mission.Context.model_validate(definition.versions.context(kept.context, kept.version))

    @property
    def log(self) -> list[dict[str, Any]]:
        """Its events ``seq at status state data``, as clients see them."""
        return list(self._record.log)

    @property
    def states(self) -> list[str]:
        """The states on its way forward, in the order in which they were entered."""
        found: list[str] = []
        for event in self._record.log:
            status, state = Status(event["status"]), event["state"]
            if not status.terminal and status is not Status.COMPENSATING and [state] != found[-1:]:
                found.append(state)
        return found

    @property
    def undone(self) -> list[str]:
        """The states whose undo is done, in that order."""
        return [one.state for one in self._kept.course.undone]

    @property
    def calls(self) -> list[Call]:
        """What was asked of services, devices and the model in this run, by its children too."""
        return list(self._world.calls)

    @property
    def effects(self) -> list[Call]:
        """Those calls that had something done, each once."""
        return [call for call in self._world.calls if call.effect]

    @property
    def doubled(self) -> list[str]:
        """Effects that happened more than once, under different keys: a sentence for each. It is to be empty."""
        seen: dict[bytes, list[Call]] = {}
        for call in self.effects:
            about = {name: value for name, value in call.body.items() if name not in {"key", "fence"}}
            seen.setdefault(to_json([call.path, about]), []).append(call)
        return [
            f"{calls[0]} was done {len(calls)} times, under the keys {', '.join(call.key for call in calls)}"
            for calls in seen.values()
            if len({call.key for call in calls}) > 1
        ]

    def file(self, link: str) -> Path:
        """Where a file lies that it has published; it is gone with the run.

        Raises:
            NoFileError: there is none.
        """
        return self._world.files.find(link)

    @property
    def commits(self) -> int:
        """How many commits it has had."""
        return self._record.rev

    @property
    def children(self) -> list["View"]:
        """Its children, in the order in which they began."""
        return [View(self._world, one) for one in self._world.shard.records.values() if one.parent == self.task_id]

    @property
    def took_s(self) -> float:
        """Seconds since it was accepted, up to now."""
        return (self._world.time.now_ms() - self._record.created_at) / 1000

    @property
    def killed(self) -> tuple[Kill, ...]:
        """Where its workers died."""
        return tuple(self._world.died)

    @property
    def places(self) -> list[Kill]:
        """Where a worker could have been killed in this run: at each commit and each call."""
        commits, calls = range(1, self._world.commits + 1), range(1, len(self._world.calls) + 1)
        at_commits = [kill(n) for n in commits for kill in (Kill.before_commit, Kill.after_commit)]
        return at_commits + [kill(n) for n in calls for kill in (Kill.before_call, Kill.after_call)]

    def told(self) -> str:
        """Its story: where it is, its log, and what was asked of the outside."""
        lines = [_line(event, self._record.created_at) for event in self._record.log]
        calls = [f"  {one.number:3} {one.state}: {one}  → {str(one.answer)[:SHOWN]}" for one in self._world.calls]
        lines = [repr(self), *_short(lines), *(["calls:", *_short(calls)] if calls else [])]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """One line, for messages of assertions."""
        killed = f", killed {', '.join(map(str, self._world.died))}" if self._world.died else ""
        waits = f" for {self.waiting_for}" if self.waiting_for else ""
        where = "" if self._record.ended else f" in {self.state}"
        why = (
            f": {self.error['code']}: {self.error['message']}"
            if self.error
            else f" ({self.reason})"
            if self.reason
            else ""
        )
        path = " → ".join(self.states)
        return f"<{self.type} {self.status}{waits}{where}{why}; {path}; {self.commits} commits{killed}>"

    @property
    def _definition(self) -> MissionType | None:
        return self._world.types.get(self._record.type)

    @property
    def _kept(self) -> Kept:
        record = self._record
        return read(record.document, record.state, record.version, record.run)

    def _told(self, name: str) -> Any:
        return None if self._record.result is None else self._record.result[name]


def _short(lines: list[str]) -> list[str]:
    return lines if len(lines) <= 2 * LINES else [*lines[:LINES], "  …", *lines[-LINES:]]


def _line(event: Mapping[str, Any], began: int) -> str:
    data = "" if event["data"] is None else f"  {to_json(event['data']).decode()}"
    state = "" if event["state"] == event["status"] else event["state"]
    return (
        f"  {event['seq']:3} {(parse_rfc3339(event['at']) - began) / 1000:10.3f}  {event['status']:12}  {state}{data}"
    )
