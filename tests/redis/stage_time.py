"""Time, in the random search: leases lapse, deadlines and limits come, retention passes, because a field was moved."""

from tests.redis.model import DEADLINE, Mission
from tests.redis.scripts_client import HOUR_MS
from tests.redis.stage_base import Base


class Time(Base):
    """What time does to both shards."""

    def _freeze(self) -> None:
        """Redis stood still for more than two polls."""
        self.verbs.redis.set(self.verbs.key("tick"), 1)
        self.model.frozen = True

    def _lapse(self, owner: str) -> None:
        """Its lease ends, at a time that no lease ended at before."""
        self.ended += 1
        self.verbs.set_score("owners", owner, self.ended)
        self.model.owners[owner].ended = self.ended

    def _renewals_pass(self) -> None:
        """All first looks were long ago."""
        for owner, look in self.verbs.redis.hgetall(self.verbs.key("looks")).items():
            self.verbs.redis.hset(self.verbs.key("looks"), owner, look.split(b"@")[0] + b"@1")
        for lease in self.model.owners.values():
            if lease.look is not None:
                lease.look = (lease.look[0], True)

    def _wake_time_comes(self, m: Mission | None) -> None:
        if m is not None and m.place in ("waiting", "paused") and m.wake_at is not None:
            m.wake_at = 1
            self.field(m, "wake_at", 1)
            if m.place == "waiting":
                self.verbs.set_score("timers", m.task_id, 1)

    def _deadline_comes(self, m: Mission | None) -> None:
        if m is not None and m.armed:
            m.due = True
            self.field(m, "deadline", 1)
            self.verbs.set_score("deadlines", m.task_id, 1)

    def _pause_limit_comes(self, m: Mission | None) -> None:
        if m is not None and m.place == "paused":
            m.long_paused = True
            self.field(m, "paused_at", 1)
            self.verbs.set_score("paused", m.task_id, 1)
            self._deadline_comes(m)

    def _park_limit_comes(self, m: Mission | None) -> None:
        if m is not None and m.place == "parked":
            m.parked_at = 1
            self.field(m, "parked_at", 1)
            self.verbs.set_score(f"parked:{m.type}@1", m.task_id, 1)

    def _nobody_who_knows_it_came_by(self, kind: str) -> None:
        if self.model.known.get(kind):
            self.model.known[kind] = False
            self.verbs.redis.hset(self.verbs.key("parked_known"), f"{kind}@1", 1)

    def _waits_long_in_its_lane(self, m: Mission | None) -> None:
        if m is not None and m.place == "lane":
            m.old = True
            self.field(m, "ready_at", 1)

    def _waits_long_for_its_target(self, m: Mission | None) -> None:
        """By more than one rank, and never by whole ranks: so the milliseconds of a run decide nothing."""
        if m is not None and m.place == "waiters":
            m.joined -= 45_000
            waiters = f"waiters:{m.target}"
            score = self.verbs.score(waiters, m.task_id)
            assert score is not None
            self.verbs.set_score(waiters, m.task_id, score - 45_000 * 4096)
            self.field(m, "ready_at", int(self.verbs.record(m.task_id)["ready_at"]) - 45_000)

    def _was_lost_twice_alone(self, m: Mission | None) -> None:
        if m is not None and m.owner.startswith("solo-") and m.place == "leased":
            m.deaths = m.solo_deaths = 2
            self.field(m, "deaths", 2)
            self.field(m, "solo_deaths", 2)

    def _sweep(self, *, park_limit: bool = True) -> None:
        unread = {m.task_id: len(m.unread) for m in self.model.missions.values()}
        places = {m.task_id: m.place for m in self.model.missions.values()}
        expected = self.model.sweep(park_limit=park_limit)
        limit = HOUR_MS // 2 if park_limit else 10 * HOUR_MS
        limit = limit if park_limit else self.verbs.now()
        assert self.verbs.sweep(park_limit_ms=limit, lease_ms=HOUR_MS)[0] == expected
        for m in self.model.missions.values():
            if len(m.unread) > unread[m.task_id]:
                self.posts(m.task_id, DEADLINE)
                self.say(f"deadline, then {m.place}")
            elif m.place != places[m.task_id]:
                self.say(f"swept from {places[m.task_id]}")
            self.a_run_is_over(m)

    def _watchers_lapse(self, task_id: str) -> None:
        self.model.attended[task_id] = True
        self.verbs.set_score("attended", task_id, 1)

    def _abandon(self) -> None:
        unread = {m.task_id: len(m.unread) for m in self.model.missions.values()}
        assert self.verbs.abandon()[0] == self.model.abandon()
        for m in self.model.missions.values():
            if len(m.unread) > unread[m.task_id]:
                self.posts(m.task_id, m.unread[-1])
                self.say(f"abandoned in {m.place}")
            self.a_run_is_over(m)

    def _retention_passes(self, m: Mission | None) -> None:
        if m is not None:
            m.over = True
            self.verbs.set_score("retire", m.task_id, 1)

    def _rows_are_carried_out(self, m: Mission | None) -> None:
        if m is not None and m.rows:
            m.rows = 0
            row = self.verbs.rows(m.task_id)[0]
            while row:
                row = self.verbs.carried(m.task_id, row)
