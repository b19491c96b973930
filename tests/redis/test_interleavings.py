"""The real scripts under random interleavings of a few workers, clients and mishaps.

After every step three things are held against each other: what the scripts answered and what the model (`model.py`)
says, the records and the model, and the shard with itself (`audit.py`). At the end of each example everything is
driven fairly, and every mission must end and leave nothing behind.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from shared.scripts import SCRIPTS, Script
from tests.redis.audit import Shard, faults, leftovers, read
from tests.redis.model import Mission, Model
from tests.redis.mutants import MUTANTS, Mutant
from tests.redis.scripts_client import FAR, HOUR_MS, Move, New, Verbs, Write, event

PICK = st.integers(0, 7)
MOVES = st.lists(st.sampled_from(["leave", "stay", "stay", "wait", "leave", "yield", "end"]), min_size=1, max_size=3)
Outcome = tuple[str, bool, int | None]
OUTCOME = st.tuples(st.sampled_from("ABC"), st.booleans(), st.sampled_from([FAR, None, 1]))
"""State, whether it is being undone, wake time of a wait."""

FATE = st.sampled_from(["heard", "heard", "answer lost", "lost"])
MISSION = st.tuples(
    st.sampled_from("tu"),
    st.sampled_from(["urgent", "normal", "normal", "bulk"]),
    st.sampled_from(["", "a:lamp", "a:lamp", "a:fan"]),
)
"""Type, priority, target."""

DEADLINE: Final = '{"entry":"deadline"}'
MOST: Final = 7
"""Missions of an example."""


@dataclass(slots=True)
class Hand:
    """A mission as its worker knows it; `pending`: sent, and the answer is not known."""

    task_id: str
    fence: int
    rev: int
    entries: tuple[str, ...]
    pending: Write | None = None


@dataclass(slots=True)
class Worker:
    """A process: it dies and comes back under another owner id."""

    name: str
    knows: tuple[str, ...]
    life: int = 0
    registered: bool = False
    hands: dict[str, Hand] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        return f"{self.name}.{self.life}"

    def begin(self) -> None:
        """A new life."""
        self.life += 1
        self.registered = False
        self.hands = {}


@dataclass(frozen=True, slots=True)
class Sent:
    """A commit that went out, and may arrive again whenever it likes."""

    owner: str
    write: Write
    entries: tuple[str, ...]


class Interleavings(RuleBasedStateMachine):
    """Set `url` before it runs; `scripts`, where others than the product's are to be driven."""

    url: ClassVar[str]
    scripts: ClassVar[Mapping[str, Script]] = SCRIPTS
    said: ClassVar[Counter[str]]

    def __init__(self) -> None:
        super().__init__()
        self.verbs = Verbs(redis.Redis.from_url(self.url), scripts=self.scripts)
        self.verbs.redis.flushall()
        self.model = Model()
        self.workers = [Worker("w1", ("t", "u")), Worker("w2", ("t", "u")), Worker("w3", ("t",))]
        self.sent: list[Sent] = []
        self.posted: dict[str, list[str]] = {}
        self.consumed: dict[str, list[str]] = {}
        self.leased: dict[str, tuple[str, int]] = {}
        self.applied: set[tuple[str, int]] = set()
        self.accepted = self.ended = 0
        self.feed = self.verbs.redis.pubsub(ignore_subscribe_messages=True)
        self.feed.subscribe(self.verbs.key("feed:front"))

    def say(self, word: str) -> None:
        self.said[word] += 1

    def pick(self, number: int, *places: str) -> Mission | None:
        """One of the missions, in one of these places if any are named."""
        found = [m for m in self.model.missions.values() if not places or m.place in places]
        return found[number % len(found)] if found else None

    def busy(self, number: int) -> Worker:
        """One of the workers that have something in hand, if any has."""
        found = [one for one in self.workers if one.hands] or self.workers
        return found[number % len(found)]

    # clients

    @initialize(missions=st.lists(MISSION, min_size=2, max_size=5))
    def begin(self, missions: list[tuple[str, str, str]]) -> None:
        for one in missions:
            self._accept(*one, copies=1)

    @precondition(lambda self: self.accepted < MOST)
    @rule(mission=MISSION, copies=st.integers(1, 2))
    def accept(self, mission: tuple[str, str, str], copies: int) -> None:
        self._accept(*mission, copies=copies)

    def _accept(self, type_: str, priority: str, target: str, *, copies: int) -> None:
        task_id = f"m{self.accepted}"
        self.accepted += 1
        attended = priority == "bulk"
        item = New(task_id, type_, lane=f"{priority}:default:a", target=target, watcher="" if attended else "front")
        if attended:
            self.verbs.attend(task_id)
            self.model.attended[task_id] = False
        expected = [self.model.accept(task_id, type_, priority, target) for _ in range(copies)]
        assert self.verbs.accept(*[item] * copies) == expected
        order = int(self.verbs.record(task_id)["order"])  # it may leave gaps
        assert order >= self.model.order
        self.model.order = self.model.missions[task_id].order = order

    @rule(
        number=PICK,
        aim=st.sampled_from(["", "leased", "waiting", "waiting", "parked"]),
        what=st.sampled_from(["cancel", "e1", "e2", "e3", "accept"]),
        copies=st.integers(1, 2),
    )
    def client(self, number: int, aim: str, what: str, copies: int) -> None:
        """Cancels, events and accepts of what was accepted, has ended, or is gone; also doubled, and aimed."""
        aimed = self.pick(number, aim) if aim else None
        task_id = aimed.task_id if aimed else f"m{number % (self.accepted + 1)}"
        place = self.model.missions[task_id].place if task_id in self.model.missions else "gone"
        self.say(f"{what} in {place}")
        for _ in range(copies):
            if what == "accept":
                if task_id in self.model.missions:
                    assert self.verbs.accept(New(task_id, target="a:fan")) == ["DUPLICATE"]
            elif what == "cancel":
                entry = '{"entry":"cancel","id":"cancel"}'
                expected = self.model.control(task_id, "cancel", "cancel", entry)
                self._posted(task_id, entry, expected, self.verbs.cancel(task_id))
            else:
                expected = self.model.control(task_id, "event", what, what)
                self._posted(task_id, what, expected, self.verbs.event(task_id, what))

    def _posted(self, task_id: str, entry: str, expected: tuple[str, str], answer: tuple[str, str]) -> None:
        assert answer == expected
        self.say(f"control {answer[0]}")
        if answer[0] == "OK" and answer[1] != "CANCELLED":
            self.posted.setdefault(task_id, []).append(entry)

    # workers

    @rule(number=PICK, slots=st.sampled_from([0, 1, 2, 4, 7]), reserve=st.integers(0, 1))
    def claim(self, number: int, slots: int, reserve: int) -> None:
        self._claim(self.workers[number % 3], slots, slots + reserve)

    def _claim(self, worker: Worker, slots: int, urgent_slots: int) -> None:
        register, knows = not worker.registered, [f"{one}@1" for one in worker.knows]
        expected = self.model.claim(worker.owner, slots, urgent_slots, worker.knows, register=register)
        claim = self.verbs.claim(worker.owner, slots, urgent_slots, register=register, knows=knows, renew_ms=HOUR_MS)
        if claim is None or expected is None:
            assert (claim, expected) == (None, None)
            self.say("claim LOST")
            worker.begin()
            return
        worker.registered = True
        assert claim.ids == expected
        for one in claim.taken:
            m = self.model.missions[one.task_id]
            assert one[1:4] == (m.fence, m.rev, m.seq)
            assert (one.unread, one.deaths, one.state) == (tuple(m.unread), m.deaths, m.state)
            assert one.fence > self.leased.get(one.task_id, ("", 0))[1]
            self.leased[one.task_id] = (worker.owner, one.fence)
            worker.hands[one.task_id] = Hand(one.task_id, one.fence, one.rev, one.unread)
            self.say("claimed")
        for m in self.model.missions.values():
            if m.place == "parked" and m.parked_at is None:
                m.parked_at = int(self.verbs.record(m.task_id)["parked_at"])  # the one time that orders anything
                self.say("parked")

    @rule(number=PICK, slots=st.integers(1, 3), moves=MOVES, outcome=OUTCOME, fate=FATE)
    def work(self, number: int, slots: int, moves: list[Move], outcome: Outcome, fate: str) -> None:
        """A worker's usual round."""
        self._claim(self.workers[number % 3], slots, slots)
        self.flush(self.workers[number % 3], moves, outcome, fate)

    @rule(number=PICK, moves=MOVES, outcome=OUTCOME, fate=FATE)
    def commit(self, number: int, moves: list[Move], outcome: Outcome, fate: str) -> None:
        self.flush(self.busy(number), moves, outcome, fate)

    def flush(self, worker: Worker, moves: list[Move], outcome: Outcome, fate: str) -> None:
        """All that a worker has in hand, in one flush; what it waits an answer for is sent again as it was."""
        state, undoing, wake_at = outcome
        writes = []
        for hand, move in zip(worker.hands.values(), moves, strict=False):
            if hand.pending is None:
                told = DEADLINE in (*self.consumed.get(hand.task_id, ()), *hand.entries)
                until = FAR if told and wake_at is None else wake_at  # past its deadline nothing waits for an event
                hand.pending = _write(hand, move, state, undoing=undoing, wake_at=until)
                self.sent.append(Sent(worker.owner, hand.pending, hand.entries))
            writes.append(self._sent(worker.owner, hand.pending))
        if writes and fate != "lost":
            self._commit(worker, writes, heard=fate == "heard")

    def _sent(self, owner: str, write: Write) -> Sent:
        return next(one for one in self.sent if one.owner == owner and one.write is write)

    def _commit(self, worker: Worker | None, sent: list[Sent], *, heard: bool) -> None:
        expected = [self.model.commit(one.owner, one.write) for one in sent]
        answers = self.verbs.commit(sent[0].owner, *(one.write for one in sent))
        assert answers == expected
        for one, answer in zip(sent, answers, strict=True):
            write = one.write
            self.say(f"commit {answer.word}")
            if answer.word == "OK":
                assert self.leased[write.task_id] == (one.owner, write.fence), "accepted from a wrong fence"
                assert (write.task_id, write.rev) not in self.applied, "one rev, two commits"
                self.applied.add((write.task_id, write.rev))
                self.consumed.setdefault(write.task_id, []).extend(one.entries)
            if worker is not None and heard:
                _hear(worker, write, answer.word, answer.unread)

    @precondition(lambda self: self.sent)
    @rule(number=st.integers(0, 63), aim=st.booleans())
    def late_copy(self, number: int, aim: bool) -> None:
        """A commit arrives again, or only now, where it could do harm; its sender does not hear of it."""
        found = (self._nearly() if aim else []) or self.sent
        self._commit(None, [found[number % len(found)]], heard=False)

    def _nearly(self) -> list[Sent]:
        """Commits that one guard alone keeps out: the lease, the fence, or the rev."""
        found = []
        for one in self.sent:
            if m := self.model.missions.get(one.write.task_id):
                lease = (m.place, m.owner) == ("leased", one.owner)
                if lease + (m.fence == one.write.fence) + (m.rev == one.write.rev) == 2:
                    found.append(one)
        return found

    @rule(
        number=PICK, what=st.sampled_from(["renew", "release", "bounce", "bounce", "late release", "resign", "crash"])
    )
    def worker(self, number: int, what: str) -> None:
        worker = self.busy(number)
        match what:
            case "renew":
                self._renew(worker)
            case "resign":
                expected = self.model.resign(worker.owner)
                assert self.verbs.resign(worker.owner) == expected
                if expected == "OK":
                    worker.begin()
            case "crash":
                worker.begin()
            case "release" | "bounce" if worker.hands:
                hand = list(worker.hands.values())[number % len(worker.hands)]
                self._release(worker.owner, hand.task_id, hand.fence)
                del worker.hands[hand.task_id]
                if what == "bounce":
                    self._claim(worker, 2, 2)
            case "late release" if found := self._nearly() or self.sent:
                sent = found[number % len(found)]
                self._release(sent.owner, sent.write.task_id, sent.write.fence)

    def _renew(self, worker: Worker) -> None:
        expected = self.model.renew(worker.owner)
        assert self.verbs.renew(worker.owner) == expected
        if expected is None and worker.registered:
            self.say("renew LOST")
            worker.begin()

    def _release(self, owner: str, task_id: str, fence: int) -> None:
        expected = self.model.release(owner, task_id, fence)
        assert self.verbs.release(owner, (task_id, fence)) == [expected]
        self.say(f"release {expected}")

    # mishaps, and time

    @precondition(lambda self: self.model.owners)
    @rule(
        number=PICK, other=PICK, fate=st.sampled_from(["dead", "dead", "asleep", "back", "back, then dead", "frozen"])
    )
    def taken_over(self, number: int, other: int, fate: str) -> None:
        """A worker dies, or sleeps for long, and another looks twice; or it is back in time, or Redis stood still."""
        worker = self.busy(number)
        if worker.owner in self.model.owners:
            self._lapse(worker.owner)
            lapsed = worker.owner
            if fate == "dead":
                worker.begin()
            self._claim(self.workers[other % 3], 0, 0)
            self._renewals_pass()
            if fate.startswith("back") and lapsed in self.model.owners:
                self._renew(worker)
                if fate != "back":
                    self._lapse(lapsed)
            if fate == "frozen":
                self._freeze()
            self._claim(self.workers[other % 3], 1, 1)

    @rule(
        number=PICK,
        what=st.sampled_from(
            ["lapse", "renewals pass", "freeze", "wake", "wake", "deadline", "rows", "retention", "disconnect"]
        ),
    )
    def time(self, number: int, what: str) -> None:
        match what:
            case "lapse" if owners := sorted(self.model.owners):
                self._lapse(owners[number % len(owners)])
            case "renewals pass":
                self._renewals_pass()
            case "freeze":
                self._freeze()
            case "wake":
                self._wake_time_comes(self.pick(number, "waiting"))
            case "deadline":
                self._deadline_comes(self.pick(number))
            case "rows":
                self._rows_are_carried_out(self.pick(number, "ended"))
            case "retention":
                self._retention_passes(self.pick(number, "ended"))
            case "disconnect" if attended := sorted(self.model.attended):
                self._watchers_lapse(attended[number % len(attended)])

    @rule(number=PICK, verb=st.sampled_from(["sweep", "sweep", "retire", "retire one", "abandon"]))
    def tidy(self, number: int, verb: str) -> None:
        if verb == "retire one" and (m := self.pick(number, "ended")):
            if number % 2:
                self._rows_are_carried_out(m)
            self._retention_passes(m)
        match verb:
            case "sweep":
                self._sweep()
            case "abandon":
                self._abandon()
            case _:
                assert self.verbs.retire()[0] == self.model.retire()

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
        if m is not None and m.place == "waiting" and m.wake_at is not None:
            m.wake_at = 1
            self.verbs.redis.hset(self.verbs.key(f"mission:{m.task_id}"), "wake_at", 1)
            self.verbs.set_score("timers", m.task_id, 1)

    def _deadline_comes(self, m: Mission | None) -> None:
        if m is not None and m.armed:
            m.due = True
            self.verbs.set_score("deadlines", m.task_id, 1)

    def _sweep(self) -> None:
        told = [m for m in self.model.missions.values() if m.armed and m.due]
        assert self.verbs.sweep()[0] == self.model.sweep()
        for m in told:
            self.say(f"deadline, then {m.place}")
            if m.place != "ended":
                self.posted.setdefault(m.task_id, []).append(DEADLINE)

    def _watchers_lapse(self, task_id: str) -> None:
        self.model.attended[task_id] = True
        self.verbs.set_score("attended", task_id, 1)

    def _abandon(self) -> None:
        unread = {m.task_id: len(m.unread) for m in self.model.missions.values()}
        assert self.verbs.abandon()[0] == self.model.abandon()
        for m in self.model.missions.values():
            if m.place != "ended" and len(m.unread) > unread[m.task_id]:
                self.posted.setdefault(m.task_id, []).append(m.unread[-1])
                self.say(f"abandoned in {m.place}")

    def _retention_passes(self, m: Mission | None) -> None:
        if m is not None:
            m.over = True
            self.verbs.set_score("retire", m.task_id, 1)

    def _rows_are_carried_out(self, m: Mission | None) -> None:
        if m is not None and m.rows:
            m.rows = 0
            self.verbs.redis.delete(self.verbs.key(f"outbox:{m.task_id}"))
            self.verbs.redis.zrem(self.verbs.key("outboxes"), m.task_id)

    # what holds after every step

    @invariant()
    def the_shard_agrees_with_itself_and_with_the_model(self) -> None:
        shard = read(self.verbs.redis)
        assert faults(shard) == []
        assert set(shard.all("mission")) == set(self.model.missions)
        assert shard.all("target") == self.model.holds
        assert set(shard.get("owners")) == set(self.model.owners)
        assert set(shard.get("attended")) == set(self.model.attended)
        for m in self.model.missions.values():
            _same(shard, m)
            if m.place != "ended":
                posted, consumed = self.posted.get(m.task_id, []), self.consumed.get(m.task_id, [])
                assert posted == [*consumed, *m.unread], "an entry is lost, doubled, or out of order"

    # and at the end

    def teardown(self) -> None:
        try:
            self._finish()
        finally:
            self.feed.close()
            self.verbs.redis.close()

    def _finish(self) -> None:
        last = Worker("last", ("t", "u"))
        for owner in tuple(self.model.owners):
            self._lapse(owner)
        self._claim(last, 0, 0)
        self._renewals_pass()
        for lap in range(4 * MOST):
            for m in self.model.missions.values():
                self._wake_time_comes(m)
                if lap > 2 * MOST:
                    self._deadline_comes(m)
            self._sweep()
            self._claim(last, 50, 50)
            for hand in last.hands.values():
                hand.pending = _write(hand, "end", "A", undoing=False, wake_at=None)
                self.sent.append(Sent(last.owner, hand.pending, hand.entries))
            if writes := [self._sent(last.owner, hand.pending) for hand in last.hands.values() if hand.pending]:
                self._commit(last, writes, heard=True)
            self.the_shard_agrees_with_itself_and_with_the_model()
            if all(m.place == "ended" for m in self.model.missions.values()):
                break
        assert [m for m in self.model.missions.values() if m.place != "ended"] == [], "driven fairly, and not ended"
        self._nothing_is_left(last)

    def _nothing_is_left(self, last: Worker) -> None:
        logs = {m.task_id: self.verbs.log(m.task_id) for m in self.model.missions.values()}
        self._the_feed_was_told(logs)
        for m in self.model.missions.values():
            self._rows_are_carried_out(m)
            self._retention_passes(m)
        for task_id in tuple(self.model.attended):
            self._watchers_lapse(task_id)
        self._abandon()
        self._claim(last, 50, 50)
        assert self.verbs.retire()[0] == self.model.retire()
        assert leftovers(read(self.verbs.redis)) == []

    def _the_feed_was_told(self, logs: dict[str, list[dict[str, Any]]]) -> None:
        """Each event once, in order, and each result once: nothing was lost on this connection."""
        told: dict[str, list[object]] = {}
        results: Counter[str] = Counter()
        while (message := self.feed.get_message(timeout=0)) is not None or self.feed.connection.can_read(timeout=0):
            if message is not None:
                task_id, *lines = message["data"].decode().split("\n")
                told.setdefault(task_id, []).extend(json.loads(line[1:]) for line in lines if line[0] == "E")
                results[task_id] += sum(line[0] == "R" for line in lines)
        for task_id, log in logs.items():
            if self.model.missions[task_id].priority != "bulk":
                assert told[task_id] == log
                assert results[task_id] == 1, "a result is told once"


