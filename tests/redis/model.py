"""What the scripts should do, in plain Python: places and moves of a few missions, and each answer word.

Written from the protocol's table, not from the Lua. One tenant, one pool; time passes only where a test says so.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from tests.redis.scripts_client import Answer, Move, Write

RANK = {"urgent": 0, "normal": 1, "bulk": 2}


@dataclass(slots=True)
class Mission:
    """One mission."""

    task_id: str
    order: int
    type: str = "t"
    priority: str = "normal"
    target: str = ""
    place: str = "lane"
    status: str = "PENDING"
    state: str = "START"
    owner: str = ""
    fence: int = 0
    rev: int = 0
    seq: int = 0
    deaths: int = 0
    started: bool = False
    wake_at: int | None = None
    parked_at: int | None = None
    unread: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    rows: int = 0
    armed: bool = True  # stands in the deadlines
    due: bool = False  # and its deadline has come
    over: bool = False  # its retention has passed


@dataclass(slots=True)
class Lease:
    """One owner's; `ended`: None while it is good, else a number of its own; `look`: of which end, and long ago?"""

    ended: int | None = None
    look: tuple[int, bool] | None = None


class Model:
    """A shard."""

    def __init__(self) -> None:
        self.missions: dict[str, Mission] = {}
        self.holds: dict[str, str] = {}
        self.owners: dict[str, Lease] = {}
        self.ring: set[str] = set()
        self.attended: dict[str, bool] = {}  # by id; True: the last watcher has lapsed
        self.order = self.fence = 0
        self.frozen = False

    # moves

    def holder(self, m: Mission) -> str | None:
        """Who holds its target."""
        return self.holds.get(m.target)

    def to_lane(self, m: Mission) -> None:
        m.place = "lane"
        self.ring.add(m.priority)

    def enter(self, m: Mission) -> None:
        if m.target:
            if self.holder(m) not in (None, m.task_id):
                m.place = "waiters"
                return
            self.holds[m.target] = m.task_id
        self.to_lane(m)

    def free(self, m: Mission) -> None:
        if not m.target or self.holder(m) != m.task_id:
            return
        del self.holds[m.target]
        waiters = [w for w in self.missions.values() if w.place == "waiters" and w.target == m.target]
        if waiters:
            best = min(waiters, key=lambda w: (RANK[w.priority], w.order))
            self.holds[m.target] = best.task_id
            self.to_lane(best)

    def rest(self, m: Mission) -> None:
        """Nobody leases it any more."""
        if m.status != "COMPENSATING":
            m.status = "WAITING" if m.rev else "PENDING"

    def post(self, m: Mission, entry_id: str, entry: str) -> str:
        if entry_id in m.seen:
            return "DUPLICATE"
        m.seen.add(entry_id)
        m.unread.append(entry)
        if m.place == "waiting":
            self.enter(m)
        return "OK"

    def end(self, m: Mission, status: str) -> None:
        m.place, m.status, m.armed, m.due = "ended", status, False, False
        m.unread, m.seen = [], set()
        self.free(m)

    # verbs

    def accept(self, task_id: str, type_: str, priority: str, target: str) -> str:
        if task_id in self.missions:
            return "DUPLICATE"
        self.order += 1
        m = self.missions[task_id] = Mission(task_id, self.order, type_, priority, target)
        self.enter(m)
        return "OK"

    def commit(self, owner: str, write: Write) -> Answer:
        m = self.missions.get(write.task_id)
        if m is None:
            return Answer("GONE")
        if (m.fence, m.rev) == (write.fence, write.rev + 1):
            return Answer("DUPLICATE")
        if (m.place, m.owner, m.fence, m.rev) != ("leased", owner, write.fence, write.rev):
            return Answer("FENCED")
        if len(m.unread) != write.consumed:
            return Answer("SIGNALLED", 0, tuple(m.unread))
        m.rev, m.seq, m.deaths = m.rev + 1, m.seq + len(write.events), 0
        m.state, m.status, m.unread = write.state, write.status, []
        m.rows += len(write.rows)
        self._move(m, write.move, write)
        return Answer("OK", m.seq)

    def _move(self, m: Mission, move: Move, write: Write) -> None:
        match move:
            case "end":
                self.end(m, write.status)
            case "yield":
                self.to_lane(m)
                self.rest(m)
            case "wait" | "leave":
                m.place, m.wake_at = "waiting", write.wake_at
                if move == "leave":
                    self.free(m)

    def release(self, owner: str, task_id: str, fence: int) -> str:
        m = self.missions.get(task_id)
        if m is None or (m.place, m.owner, m.fence) != ("leased", owner, fence):
            return "FENCED"
        self.to_lane(m)
        self.rest(m)
        return "OK"

    def control(self, task_id: str, verb: str, entry_id: str, entry: str) -> tuple[str, str]:
        m = self.missions.get(task_id)
        if m is None:
            return "GONE", ""
        if m.place == "ended":
            return "ENDED", m.status
        if verb == "cancel" and m.place != "leased" and m.rev == 0:
            self._cancel(m)
            return "OK", "CANCELLED"
        return self.post(m, entry_id, entry), m.status

    def _cancel(self, m: Mission) -> None:
        m.seq += 1
        m.state = "CANCELLED"
        self.end(m, "CANCELLED")

    def sweep(self) -> int:
        due = [m for m in self.missions.values() if m.armed and m.due]
        for m in sorted(due, key=lambda m: m.task_id):
            m.armed = False
            if m.place != "leased" and m.rev == 0:
                self._cancel(m)
            else:
                self.post(m, "deadline:1", '{"entry":"deadline"}')
        return len(due)

    def abandon(self) -> int:
        handled = 0
        for task_id in sorted(one for one, lapsed in self.attended.items() if lapsed):
            del self.attended[task_id]
            m = self.missions.get(task_id)
            if m is None or m.place == "ended":
                continue
            handled += 1
            if m.place != "leased" and m.rev == 0:
                self._cancel(m)
            else:
                self.post(m, "cancel", '{"entry":"cancel","reason":"disconnected"}')
        return handled

    def retire(self) -> int:
        over = [m for m in self.missions.values() if m.place == "ended" and m.over]
        for m in over:
            m.over = False
            if not m.rows:
                del self.missions[m.task_id]
        return sum(not m.rows for m in over)

    def renew(self, owner: str) -> set[str] | None:
        self._thaw()
        if owner not in self.owners:
            return None
        self.owners[owner] = Lease()
        return {m.task_id for m in self.missions.values() if m.place == "leased" and m.owner == owner and m.unread}

    def resign(self, owner: str) -> str:
        if any(m.place == "leased" and m.owner == owner for m in self.missions.values()):
            return "HOLDS"
        self.owners.pop(owner, None)
        return "OK"

    def _thaw(self) -> None:
        if self.frozen:
            self.frozen = False
            for lease in self.owners.values():
                lease.look = None

    def claim(
        self, owner: str, slots: int, urgent_slots: int, knows: Collection[str], *, register: bool
    ) -> list[str] | None:
        """The ids it gets, in order; None: LOST."""
        if owner not in self.owners and not register:
            return None
        self.owners[owner] = Lease()
        self._thaw()
        waiting = [m for m in self.missions.values() if m.place == "waiting" and m.wake_at == 1]
        for m in sorted(waiting, key=lambda m: m.task_id):
            self.enter(m)
        self._take_over()
        return _Claim(self, owner, slots, urgent_slots, knows).run()

    def _take_over(self) -> None:
        for owner, lease in sorted(self.owners.items(), key=lambda one: one[1].ended or 0):
            if lease.ended is None:
                continue
            if lease.look is None or lease.look[0] != lease.ended:
                lease.look = (lease.ended, False)
            elif lease.look[1]:
                del self.owners[owner]
                for m in self.missions.values():
                    if m.place == "leased" and m.owner == owner:
                        m.deaths, m.seq = m.deaths + 1, m.seq + 1
                        self.to_lane(m)
                        self.rest(m)


