"""The scripts as plain blocking calls, with typed answers: what every test of this folder speaks.

`Verbs` runs the very texts of `shared.scripts`, or the ones a test hands in (`mutants.py` breaks a guard that way).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

import redis

from shared import keys
from shared.scripts import SCRIPTS, Script

Move = Literal["stay", "wait", "leave", "yield", "end"]
STATUS: Final[Mapping[Move, str]] = {
    "stay": "RUNNING",
    "wait": "WAITING",
    "leave": "WAITING",
    "yield": "RUNNING",
    "end": "SUCCEEDED",
}
HOUR_MS: Final = 3_600_000
FAR: Final = 9_000_000_000_000
"""A wake time that no test reaches (epoch ms)."""


@dataclass(frozen=True, slots=True)
class New:
    """A mission to accept."""

    task_id: str
    type: str = "t"
    version: int = 1
    lane: str = "normal:default:a"
    target: str = ""
    root: str = ""
    deadline_ms: int = HOUR_MS
    state: str = "START"
    watcher: str = ""
    watch_ms: int = HOUR_MS
    envelope: str = "{}"

    def args(self) -> tuple[str | int, ...]:
        """As accept wants them."""
        placed = (self.task_id, self.type, self.version, self.lane, self.target, self.root, self.deadline_ms)
        return (*placed, self.state, self.watcher, self.watch_ms, self.envelope)


class Taken(NamedTuple):
    """A mission as claim answers it."""

    task_id: str
    fence: int
    rev: int
    seq: int
    type: str
    version: int
    state: str
    document: bytes
    envelope: bytes
    deadline: int
    deaths: int
    run: int
    target: str
    started_at: int
    root: str
    unread: tuple[str, ...]

    def write(self, move: Move = "stay", **changes: Any) -> "Write":
        """The commit of this lease, with all that was unread consumed."""
        made = Write(self.task_id, self.fence, self.rev, len(self.unread), move, STATUS[move])
        return replace(made, **changes)


class Claim(NamedTuple):
    """What claim answers while the lease is good."""

    now: int
    due_ms: int
    taken: tuple[Taken, ...]

    @property
    def ids(self) -> list[str]:
        """Of the missions taken, in order."""
        return [one.task_id for one in self.taken]


@dataclass(frozen=True, slots=True)
class Write:
    """One item of a commit."""

    task_id: str
    fence: int
    rev: int
    consumed: int = 0
    move: Move = "stay"
    status: str = "RUNNING"
    state: str = "NEXT"
    document: str = ""
    events: tuple[str, ...] = ()
    wake_at: int | None = None
    waiting_for: str = ""
    rows: tuple[str, ...] = ()
    middle: str | None = None

    def args(self) -> tuple[str | int, ...]:
        """As commit wants them."""
        head = (self.task_id, self.fence, self.rev, self.consumed, self.move, self.status, self.state, self.document)
        middle = f'"task_id":"{self.task_id}","status":"{self.status}"' if self.middle is None else self.middle
        tail = "\n".join((middle, *self.rows) if self.move == "end" else self.rows)
        wake_at = "" if self.wake_at is None else self.wake_at
        return (*head, "\n".join(self.events), wake_at, self.waiting_for, tail)


class Answer(NamedTuple):
    """What commit says of one item: a word, and the seq of an `OK` or the entries of a `SIGNALLED`."""

    word: str
    seq: int = 0
    unread: tuple[str, ...] = ()


def event(status: str = "RUNNING", state: str = "NEXT", data: object = None) -> str:
    """An event as a worker sends it: the script puts seq and time in front."""
    return f'"status":"{status}","state":"{state}","data":{json.dumps(data)}}}'


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

    def accept(self, *items: New) -> list[str]:
        """A word per item."""
        return _words(self.run("accept", *(arg for item in items for arg in item.args()))[1:])

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
    ) -> Claim | None:
        """None: LOST. An owner registers with its first claim, unless `register` says otherwise."""
        first = owner not in self._registered if register is None else register
        self._registered.add(owner)
        urgent_slots = slots if urgent_slots is None else urgent_slots
        kinds = f",{','.join(knows)},"
        times = (lease_ms, renew_ms, poll_ms)
        answer = self.run("claim", owner, int(first), *times, slots, urgent_slots, pools, kinds)
        if answer == b"LOST":
            return None
        return Claim(answer[0], answer[1], tuple(map(_taken, answer[2])))

    def take(self, owner: str = "w1", slots: int = 50, **options: Any) -> dict[str, Taken]:
        """Claim, and the missions by id; the lease must be good."""
        claim = self.claim(owner, slots, **options)
        assert claim is not None, f"{owner} has lost its lease"
        return {one.task_id: one for one in claim.taken}

    def commit(self, owner: str, *writes: Write, retention_ms: int = HOUR_MS) -> list[Answer]:
        """An answer per item."""
        answers = self.run("commit", owner, retention_ms, *(arg for write in writes for arg in write.args()))
        return [_answer(answer) for answer in answers[1:]]

    def release(self, owner: str, *held: tuple[str, int]) -> list[str]:
        """A word per (id, fence)."""
        return _words(self.run("release", owner, *(part for one in held for part in one)))

    def renew(self, owner: str, lease_ms: int = HOUR_MS, poll_ms: int = HOUR_MS) -> set[str] | None:
        """Missions with unread entries; None: LOST."""
        answer = self.run("renew", owner, lease_ms, poll_ms)
        return None if answer == b"LOST" else {one.decode() for one in answer[2]}

    def resign(self, owner: str) -> str:
        """OK or HOLDS."""
        return str(self.run("resign", owner).decode())

    def cancel(self, task_id: str, entry_id: str = "cancel", reason: str = "requested") -> tuple[str, str]:
        """The word, and the status as of now."""
        entry = f'{{"entry":"cancel","id":"{entry_id}"}}'
        word, status = self.run("control", task_id, "cancel", entry_id, entry, reason, HOUR_MS)
        return word.decode(), status.decode()

    def event(self, task_id: str, entry_id: str) -> tuple[str, str]:
        """The word, and the status as of now; the entry is the id."""
        word, status = self.run("control", task_id, "event", entry_id, entry_id, "", HOUR_MS)
        return word.decode(), status.decode()

    def sweep(self, retention_ms: int = HOUR_MS) -> tuple[int, int]:
        """How many were handled, ms until the next deadline or -1."""
        handled, next_ms = self.run("sweep", retention_ms)
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
            heard.get_message(timeout=5)

            def hear(within: float = 1.0) -> list[bytes]:
                message = heard.get_message(timeout=within)
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


def _taken(row: list[Any]) -> Taken:
    texts = {n: row[n].decode() for n in (0, 4, 6, 12, 14)}
    numbers = {n: int(row[n]) for n in (1, 2, 3, 5, 9, 10, 11, 13)}
    entries = {15: tuple(one.decode() for one in row[15])}
    return Taken._make({**dict(enumerate(row)), **texts, **numbers, **entries}.values())


def _answer(raw: Any) -> Answer:
    if isinstance(raw, int):
        return Answer("OK", raw)
    if isinstance(raw, bytes):
        return Answer(raw.decode())
    return Answer(raw[0].decode(), 0, tuple(one.decode() for one in raw[1:]))
