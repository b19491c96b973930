"""The scripts as plain blocking calls, with typed answers: what every test of this folder speaks.

`Verbs` runs the very texts of `shared.scripts`, or the ones a test hands in (`mutants.py` breaks a guard that way).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import redis

from shared import keys
from shared.scripts import SCRIPTS, Script
from tests import waiting
from tests.redis import items
from tests.redis.items import FAR, HOUR_MS, STATUS, Answer, Claim, Move, New, Said, Taken, Write, event

__all__ = ["FAR", "HOUR_MS", "STATUS", "Answer", "Claim", "Move", "New", "Said", "Taken", "Verbs", "Write", "event"]

DEAD_MS: Final = 2 * HOUR_MS
"""How long dead letters are kept."""


@dataclass(slots=True)
class Verbs:
    """The verbs on one shard.

    Args:
        redis: a blocking client.
        shard: whose keys.
        scripts: other texts than the product's.
    """

    redis: Any  # a redis.Redis; its stubs say of every answer that it may have to be awaited
    shard: int = 0
    scripts: Mapping[str, Script] = field(default_factory=lambda: SCRIPTS, repr=False)
    _registered: set[str] = field(default_factory=set)

    def run(self, verb: str, *args: str | bytes | float) -> Any:
        """Any verb, untyped."""
        script = self.scripts[verb]
        try:
            return self.redis.evalsha(script.sha, 1, self.key(""), *map(_text, args))
        except redis.exceptions.NoScriptError:
            return self.redis.eval(script.text, 1, self.key(""), *map(_text, args))

    def key(self, name: str) -> str:
        """A key of the shard."""
        return keys.prefix(self.shard) + name

    def accept(self, *new: New) -> list[str]:
        """A word per item."""
        return _words(self.run("accept", *(arg for one in new for arg in one.args()))[1:])

    def claim(
        self,
        owner: str = "w1",
        slots: int = 50,
        urgent_slots: int | None = None,
        *,
        register: bool | None = None,
        lease_ms: int = HOUR_MS,
        renew_ms: int = 20,
        poll_ms: int = HOUR_MS,
        pools: str = "default",
        knows: Iterable[str] = ("t@1",),
        retention_ms: int = HOUR_MS,
        dead_retention_ms: int = DEAD_MS,
    ) -> Claim | None:
        """None: LOST. An owner registers with its first claim, unless `register` says otherwise."""
        first = owner not in self._registered if register is None else register
        self._registered.add(owner)
        urgent_slots = slots if urgent_slots is None else urgent_slots
        kinds = f",{','.join(knows)},"
        times = (lease_ms, renew_ms, poll_ms)
        kept = (retention_ms, dead_retention_ms)
        answer = self.run("claim", owner, int(first), *times, slots, urgent_slots, pools, kinds, *kept)
        if answer == b"LOST":
            return None
        return Claim(answer[0], answer[1], tuple(map(items.taken, answer[2])))

    def take(self, owner: str = "w1", slots: int = 50, **options: Any) -> dict[str, Taken]:
        """Claim, and the missions by id; the lease must be good."""
        claim = self.claim(owner, slots, **options)
        assert claim is not None, f"{owner} has lost its lease"
        return {one.task_id: one for one in claim.taken}

    def commit(
        self, owner: str, *writes: Write, retention_ms: int = HOUR_MS, dead_retention_ms: int = DEAD_MS
    ) -> list[Answer]:
        """An answer per item."""
        head = (retention_ms, dead_retention_ms)
        answers = self.run("commit", owner, *head, *(arg for write in writes for arg in write.args()))
        return [items.answer(one) for one in answers[1:]]

    def progress(self, owner: str, *said: tuple[str, int, int, str]) -> list[str]:
        """A word per (id, fence, rev, progress)."""
        return _words(self.run("progress", owner, *(part for one in said for part in one))[1:])

    def release(self, owner: str, *held: tuple[str, int]) -> list[str]:
        """A word per (id, fence)."""
        return _words(self.run("release", owner, *(part for one in held for part in one)))

    def carry(self, hold_ms: int = HOUR_MS, most: int = 20) -> tuple[int, list[tuple[str, str, int]]]:
        """Ms until the next outbox's turn or -1; of those whose turn it is: id, oldest row, age of its intent."""
        due_ms, found = self.run("carry", hold_ms, most)
        return due_ms, [(one[0].decode(), one[1].decode(), int(one[2])) for one in found]

    def carried(self, task_id: str, row: str, verdict: str = "done", ms: int = HOUR_MS, kept: str = "") -> str:
        """The next row, or nothing."""
        return str(self.run("carried", task_id, row, verdict, ms, kept).decode())

    def rows(self, task_id: str) -> list[str]:
        """Its outbox."""
        return [one.decode() for one in self.redis.lrange(self.key(f"outbox:{task_id}"), 0, -1)]

    def renew(self, owner: str, lease_ms: int = HOUR_MS, poll_ms: int = HOUR_MS) -> set[str] | None:
        """Missions with unread entries; None: LOST."""
        answer = self.run("renew", owner, lease_ms, poll_ms)
        return None if answer == b"LOST" else {one.decode() for one in answer[2]}

    def resign(self, owner: str) -> str:
        """OK or HOLDS."""
        return str(self.run("resign", owner).decode())

    def control(
        self,
        task_id: str,
        verb: str,
        entry_id: str,
        entry: str = "",
        *,
        reason: str = "",
        note: str = "null",
        run: int | str = "",
    ) -> Said:
        """Any verb of control; `run` is what a message between missions is about."""
        entry = entry or items.entry(verb, by=None)
        answer = self.run("control", task_id, verb, entry_id, entry, reason, HOUR_MS, note, run)
        return Said._make(one.decode() for one in answer)

    def cancel(self, task_id: str, entry_id: str = "cancel", reason: str = "requested") -> tuple[str, str]:
        """The word, and the status as of now."""
        entry = f'{{"entry":"cancel","id":"{entry_id}"}}'
        return self.control(task_id, "cancel", entry_id, entry, reason=reason)[:2]

    def event(self, task_id: str, entry_id: str) -> tuple[str, str]:
        """The word, and the status as of now; the entry is the id."""
        return self.control(task_id, "event", entry_id, entry_id)[:2]

    def pause(self, task_id: str, entry_id: str = "pause") -> tuple[str, str]:
        """The word, and the status as of now."""
        return self.control(task_id, "pause", entry_id, note=items.note("paused", by="op"))[:2]

    def resume(self, task_id: str, entry_id: str = "resume") -> tuple[str, str]:
        """The word, and the status as of now."""
        return self.control(task_id, "resume", entry_id, note=items.note("resumed", by="op"))[:2]

    def prioritize(self, task_id: str, priority: str, note: str | None = None) -> Said:
        """Another lane."""
        note = items.note("priority", to=priority, by="op") if note is None else note
        return Said._make(one.decode() for one in self.run("prioritize", task_id, priority, note))

    def replay(
        self,
        task_id: str,
        start: str = "failed_state",
        key: str = "same",
        *,
        deadline_ms: int = HOUR_MS,
        state: str = "START",
        envelope: str = "",
        note: str | None = None,
    ) -> tuple[str, int]:
        """The word, and the run."""
        note = items.note("replayed", by="op") if note is None else note
        word, run = self.run("replay", task_id, start, key, deadline_ms, state, envelope, note)
        return word.decode(), int(run)

    def discard(self, task_id: str) -> str:
        """OK, RUNNING, ENDED or GONE."""
        return str(self.run("discard", task_id).decode())

    def adopt(self, owner: str, solo: str, task_id: str, fence: int, lease_ms: int = HOUR_MS) -> str:
        """OK or FENCED."""
        return str(self.run("adopt", owner, solo, lease_ms, task_id, fence).decode())

    def permit(self, owner: str, task_id: str, fence: int, **limits: int) -> str:
        """OK, FENCED or BUSY; a scope's colon is written as two underscores."""
        pairs = (part for scope, limit in limits.items() for part in (scope.replace("__", ":"), limit))
        return _words([self.run("permit", owner, task_id, fence, *pairs)])[0]

    def sweep(
        self,
        retention_ms: int = HOUR_MS,
        *,
        dead_retention_ms: int = DEAD_MS,
        pause_limit_ms: int = HOUR_MS,
        park_limit_ms: int = HOUR_MS,
        knows: Iterable[str] = ("t@1",),
        lease_ms: int = HOUR_MS,
    ) -> tuple[int, int]:
        """How many were handled, ms until the next deadline or -1."""
        limits = (pause_limit_ms, park_limit_ms, f",{','.join(knows)},", lease_ms)
        handled, next_ms = self.run("sweep", retention_ms, dead_retention_ms, *limits)
        return handled, next_ms

    def retire(self, again_ms: int = HOUR_MS) -> tuple[int, int]:
        """How many were removed, ms until the next one or -1."""
        removed, next_ms = self.run("retire", again_ms)
        return removed, next_ms

    def watch(self, front: str, ms: int, *task_ids: str) -> list[str]:
        """A word per id."""
        return _words(self.run("watch", front, ms, *task_ids))

    def attend(self, task_id: str, ms: int = HOUR_MS) -> str:
        """OK."""
        return str(self.run("attend", task_id, ms).decode())

    def abandon(self, grace_ms: int = 0) -> tuple[int, int]:
        """How many were handled, ms until the next look or -1."""
        handled, next_ms = self.run("abandon", grace_ms, HOUR_MS)
        return handled, next_ms

    def announce(self, stay_ms: int, rows: Mapping[str, str]) -> int:
        """The counter of changes."""
        return int(self.run("announce", stay_ms, *(part for row in rows.items() for part in row)))

    def now(self) -> int:
        """Redis' own clock, epoch ms."""
        seconds, micros = self.redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def record(self, task_id: str) -> dict[str, str]:
        """The record; empty: gone."""
        return _decoded(self.redis.hgetall(self.key(f"mission:{task_id}")))

    def place(self, task_id: str) -> str:
        """Where the mission stands; `gone` where there is none."""
        return self.record(task_id).get("place", "gone")

    def holder(self, target: str) -> str | None:
        """Who holds a target."""
        raw = self.redis.get(self.key(f"target:{target}"))
        return None if raw is None else str(raw.decode())

    def log(self, task_id: str) -> list[dict[str, Any]]:
        """The events."""
        raw = self.redis.lrange(self.key(f"log:{task_id}"), 0, -1)
        return [json.loads(one) for one in raw]

    def result(self, task_id: str) -> dict[str, Any] | None:
        """The result document."""
        raw = self.redis.get(self.key(f"result:{task_id}"))
        return None if raw is None else dict(json.loads(raw))

    def unread(self, task_id: str) -> list[str]:
        """The inbox."""
        raw = self.redis.lrange(self.key(f"inbox:{task_id}"), 0, -1)
        return [one.decode() for one in raw]

    def score(self, index: str, member: str) -> float | None:
        """A member's wake time, deadline, lease end."""
        score = self.redis.zscore(self.key(index), member)
        return None if score is None else float(score)

    @contextmanager
    def hearing(self, channel: str) -> Iterator[Callable[..., list[bytes]]]:
        """Listen on a channel of the shard; what is given waits for the next message: one, or none in that time."""
        with self.redis.pubsub(ignore_subscribe_messages=True) as heard:
            heard.subscribe(self.key(channel))
            heard.get_message(timeout=30)

            def hear(within: float | None = None) -> list[bytes]:
                message = heard.get_message(timeout=waiting.WITHIN_S if within is None else within)
                return [] if message is None else [message["data"]]

            yield hear

    def set_score(self, index: str, member: str, score: float) -> None:
        """Make time pass for one member of a sorted set: its wake time, deadline, lease end…; it must be there."""
        changed = self.redis.zadd(self.key(index), {member: score}, xx=True, ch=True)
        assert changed or self.redis.zscore(self.key(index), member) == score, f"{member} is not in {index}"


def _text(value: str | bytes | float) -> str | bytes:
    return value if isinstance(value, bytes) else str(value)


def _words(answers: Iterable[bytes | list[bytes]]) -> list[str]:
    return [(one if isinstance(one, bytes) else one[0]).decode() for one in answers]


def _decoded(raw: Any) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in raw.items()}
