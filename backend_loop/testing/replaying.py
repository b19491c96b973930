"""Runs an exported mission from its start, with what came to it from outside at the same points, and compares."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from pydantic_core import to_json

from backend_loop.document import read
from backend_loop.testing.causes import Cause, cause, differing, early, ends, ran_again, seen
from backend_loop.testing.ends import End
from backend_loop.testing.exported import Event, Exported
from backend_loop.testing.points import Kill
from backend_loop.testing.record import Record
from backend_loop.testing.shard import Write
from backend_loop.testing.trial import Trial
from backend_loop.testing.world import Happening, Meddler, World
from shared.status import Status

TOGETHER = frozenset({"child", "pause", "supersede"})
"""What a commit takes along that goes on: it waited in the inbox, and cut nothing."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of a replay.

    Attributes:
        difference: the first transition that differs, or what the end says otherwise; None: nothing does.
        mission: the run.
    """

    difference: str | None
    mission: Trial

    @property
    def same(self) -> bool:
        """Whether it went as in the file."""
        return self.difference is None


class Replayer(Meddler):
    """Gives the mission of a world what the file's mission was given.

    Args:
        world: in which it was accepted, and has not run.
        record: its own.
        file: what to give.
    """

    def __init__(self, world: World, record: Record, file: Exported) -> None:
        """Nothing is given yet."""
        self._world, self._record, self._file = world, record, file
        self._lines = seen(file.log)
        result = (file.result or {}).get("result") or {}
        events = world.types[file.type].row().events
        pairs = zip(self._lines, [None, *self._lines], strict=False)
        self._causes = [cause(line, before, events, result) for line, before in pairs]
        self._given = set[int]()
        self._children = read(to_json(file.document), file.state).course.children if file.document else ()
        world.meddler = self

    def play(self) -> Replayed:
        """The whole of it."""
        mission = self._world.trial
        while self._record.started_at is None and not self._record.ended and self._next(self._place) is not None:
            self._give(self._place)
        self._remember()
        while self._same():
            before = len(self._record.log), self._world.time.passed_s
            self._world.play()
            if self._place < len(self._lines) and not self._give_at_rest():
                self._let_time_pass()
            if before == (len(self._record.log), self._world.time.passed_s) and not self._pending:
                break
        ours, whole = self._ours, self._file.status.terminal
        difference = differing(self._lines, ours, whole=whole)
        if difference is None and whole and not self._record.ended:
            difference = f"the file ends {self._file.status}; this run stands {mission.status} in {mission.state}"
        if difference is None and whole:
            difference = ends(self._file.result, self._record.result)
        return Replayed(difference, mission)

    @property
    def _ours(self) -> list[Event]:
        return [Event.model_validate(line) for line in self._record.log]

    @property
    def _place(self) -> int:
        """How many lines there are by now; each is one that a bench has."""
        return len(self._record.log)

    @property
    def _pending(self) -> bool:
        return self._record.place == "lane"

    def _same(self) -> bool:
        return differing(self._lines[: self._place], self._ours, whole=False) is None

    def _next(self, place: int) -> Cause | None:
        """What is to be given there, and was not yet."""
        return self._causes[place] if place < len(self._causes) and place not in self._given else None

    # at rest

    def rests(self) -> bool:
        """See `Meddler`."""
        place = self._place
        if self._record.place not in {"waiting", "paused"} or (found := self._next(place)) is None:
            return False
        again = found.cuts and place > 0 and ran_again(self._lines[place - 1], self._lines[place])
        return found.verb != "kill" and not again

    def _give_at_rest(self) -> bool:
        place = self._place
        if (found := self._next(place)) is None or found.verb == "kill":
            return False
        given = False
        for one in self._together(place) if found.verb == "child" else (place,):
            if not self._give(one):
                break
            given = True
        return given

    def _together(self, place: int) -> Iterator[int]:
        """Ends of children that were heard of in one commit: up to what followed from them, and right behind that."""
        followed = False
        for one in range(place, len(self._lines)):
            found = self._causes[one]
            if found is not None and found.verb == "child":
                yield one
            elif followed or found is not None:
                return
            else:
                followed = True

    def _let_time_pass(self) -> None:
        dues = [due.at for due in self._world.shard.dues()]
        if dues and not self._record.ended:
            self._world.play(min(dues))

    # while it runs

    def within(self, task_id: str) -> Iterator[Happening]:
        """See `Meddler`."""
        found = self._next(self._place)
        if task_id == self._record.task_id and found is not None and found.cuts:
            yield partial(self._give, self._place)

    def before(self, write: Write) -> None:
        """See `Meddler`."""
        if write.task_id != self._record.task_id:
            return
        self._remember()
        place = self._place + len(write.lines)
        while (found := self._next(place)) is not None and found.verb in TOGETHER:
            if (found.verb != "supersede" and write.move not in {"stay", "offer"}) or not self._give(place):
                return
            place += 1

    def _remember(self) -> None:
        """Events that come before they are waited for: each as soon as the one of its name before it was taken."""
        for place, found in enumerate(self._causes):
            if found is None or found.verb != "event" or place in self._given:
                continue
            name = found.entry["event"]
            # one of the same name, and a new run, which remembers nothing
            words = {name, "replayed"}
            earlier = [n for n, one in enumerate(self._causes[:place]) if one and one.entry.get("event") in words]
            if early(self._lines, place, name) and all(n < self._place for n in earlier):
                self._give(place)

    # what is given

    def _give(self, place: int) -> bool:
        """Whether it could be given."""
        found = self._causes[place]
        if found is None or (found.verb == "child" and not self._end(found)):
            return False
        self._given.add(place)
        world, record = self._world, self._record
        match found.verb:
            case "kill":
                world.die(Kill.within(record.state))
            case "supersede":
                record.newer = True
            case "deadline" if record.started_at is not None:
                world.shard.expire(record)
            case "deadline":
                world.shard.finish(record, "expired", {"reason": "expired"})
            case "replay":
                world.replay(record, found.entry)
            case verb if verb != "child":
                entry_id = "cancel" if verb == "cancel" else ""
                world.control.run(record.task_id, verb, found.entry, entry_id=entry_id)
        return True

    def _end(self, found: Cause) -> bool:
        """End the child that was spawned at the same place in the same state; whether it lives."""
        told = next((one for one in self._children if one.task_id == found.entry["task_id"]), None)
        if told is None or not self._record.document:
            return False
        for one in read(self._record.document, self._record.state).course.children:
            child = self._world.shard.records.get(one.task_id)
            if child is not None and (one.state, one.visit, one.n) == (told.state, told.visit, told.n):
                end = End(Status(found.entry["status"]), told.result, told.error, told.reason)
                self._world.carrier.end(child, end)
                self._world.carrier.carry()
                return True
        return False