def _write(hand: Hand, move: Move, state: str, *, undoing: bool, wake_at: int | None) -> Write:
    status = {"end": "SUCCEEDED", "wait": "WAITING", "leave": "WAITING"}.get(move, "RUNNING")
    if undoing and move != "end":
        status = "COMPENSATING"
    wake_at = wake_at if move in ("wait", "leave") else None
    rows = ("row",) if move == "end" and undoing else ()
    events = (event(status, state),) * (len(state) + (move == "end"))
    return Write(
        hand.task_id, hand.fence, hand.rev, len(hand.entries), move, status, state, "", events, wake_at, rows=rows
    )


def _hear(worker: Worker, write: Write, word: str, unread: tuple[str, ...]) -> None:
    """What a worker makes of an answer."""
    hand = worker.hands[write.task_id]
    hand.pending = None
    if word == "SIGNALLED":
        hand.entries = unread
    elif word in ("OK", "DUPLICATE") and write.move == "stay":
        hand.rev, hand.entries = hand.rev + 1, ()
    else:
        del worker.hands[write.task_id]


def _same(shard: Shard, m: Mission) -> None:
    record = shard.get("mission", m.task_id)
    assert (record["place"], record["status"], record["state"]) == (m.place, m.status, m.state)
    numbers = {name: int(record.get(name, 0)) for name in ("rev", "seq", "fence", "deaths", "order")}
    assert numbers == {"rev": m.rev, "seq": m.seq, "fence": m.fence, "deaths": m.deaths, "order": m.order}
    assert list(dict(shard.get("inbox", m.task_id)).values()) == m.unread
    assert set(shard.get("inbox_ids", m.task_id)) == m.seen
    assert (m.task_id in shard.get("deadlines")) == m.armed
    assert len(shard.get("outbox", m.task_id)) == m.rows
    if m.place == "leased":
        assert record["owner"] == m.owner


