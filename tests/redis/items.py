"""What goes into the scripts and comes out of them, typed: a mission to accept, one that was claimed, one commit."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

Move = Literal["stay", "offer", "wait", "leave", "yield", "pause", "end", "bury"]
STATUS: Final[Mapping[Move, str]] = {
    "stay": "RUNNING",
    "offer": "RUNNING",
    "wait": "WAITING",
    "leave": "WAITING",
    "yield": "RUNNING",
    "pause": "WAITING",
    "end": "SUCCEEDED",
    "bury": "FAILED",
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
    latest: str = ""
    used_until: int | None = None
    envelope: str = "{}"

    def args(self) -> tuple[str | int, ...]:
        """As accept wants them."""
        placed = (self.task_id, self.type, self.version, self.lane, self.target, self.root, self.deadline_ms)
        told = (self.state, self.watcher, self.watch_ms)
        until = "" if self.used_until is None else self.used_until
        return (*placed, *told, self.latest, until, self.envelope)


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
    key_run: int
    target: str
    started_at: int
    root: str
    lane: str
    intent: str
    again: bool
    toll: int
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
    """One item of a commit; `waiting_for` of a `bury` is the state it failed in."""

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
    version: str = ""
    act: bool = False
    begins: bool = False
    """With `act`: the handler is next, and keeps its permits."""
    midway: Literal["", "kept", "runs"] = ""
    """A checkpoint: the handler goes on, with something new, or with nothing new."""
    progress: str = ""

    def args(self) -> tuple[str | int, ...]:
        """As commit wants them."""
        head = (self.task_id, self.fence, self.rev, self.consumed, self.move, self.status, self.state, self.document)
        middle = f'"task_id":"{self.task_id}","status":"{self.status}"' if self.middle is None else self.middle
        act = ("begins" if self.begins else "enters") if self.act else self.midway
        tail = "\n".join((middle, *self.rows) if self.move in ("end", "bury") else self.rows)
        wake_at = "" if self.wake_at is None else self.wake_at
        return (*head, "\n".join(self.events), wake_at, self.waiting_for, self.version, act, tail, self.progress)


class Answer(NamedTuple):
    """What commit says of one item: a word, and the seq of an `OK` or a `YIELDED`, or the entries of a `SIGNALLED`."""

    word: str
    seq: int = 0
    unread: tuple[str, ...] = ()


class Said(NamedTuple):
    """What control and prioritize say: a word, and status and place as of now."""

    word: str
    status: str
    place: str


def event(status: str = "RUNNING", state: str = "NEXT", data: object = None) -> str:
    """An event as a worker sends it: the script puts seq and time in front."""
    return f'"status":"{status}","state":"{state}","data":{json.dumps(data)}}}'


def note(name: str, **more: object) -> str:
    """The data of an event that a script writes for an operator."""
    return json.dumps({"event": name, **more}, separators=(",", ":"))


def entry(name: str, **more: object) -> str:
    """An inbox entry."""
    return json.dumps({"entry": name, **more}, separators=(",", ":"))


def answer(raw: Any) -> Answer:
    """One item's answer, of a commit."""
    if isinstance(raw, int):
        return Answer("OK", raw)
    if isinstance(raw, bytes):
        return Answer(raw.decode())
    if raw[0] == b"YIELDED":
        return Answer("YIELDED", raw[1])
    return Answer(raw[0].decode(), 0, tuple(one.decode() for one in raw[1:]))


def taken(row: list[Any]) -> Taken:
    """One row of a claim."""
    texts = {n: row[n].decode() for n in (0, 4, 6, 13, 15, 16, 17)}
    numbers = {n: int(row[n]) for n in (1, 2, 3, 5, 9, 10, 11, 12, 14, 19)}
    entries = {18: row[18] == b"1", 20: tuple(one.decode() for one in row[20])}
    return Taken._make({**dict(enumerate(row)), **texts, **numbers, **entries}.values())
