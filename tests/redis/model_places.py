"""The places of the model, and the moves between them that all verbs share: the protocol's P1, P9 to P12, in Python."""

from dataclasses import dataclass, field
from typing import Final

RANK: Final = {"urgent": 0, "normal": 1, "bulk": 2}
RANK_MS: Final = 30_000
"""How much later a waiter of a lower priority counts as having come."""


@dataclass(slots=True)
class Mission:
    """One mission."""

    task_id: str
    order: int
    type: str = "t"
    priority: str = "normal"  # as it stands: raised, if `base` is its own
    target: str = ""
    latest: str = ""
    base: str = ""
    place: str = "lane"
    status: str = "PENDING"
    was: str = ""
    state: str = "START"
    owner: str = ""
    fence: int = 0
    rev: int = 0
    seq: int = 0
    run: int = 1
    key_run: int = 1
    deaths: int = 0
    solo_deaths: int = 0
    toll: int = 0
    started: bool = False
    wake_at: int | None = None
    waiting_for: str = ""
    parked_at: int | None = None
    joined: int = 0  # its waiters, by the clock of the model
    old: bool = False  # ready for longer than a lane should let it wait
    unread: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    child: bool = False  # it has a parent, who is to be told of its end
    rows: int = 0
    armed: bool = True  # stands in the deadlines
    due: bool = False  # its deadline has come
    long_paused: bool = False  # for longer than the pause limit
    over: bool = False  # its retention has passed
    ends: int = 0
    acted: bool = False
    failed_in: str = ""
    dead: bool = False  # a dead letter
    permits: tuple[str, ...] = ()
    queued: tuple[str, int] | None = None  # for which scope, since when
    progress: str = ""
    passed: list[str] = field(default_factory=list)  # what watchers were told of that

    @property
    def own(self) -> str:
        """Its own priority."""
        return self.base or self.priority


@dataclass(slots=True)
class Lease:
    """One owner's; `ended`: None while it is good, else a number of its own; `look`: of which end, and long ago?"""

    ended: int | None = None
    look: tuple[int, bool] | None = None


class Places:
    """What a shard holds."""

    def __init__(self) -> None:
        self.missions: dict[str, Mission] = {}
        self.holds: dict[str, str] = {}
        self.owners: dict[str, Lease] = {}
        self.ring: set[str] = set()
        self.attended: dict[str, bool] = {}  # by id; True: the last watcher has lapsed
        self.intents: dict[str, set[str]] = {}
        self.permits: dict[str, dict[str, int]] = {}
        self.queues: dict[str, dict[str, tuple[int, int]]] = {}  # by scope: id, and its place in the line
        self.parked_types: set[str] = set()
        self.known: dict[str, bool] = {}  # parked types that a worker which knows them came by for; True: lately
        self.order = self.fence = 0
        self.clock = 0  # of scripts: all within one happens at once
        self.frozen = False

    def holder(self, m: Mission) -> str | None:
        """Who holds its target."""
        return self.holds.get(m.target)

    def behind(self, m: Mission) -> list[Mission]:
        """Who waits for its target, best first."""
        found = [one for one in self.missions.values() if one.place == "waiters" and one.target == m.target]
        return sorted(found, key=lambda one: (self.line(one.joined, one), one.order))

    def line(self, came: int, m: Mission) -> int:
        """Where it stands in a line."""
        return came + RANK_MS * RANK[m.priority]

    def head(self, priority: str) -> Mission | None:
        """Whose turn it is in a lane."""
        lane = [m for m in self.missions.values() if m.place == "lane" and m.priority == priority]
        return min(lane, key=lambda m: m.order, default=None)

    def aged(self, priority: str) -> bool:
        """Whether it has waited for too long."""
        head = self.head(priority) if priority in self.ring else None
        return head is not None and head.old

    def to_lane(self, m: Mission) -> None:
        m.place = "lane"
        self.ring.add(m.priority)

    def raise_(self, holder: Mission, priority: str) -> None:
        """A holder inherits a higher priority behind it."""
        if RANK[priority] < RANK[holder.priority]:
            holder.base, holder.priority = holder.own, priority
            if holder.place == "lane":
                self.to_lane(holder)

    def enter(self, m: Mission) -> None:
        if m.target:
            holder = self.holder(m)
            if holder not in (None, m.task_id):
                m.place, m.joined = "waiters", self.clock
                self.raise_(self.missions[holder], m.priority)
                return
            self.holds[m.target] = m.task_id
        self.to_lane(m)

    def free(self, m: Mission) -> None:
        """Its hold goes to the best waiter, who inherits from those that are left."""
        if not m.target or self.holder(m) != m.task_id:
            return
        del self.holds[m.target]
        if line := self.behind(m):
            best, *others = line
            self.holds[m.target] = best.task_id
            best.old = False
            self.to_lane(best)
            for one in others:
                self.raise_(best, one.priority)

    def lower(self, m: Mission) -> None:
        """It gave its hold up."""
        m.priority, m.base = m.own, ""

    def rest(self, m: Mission) -> None:
        """Nobody leases it any more."""
        if m.status != "COMPENSATING":
            m.status = "WAITING" if m.rev else "PENDING"

    def leave(self, m: Mission) -> None:
        """Out of its place, for another."""
        if m.place == "paused":
            m.status = m.was or "WAITING"
            m.was, m.long_paused = "", False
            self.rest(m)
        elif m.place == "parked":
            m.place = ""
            if not any(one.place == "parked" and one.type == m.type for one in self.missions.values()):
                self.parked_types.discard(m.type)

    def stir(self, m: Mission) -> None:
        """What waits, or is paused, towards its lane."""
        self.leave(m)
        m.old = False
        self.enter(m)

    def drop_permits(self, m: Mission) -> None:
        """They end with the lease; who waits best for one is woken."""
        scopes, m.permits = m.permits, ()
        for scope in scopes:
            self.permits[scope].pop(m.task_id, None)
            queue = self.queues.get(scope, {})
            while queue:
                best = min(queue, key=lambda one: queue[one])
                del queue[best]
                other = self.missions.get(best)
                if other is not None and (other.place, other.waiting_for) == ("waiting", "permit"):
                    self.stir(other)
                    break
                if other is not None and other.place == "leased" and other.queued and other.queued[0] == scope:
                    break  # it asks, or its wait is a commit away

    def post(self, m: Mission, entry_id: str, entry: str, *, rouses: bool = False) -> str:
        if entry_id in m.seen:
            return "DUPLICATE"
        m.seen.add(entry_id)
        m.unread.append(entry)
        if m.place == "waiting" or (m.place == "paused" and rouses):
            self.stir(m)
        return "OK"

    def end(self, m: Mission, status: str, failed_in: str = "") -> None:
        self.leave(m)
        m.place, m.status, m.armed, m.due = "ended", status, False, False
        m.unread, m.seen, m.failed_in, m.dead = [], set(), failed_in, bool(failed_in)
        m.ends += 1
        m.rows += m.child
        if m.latest:
            intents = self.intents[m.latest]
            if m.acted:
                intents -= {one for one in intents if self.missions[one].order < m.order}
            else:
                intents.discard(m.task_id)
        self.drop_permits(m)
        self.free(m)

    def newer(self, m: Mission) -> bool:
        """Whether somebody newer wants something of the same aspect."""
        return bool(m.latest) and any(self.missions[one].order > m.order for one in self.intents[m.latest])
