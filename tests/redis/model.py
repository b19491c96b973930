"""What the scripts should do, in plain Python: places and moves of a few missions, and each answer word.

Written from the protocol's table, not from the Lua. One tenant, one pool; time passes only where a test says so.
"""

from collections.abc import Collection, Sequence

from tests.redis.model_claim import Claiming
from tests.redis.model_places import RANK, Lease, Mission, Places
from tests.redis.scripts_client import Answer, Said, Write

__all__ = ["Lease", "Mission", "Model"]

CANCEL = '{"entry":"cancel","reason":"disconnected"}'
DEADLINE = '{"entry":"deadline"}'
SOLO_DEATHS = 3


class Model(Places):
    """A shard, and the verbs on it."""

    # clients and operators

    def accept(
        self, task_id: str, type_: str, priority: str, target: str, latest: str = "", *, child: bool = False
    ) -> str:
        if task_id in self.missions:
            return "DUPLICATE"
        self.order += 1
        m = self.missions[task_id] = Mission(task_id, self.order, type_, priority, target, latest, child=child)
        if latest:
            self.intents.setdefault(latest, set()).add(task_id)
        self.enter(m)
        return "OK"

    def control(self, task_id: str, verb: str, entry_id: str, entry: str, run: int | None = None) -> Said:
        m = self.missions.get(task_id)
        if m is None:
            return Said("GONE", "", "")
        if m.place == "ended" or (run is not None and run != m.run):
            return Said("ENDED", m.status, m.place)
        word = "OK"
        if verb == "cancel" and not m.started:
            self._cancel(m)
        elif verb == "pause" and (m.place == "paused" or not (m.unread or m.place == "leased")):
            self._pause(m)
        elif verb == "resume" and m.place == "paused":
            self._resume(m)
        elif verb != "resume" or any(one.startswith('{"entry":"pause"') for one in m.unread):
            word = self.post(m, entry_id, entry, rouses=verb == "cancel")
        return Said(word, m.status, m.place)

    def _cancel(self, m: Mission) -> None:
        m.seq += 1
        self.end(m, "CANCELLED")
        m.state = "CANCELLED"

    def _pause(self, m: Mission) -> None:
        if m.place == "paused":
            return
        if m.place != "waiting":
            m.wake_at, m.waiting_for = None, ""
        m.seq += 1
        self.leave(m)
        self._stand_paused(m)
        self.free(m)
        self.lower(m)

    def _stand_paused(self, m: Mission) -> None:
        m.was = "COMPENSATING" if m.status == "COMPENSATING" else ""
        m.place, m.status, m.armed = "paused", "PAUSED", True

    def _resume(self, m: Mission) -> None:
        m.seq += 1
        ahead = m.wake_at != 1 if m.wake_at is not None else bool(m.waiting_for)
        if m.unread or not ahead:
            self.stir(m)
        else:
            self.leave(m)
            m.place = "waiting"

    def prioritize(self, task_id: str, priority: str) -> Said:
        m = self.missions.get(task_id)
        if m is None:
            return Said("GONE", "", "")
        if m.place == "ended":
            return Said("ENDED", m.status, "ended")
        if m.own != priority:
            m.seq += 1
            self._rank(m, priority)
        return Said("OK", m.status, m.place)

    def _rank(self, m: Mission, priority: str) -> None:
        holds = m.target and self.holder(m) == m.task_id
        if m.base and RANK[m.priority] < RANK[priority]:
            m.base = priority
            return
        m.priority, m.base = priority, ""
        if m.place == "lane":
            self.to_lane(m)
        if m.place == "waiters":
            self.raise_(self.missions[self.holds[m.target]], priority)
        elif holds:
            for one in self.behind(m):
                self.raise_(m, one.priority)

    def replay(self, task_id: str, start: str, key: str) -> tuple[str, int]:
        m = self.missions.get(task_id)
        if m is None:
            return "GONE", 0
        if m.place != "ended":
            return "RUNNING", m.run
        if not m.dead:
            return "ENDED", m.run
        if m.rows:
            return "ROWS", m.run
        self.order += 1
        m.run, m.order, m.seq = m.run + 1, self.order, m.seq + 1
        m.key_run = m.run if key == "new" else m.key_run
        m.state = m.failed_in if start == "failed_state" else "START"
        m.status = "WAITING" if m.rev else "PENDING"
        m.deaths = m.solo_deaths = m.toll = 0
        m.armed, m.due, m.over, m.old = True, False, False, False
        m.dead, m.failed_in, m.acted, m.parked_at, m.wake_at, m.waiting_for = False, "", False, None, None, ""
        m.progress = ""
        self.lower(m)
        if m.latest:
            self.intents[m.latest].add(task_id)
        self.enter(m)
        return "OK", m.run

    def discard(self, task_id: str) -> str:
        m = self.missions.get(task_id)
        if m is None:
            return "GONE"
        if m.place != "ended":
            return "RUNNING"
        if not m.dead:
            return "ENDED"
        m.dead, m.over = False, True
        return "OK"

    # workers

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
        if write.act and self.newer(m):
            return Answer("SUPERSEDED")
        m.rev, m.seq = m.rev + 1, m.seq + len(write.events)
        if write.midway == "kept" or (write.events and write.waiting_for != "permit" and not write.midway):
            m.deaths = m.solo_deaths = 0
            m.toll = max(0, m.toll - 1) if write.midway == "kept" else 0
        if write.progress:
            m.progress = write.progress
            if write.move not in ("end", "bury"):
                m.passed.append(m.progress)
        m.state, m.status, m.unread = write.state, write.status, []
        m.rows += len(write.rows)
        m.acted |= write.act
        m.parked_at = None  # it got on
        return Answer(self._move(m, write), m.seq)

    def _move(self, m: Mission, write: Write) -> str:
        move, word = write.move, "OK"
        if move == "offer" and (self.head("urgent") or self.aged("normal") or self.aged("bulk")):
            move, word = "yield", "YIELDED"
        match move:
            case "end" | "bury":
                self.end(m, write.status, write.waiting_for if move == "bury" else "")
            case "yield":
                m.old = False
                self.to_lane(m)
                self.rest(m)
                self.drop_permits(m)
            case "wait" | "leave" | "pause":
                m.place, m.wake_at, m.waiting_for = "waiting", write.wake_at, write.waiting_for
                if move != "pause" and m.waiting_for == "permit" and self._freed(m):
                    m.wake_at = 1  # it asks again at once
                if move == "pause":
                    self._stand_paused(m)
                self.drop_permits(m)
                if move != "wait":
                    self.free(m)
                    self.lower(m)
            case _:
                if not (write.begins or write.midway):
                    self.drop_permits(m)
        return word

    def progress(self, owner: str, task_id: str, fence: int, rev: int, said: str) -> str:
        m = self._leased(owner, task_id, fence)
        if m is None or m.rev != rev:
            return "FENCED" if task_id in self.missions else "GONE"
        m.progress = said
        m.passed.append(said)
        return "OK"

    def release(self, owner: str, task_id: str, fence: int) -> str:
        m = self._leased(owner, task_id, fence)
        if m is None:
            return "FENCED"
        self.rest(m)
        m.place = "lane"
        self.drop_permits(m)
        self.to_lane(m)
        return "OK"

    def _leased(self, owner: str, task_id: str, fence: int) -> Mission | None:
        m = self.missions.get(task_id)
        return m if m is not None and (m.place, m.owner, m.fence) == ("leased", owner, fence) else None

    def adopt(self, owner: str, solo: str, task_id: str, fence: int) -> str:
        if self._leased(solo, task_id, fence):
            return "OK"  # moved before: the answer was lost
        m = self._leased(owner, task_id, fence)
        if m is None:
            return "FENCED"
        self.owners[solo] = Lease()
        m.owner = solo
        return "OK"

    def permit(self, owner: str, task_id: str, fence: int, limits: dict[str, int]) -> str:
        m = self._leased(owner, task_id, fence)
        if m is None:
            return "FENCED"
        for scope, limit in limits.items():
            held = self.permits.setdefault(scope, {})
            if task_id not in held and len(held) >= limit:
                if m.queued is None or m.queued[0] != scope:
                    self._leave_queue(m)
                    m.queued = (scope, self.clock)
                self.queues.setdefault(scope, {})[task_id] = (self.line(m.queued[1], m), m.order)
                return "BUSY"
        for scope in limits:
            self.permits[scope][task_id] = fence
        m.permits = (*m.permits, *(scope for scope in limits if scope not in m.permits))
        self._leave_queue(m)
        return "OK"

    def _freed(self, m: Mission) -> bool:
        """Whether the permit that it asked for came free meanwhile."""
        return m.queued is not None and m.task_id not in self.queues.get(m.queued[0], {})

    def _leave_queue(self, m: Mission) -> None:
        if m.queued is not None:
            self.queues.get(m.queued[0], {}).pop(m.task_id, None)
            m.queued = None

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
        self, owner: str, slots: tuple[int, int], knows: Collection[str], kinds: Sequence[str], *, register: bool
    ) -> list[str] | None:
        """The ids it gets, in order; None: LOST. `slots`: free ones, for urgent. `kinds`: parked, in Redis' order."""
        if owner not in self.owners and not register:
            return None
        self.owners[owner] = Lease()
        self._thaw()
        waiting = [m for m in self.missions.values() if m.place == "waiting" and m.wake_at == 1]
        for m in sorted(waiting, key=lambda m: m.task_id):
            self.stir(m)
        self._take_over()
        return Claiming(self, owner, slots, knows, kinds).run()

    def _take_over(self) -> None:
        for owner, lease in sorted(self.owners.items(), key=lambda one: one[1].ended or 0):
            if lease.ended is None:
                continue
            if lease.look is None or lease.look[0] != lease.ended:
                lease.look = (lease.ended, False)
            elif lease.look[1]:
                del self.owners[owner]
                held = [m for m in self.missions.values() if m.place == "leased" and m.owner == owner]
                for m in sorted(held, key=lambda m: m.task_id):
                    self._reclaim(m)

    def _reclaim(self, m: Mission) -> None:
        m.seq += 1
        if m.owner.startswith("solo-"):
            m.solo_deaths += 1
            if m.solo_deaths >= SOLO_DEATHS:
                self._fail(m)
                return
        m.deaths += 1
        m.toll = min(m.toll + 10, 60)
        self.drop_permits(m)
        self.to_lane(m)
        self.rest(m)

    def _fail(self, m: Mission) -> None:
        self.end(m, "FAILED", m.state)
        m.state = "FAILED"

    # what time does

    def sweep(self, *, park_limit: bool) -> int:
        due = [m for m in self.missions.values() if m.armed and m.due and (m.place != "paused" or m.long_paused)]
        for m in sorted(due, key=lambda m: m.task_id):
            m.armed = False
            if not m.started:
                self._cancel(m)
            else:
                self.post(m, f"deadline:{m.run}", DEADLINE, rouses=True)
                if m.place == "paused":
                    self.stir(m)  # it was told before
        return len(due) + (self._give_up() if park_limit else 0)

    def _give_up(self) -> int:
        given_up = 0
        for kind in tuple(self.parked_types):
            if self.known.get(kind):
                continue
            for m in [one for one in self.missions.values() if (one.place, one.type) == ("parked", kind)]:
                if m.parked_at == 1:
                    m.seq, given_up = m.seq + 1, given_up + 1
                    self._fail(m)
            if not any((one.place, one.type) == ("parked", kind) for one in self.missions.values()):
                self.parked_types.discard(kind)
                self.known.pop(kind, None)
        return given_up

    def abandon(self) -> int:
        handled = 0
        for task_id in sorted(one for one, lapsed in self.attended.items() if lapsed):
            del self.attended[task_id]
            m = self.missions.get(task_id)
            if m is None or m.place == "ended":
                continue
            handled += 1
            if not m.started:
                self._cancel(m)
            else:
                self.post(m, "cancel", CANCEL, rouses=True)
        return handled

    def retire(self) -> int:
        over = [m for m in self.missions.values() if m.place == "ended" and m.over]
        for m in over:
            m.over = False
            if not m.rows:
                del self.missions[m.task_id]
                self.intents.get(m.latest, set()).discard(m.task_id)
                self._leave_queue(m)
        return sum(not m.rows for m in over)
