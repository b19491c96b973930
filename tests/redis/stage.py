"""What the random search plays with: workers, the commits they sent, time, and the model beside the real shard."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import redis

from shared.scripts import SCRIPTS, Script
from tests.redis.audit import Shard, faults, leftovers, read
from tests.redis.model import Mission, Model
from tests.redis.scripts_client import FAR, HOUR_MS, Move, New, Verbs, Write, event

Outcome = tuple[str, bool, int | None]
"""State, whether it is being undone, wake time of a wait."""

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


class Stage:
    """A few workers on one shard, with the model beside it; each move is made on both, and the answers are compared.

    Set `url` before it is made; `scripts`, where others than the product's are to be driven.
    """

    url: ClassVar[str]
    scripts: ClassVar[Mapping[str, Script]] = SCRIPTS
    said: ClassVar[Counter[str]]

    def __init__(self) -> None:
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

    def _at(self, task_id: str) -> str:
        """The place of a mission, by the model."""
        return self.model.missions[task_id].place if task_id in self.model.missions else "gone"

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

    def _posted(self, task_id: str, entry: str, expected: tuple[str, str], answer: tuple[str, str]) -> None:
        assert answer == expected
        self.say(f"control {answer[0]}")
        if answer[0] == "OK" and answer[1] != "CANCELLED":
            self.posted.setdefault(task_id, []).append(entry)

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

    def _nearly(self) -> list[Sent]:
        """Commits that one guard alone keeps out: the lease, the fence, or the rev."""
        found = []
        for one in self.sent:
            if m := self.model.missions.get(one.write.task_id):
                lease = (m.place, m.owner) == ("leased", one.owner)
                if lease + (m.fence == one.write.fence) + (m.rev == one.write.rev) == 2:
                    found.append(one)
        return found

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
            self.agree()
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

    def agree(self) -> None:
        """The shard agrees with itself, with the model, and with what was posted and consumed."""
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
