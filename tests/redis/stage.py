"""What the random search plays with: each move is made on the real shard and on the model, and the answers compared."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from tests.redis.audit import Shard, faults, leftovers, read
from tests.redis.model import DEADLINE, Mission
from tests.redis.model_places import Places
from tests.redis.scripts_client import FAR, HOUR_MS, Move, Write, event
from tests.redis.stage_base import MOST, Hand, Sent, Worker
from tests.redis.stage_operator import Operators
from tests.redis.stage_time import Time

Outcome = tuple[str, bool, int | None, str]
"""State, whether it is being undone, wake time of a wait, what else: `act`, `permit`, `kept`, `runs` or nothing."""


class Stage(Time, Operators):
    """Workers' rounds, and what must agree after every step."""

    def _claim(self, worker: Worker, slots: int, urgent_slots: int) -> None:
        register, knows = not worker.registered, [f"{one}@1" for one in worker.knows]
        kinds = [one.decode().removesuffix("@1") for one in self._parked_types()]
        expected = self.model.claim(worker.owner, (slots, urgent_slots), worker.knows, kinds, register=register)
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
            assert (one.unread, one.deaths, one.toll, one.state) == (tuple(m.unread), m.deaths, m.toll, m.state)
            assert (one.run, one.key_run) == (m.run, m.key_run)
            assert one.lane.partition(":")[0] in (m.own, m.priority)  # it may have been raised since, by the same claim
            assert one.fence > self.leased.get(one.task_id, 0)
            self.leased[one.task_id] = one.fence
            worker.hands[one.task_id] = Hand(one.task_id, one.fence, one.rev, one.unread)
            self.say("claimed")
        for m in self.model.missions.values():
            if m.place == "parked" and m.parked_at is None:
                m.parked_at = int(self.verbs.record(m.task_id)["parked_at"])  # the one time that orders anything
                self.say("parked")
            if m.place == "ended" and m.task_id in self.posted:
                self.say("convicted")
            self.a_run_is_over(m)

    def _parked_types(self) -> list[bytes]:
        """In the order in which a script sees them."""
        key = self.verbs.key("parked_types")
        return list(self.verbs.redis.eval("return redis.call('SMEMBERS', KEYS[1])", 1, key))

    def flush(self, worker: Worker, moves: list[Move], outcome: Outcome, fate: str) -> None:
        """All that a worker has in hand, in one flush; what it waits an answer for is sent again as it was."""
        writes = []
        for hand, move in zip(worker.hands.values(), moves, strict=False):
            if hand.pending is None:
                hand.pending = self._write(hand, move, outcome)
                self.sent.append(Sent(worker.owner, hand.pending, hand.entries))
            writes.append(self._sent(worker.owner, hand.pending))
        if writes and fate != "lost":
            self._commit(worker, writes, heard=fate == "heard")

    def _write(self, hand: Hand, move: Move, outcome: Outcome) -> Write:
        state, undoing, wake_at, more = outcome
        told = DEADLINE in (*self.consumed.get(hand.task_id, ()), *hand.entries)
        wake_at = FAR if told and wake_at is None else wake_at  # past its deadline nothing waits for an event
        m = self.model.missions.get(hand.task_id)
        act = more == "act" and move == "stay" and m is not None and bool(m.latest)
        if more == "permit":
            wake_at = FAR if wake_at is None else wake_at
        made = make(hand, move, state, undoing=undoing, wake_at=wake_at, act=act, permit=more == "permit")
        if m is not None and more in ("kept", "runs") and move in ("stay", "offer", "yield"):  # the handler goes on
            midway: Literal["kept", "runs"] = "kept" if more == "kept" else "runs"
            made = replace(made, state=m.state, events=made.events[1:], midway=midway)
        said = self._said(hand) if state == "B" else ""
        return replace(made, begins=act and bool(m and m.permits), progress=said)  # who has permits is about to begin

    def _said(self, hand: Hand) -> str:
        """What its handler says of its progress."""
        self.words += 1
        return f'{{"done":{self.words},"of":"{hand.task_id}"}}'

    def _say(self, worker: Worker, number: int, *, late: bool) -> None:
        """Handlers say how far they are; or what one has said arrives late, under a lease or a commit of before."""
        hands = list(worker.hands.values())[: number + 1]
        said = [
            (one.task_id, one.fence - (late and number % 2), max(0, one.rev - late), self._said(one)) for one in hands
        ]
        if said:
            expected = [self.model.progress(worker.owner, *one) for one in said]
            assert self.verbs.progress(worker.owner, *said) == expected
            for word in expected:
                self.say(f"progress {word}")

    def _sent(self, owner: str, write: Write) -> Sent:
        return next(one for one in self.sent if one.owner == owner and one.write is write)

    def _commit(self, worker: Worker | None, sent: list[Sent], *, heard: bool) -> None:
        expected = [self.model.commit(one.owner, one.write) for one in sent]
        answers = self.verbs.commit(sent[0].owner, *(one.write for one in sent))
        assert answers == expected
        for one, answer in zip(sent, answers, strict=True):
            write = one.write
            self.say(f"commit {answer.word}")
            if answer.word in ("OK", "YIELDED"):
                assert self.leased[write.task_id] == write.fence, "accepted from a wrong fence"
                assert (write.task_id, write.rev) not in self.applied, "one rev, two commits"
                self.applied.add((write.task_id, write.rev))
                self.consumed.setdefault(write.task_id, []).extend(one.entries)
                self.a_run_is_over(self.model.missions[write.task_id])
            if worker is not None and heard:
                self._hear(worker, write, answer.word, answer.unread)

    def _hear(self, worker: Worker, write: Write, word: str, unread: tuple[str, ...]) -> None:
        """What a worker makes of an answer."""
        hand = worker.hands[write.task_id]
        hand.pending = None
        if word == "SIGNALLED":
            hand.entries = unread
        elif (word == "OK" and write.move in ("stay", "offer")) or (word == "DUPLICATE" and write.move == "stay"):
            hand.rev, hand.entries, hand.scopes = hand.rev + 1, (), ()
        elif word != "SUPERSEDED":
            if word == "DUPLICATE" and write.move == "offer":  # whether it was taken up is not known
                self._release(worker.owner, hand.task_id, hand.fence)
            del worker.hands[write.task_id]

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

    def _finish(self) -> None:
        """Driven fairly: by time, sweeps and one worker alone, everything ends."""
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
                    self._pause_limit_comes(m)
            self._sweep(park_limit=False)
            self._claim(last, 50, 50)
            for hand in last.hands.values():
                hand.pending = make(hand, "end", "A", undoing=False, wake_at=None)
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
        passed: dict[str, list[object]] = {}
        results: Counter[str] = Counter()
        while (message := self.feed.get_message(timeout=0)) is not None or self.feed.connection.can_read(timeout=0):
            if message is not None:
                task_id, *lines = message["data"].decode().split("\n")
                told.setdefault(task_id, []).extend(json.loads(line[1:]) for line in lines if line[0] == "E")
                results[task_id] += sum(line[0] == "R" for line in lines)
                passed.setdefault(task_id, []).extend(
                    json.loads(line[1:])["progress"] for line in lines if line[0] == "P"
                )
        for task_id, log in logs.items():
            if task_id not in self.model.attended and self.verbs.record(task_id).get("watchers"):
                assert told[task_id] == log
                assert passed.get(task_id, []) == [json.loads(one) for one in self.model.missions[task_id].passed]
                assert results[task_id] == self.model.missions[task_id].ends, "a result is told once"

    def agree(self) -> None:
        """The shard agrees with itself, with the model, and with what was posted and consumed."""
        shard = read(self.verbs.redis)
        assert faults(shard) == []
        assert set(shard.all("mission")) == set(self.model.missions)
        assert shard.all("target") == self.model.holds
        assert set(shard.get("owners")) == set(self.model.owners)
        assert set(shard.get("attended")) == set(self.model.attended)
        assert {name: set(one) for name, one in shard.all("intents").items()} == _filled(self.model.intents)
        assert {name: set(one) for name, one in shard.all("permits").items()} == _filled(self.model.permits)
        assert set(shard.get("dead_letters")) == {m.task_id for m in self.model.missions.values() if m.dead}
        _lines(shard, self.model)
        for m in self.model.missions.values():
            _same(shard, m)
            if m.place != "ended":
                posted, consumed = self.posted.get(m.task_id, []), self.consumed.get(m.task_id, [])
                assert posted == [*consumed, *m.unread], "an entry is lost, doubled, or out of order"


