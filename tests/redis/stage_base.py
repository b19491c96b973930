"""Who plays in the random search: workers, what they hold and what they sent; and the two shards, real and model."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import redis

from shared.scripts import SCRIPTS, Script
from tests.redis.model import Mission, Model
from tests.redis.scripts_client import Verbs, Write

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
    scopes: tuple[str, ...] = ()


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


class Timed(Verbs):
    """No two scripts within one millisecond: who came first is then the same for Redis and the model."""

    model: Model
    last = 0

    def run(self, verb: str, *args: str | bytes | float) -> Any:
        """A script, a millisecond after the last one."""
        while self.now() <= self.last:
            time.sleep(0.0002)
        try:
            return super().run(verb, *args)
        finally:
            self.last = self.now()
            self.model.clock += 1


class Base:
    """A few workers on one shard, with the model beside it.

    Set `url` before it is made; `scripts`, where others than the product's are to be driven.
    """

    url: ClassVar[str]
    scripts: ClassVar[Mapping[str, Script]] = SCRIPTS
    said: ClassVar[Counter[str]]

    def __init__(self) -> None:
        self.model = Model()
        self.verbs = Timed(redis.Redis.from_url(self.url), scripts=self.scripts)
        self.verbs.model = self.model
        self.verbs.redis.flushall()
        self.workers = [Worker("w1", ("t", "u")), Worker("w2", ("u",)), Worker("w3", ("t",))]
        self.solos = [Worker(f"solo-{n}", ()) for n in range(2)]
        self.sent: list[Sent] = []
        self.posted: dict[str, list[str]] = {}
        self.consumed: dict[str, list[str]] = {}
        self.leased: dict[str, int] = {}
        self.applied: set[tuple[str, int]] = set()
        self.accepted = self.ended = self.words = 0
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
        found = [one for one in (*self.workers, *self.solos) if one.hands] or self.workers
        return found[number % len(found)]

    def field(self, m: Mission, name: str, value: int | str) -> None:
        """Make time pass in a record."""
        self.verbs.redis.hset(self.verbs.key(f"mission:{m.task_id}"), name, value)

    def at(self, task_id: str) -> str:
        """The place of a mission, by the model."""
        return self.model.missions[task_id].place if task_id in self.model.missions else "gone"

    def posts(self, task_id: str, entry: str) -> None:
        """An entry has been posted."""
        self.posted.setdefault(task_id, []).append(entry)

    def a_run_is_over(self, m: Mission) -> None:
        """What was posted in it and not consumed went with it."""
        if m.place == "ended":
            self.posted.pop(m.task_id, None)
            self.consumed.pop(m.task_id, None)