WORDS: Final = (
    "claimed",
    "parked",
    "claim LOST",
    *(f"commit {word}" for word in ("OK", "DUPLICATE", "FENCED", "SIGNALLED")),
    *(f"control {word}" for word in ("OK", "DUPLICATE", "ENDED", "GONE")),
    "release OK",
    "release FENCED",
)
"""What a run that is worth anything has met."""
RARE: Final = ("renew LOST", "commit GONE", "abandoned in lane", "abandoned in leased", "deadline, then parked")


def explore(
    url: str, examples: int, steps: int, scripts: Mapping[str, Script] = SCRIPTS, phases: Sequence[Phase] = tuple(Phase)
) -> Counter[str]:
    """Run so many examples; how often each thing was met."""

    class Machine(Interleavings):
        """One run's."""

    Machine.url, Machine.said, Machine.scripts = url, Counter(), scripts
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=phases,
        database=settings().database if scripts is SCRIPTS else None,  # what breaks a mutant proves nothing later
        print_blob=True,
    )
    run_state_machine_as_test(Machine, settings=options)
    return Machine.said


def test_random_interleavings_keep_every_promise(redis_url: str) -> None:
    said = explore(redis_url, 200, 50)
    assert [word for word in WORDS if not said[word]] == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_random_interleavings_keep_every_promise(redis_url: str) -> None:
    examples = int(os.environ.get("DUALLOOP_TEST_EXAMPLES", "3000"))
    said = explore(redis_url, examples, 80)
    assert [word for word in (*WORDS, *RARE) if not said[word]] == []