class _Claim:
    """The work of one claim."""

    def __init__(self, model: Model, owner: str, slots: int, urgent_slots: int, knows: Collection[str]) -> None:
        self.model, self.owner, self.knows = model, owner, knows
        self.slots, self.urgent_slots = slots, urgent_slots
        self.taken: list[str] = []
        self.drawn = model.fence  # the last fence before this claim: it decides whose the odd slot is

    def run(self) -> list[str]:
        if self.urgent_slots == 0:
            return []
        self._take("urgent", self.slots - self._share(self.slots, 8, math.sqrt(3) - 1))
        self._unpark()
        self._take("normal", self.slots - self._share(self.slots - len(self.taken), 4, (math.sqrt(5) - 1) / 2))
        self._take("bulk", self.slots)
        self._take("normal", self.slots)
        self._take("urgent", self.urgent_slots)
        return self.taken

    def _share(self, slots: int, part: int, irrational: float) -> int:
        return math.floor(slots / part + self.drawn * irrational % 1)

    def _take(self, priority: str, most: int) -> None:
        model = self.model
        while len(self.taken) < most and priority in model.ring:
            lane = [m for m in model.missions.values() if m.place == "lane" and m.priority == priority]
            wanted = most - len(self.taken)
            if len(lane) < wanted:
                model.ring.discard(priority)
            for m in sorted(lane, key=lambda m: m.order)[:wanted]:
                if m.type in self.knows:
                    self._lease(m)
                else:
                    model.free(m)
                    m.place = "parked"

    def _unpark(self) -> None:
        parked = [m for m in self.model.missions.values() if m.place == "parked" and m.type in self.knows]
        for m in sorted(parked, key=lambda m: (m.parked_at or 0, m.task_id)):
            if len(self.taken) >= self.slots:
                return
            self.model.enter(m)
            if m.place == "lane":
                self._lease(m)

    def _lease(self, m: Mission) -> None:
        self.model.fence = self.drawn + 1
        m.place, m.owner, m.fence = "leased", self.owner, self.model.fence
        if m.status != "COMPENSATING":
            m.status = "RUNNING"
        if not m.started:
            m.started, m.seq = True, m.seq + 1
        self.taken.append(m.task_id)