def make(
    hand: Hand, move: Move, state: str, *, undoing: bool, wake_at: int | None, act: bool = False, permit: bool = False
) -> Write:
    """A commit of what a worker has in hand."""
    waits = move in ("wait", "leave", "pause")
    ends = move in ("end", "bury")
    status = {"end": "SUCCEEDED", "bury": "FAILED", "wait": "WAITING", "leave": "WAITING"}.get(move, "RUNNING")
    if undoing and not ends:
        status = "COMPENSATING"
    waiting_for = "permit" if permit else "event" if wake_at is None else "timer"
    if not waits or (move == "pause" and wake_at is None):
        waiting_for = ""
    if move == "bury":
        waiting_for = state
    rows = ("row",) if ends and undoing else ()
    events = (event(status, state),) * (len(state) + ends)
    head = (hand.task_id, hand.fence, hand.rev, len(hand.entries), move, status, state, "", events)
    return Write(*head, wake_at if waits else None, waiting_for, rows=rows, act=act)


def _filled(sets: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    return {name: set(one) for name, one in sets.items() if one}


def _lines(shard: Shard, model: Places) -> None:
    """Who waits for a target, in which order."""
    for target, line in shard.all("waiters").items():
        expected = [one.task_id for one in model.behind(Mission("", 0, target=target))]
        assert list(line) == expected
    for scope, line in shard.all("permit_queue").items():
        assert list(line) == sorted(model.queues[scope], key=lambda one: model.queues[scope][one])


def _same(shard: Shard, m: Mission) -> None:
    record = shard.get("mission", m.task_id)
    assert (record["place"], record["status"], record["state"]) == (m.place, m.status, m.state)
    names = ("rev", "seq", "fence", "deaths", "solo_deaths", "toll", "order")
    numbers = {name: int(record.get(name, 0)) for name in names}
    assert numbers == {name: getattr(m, name) for name in names}
    assert (record["lane"], record.get("base", "")) == (f"{m.priority}:default:a", m.base)
    assert int(record.get("run", 1)) == m.run
    assert record.get("was", "") == m.was
    assert record.get("failed_in", "") == m.failed_in
    assert (record.get("progress", ""), "progress_at" in record) == (m.progress, bool(m.progress))
    assert tuple(record.get("permits", "").split()) == m.permits
    assert list(dict(shard.get("inbox", m.task_id)).values()) == m.unread
    assert set(shard.get("inbox_ids", m.task_id)) == m.seen
    assert (m.task_id in shard.get("deadlines")) == m.armed
    assert len(shard.get("outbox", m.task_id)) == m.rows
    if m.place == "ended":
        assert json.loads(shard.get("result", m.task_id))["progress"] == json.loads(m.progress or "null")
    if m.place == "lane":
        assert (record["ready_at"] == "1") == m.old, "who comes into his lane anew has not waited there for long"
    if m.place == "leased":
        assert record["owner"] == m.owner