CORE: Final = frozenset(
    {
        "a_held_target_is_waited_for_out_of_the_lane",
        "a_hold_given_up_goes_to_the_best_waiter",
        "a_kept_hold_stays_through_the_wait",
        "a_late_copy_is_fenced_once_somebody_has_claimed",
        "a_lease_that_was_renewed_between_the_looks_begins_anew",
        "a_leased_mission_is_never_ended_here",
        "a_leased_mission_is_told_not_ended",
        "a_mission_that_committed_is_never_ended_here",
        "a_stale_fence_is_fenced",
        "a_stale_rev_is_fenced",
        "an_entry_id_is_taken_once_a_run",
        "an_entry_that_came_after_the_read_is_signalled",
        "an_unparked_mission_whose_target_is_held_waits_for_it",
        "an_unread_entry_is_signalled_to_every_commit",
        "no_mission_goes_before_its_rows_are_carried_out",
        "one_look_is_not_enough",
        "parking_passes_the_hold_on",
        "the_fence_is_drawn_once_a_script_and_only_rises",
        "the_same_commit_again_is_a_duplicate",
        "what_waits_is_moved_towards_its_lane_in_the_same_step",
        "what_was_released_is_fenced",
    }
)
"""Guards that a random search has to miss too: if it does not, it searches in the wrong places."""


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutant", [pytest.param(one, id=f"{one.test} {n}") for n, one in enumerate(MUTANTS) if one.test in CORE]
)
def test_a_guard_that_is_taken_out_is_found_by_chance(redis_url: str, mutant: Mutant) -> None:
    scripts = mutant.scripts()
    with pytest.raises((AssertionError, redis.ResponseError, KeyError)):
        explore(redis_url, 600, 50, scripts, (Phase.generate,))
