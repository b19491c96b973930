"""What each script costs: µs of Redis per item at batches of 50 and of 1, by its own commandstats.

``python -m tests.redis.costs`` prints a table for each kind of server that is here. One run is noisy: best of a few.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import redis

from tests.conftest import SERVERS, _running
from tests.redis.scripts_client import FAR, New, Taken, Verbs, event

ITEMS: Final = 1000
ENVELOPE: Final = '{"v":1,"payload":{"x":"' + "y" * 400 + '"}}'
DOCUMENT: Final = "d" * 200

Costs = dict[str, dict[int, float]]


class Meter:
    """One pass over all verbs with one size of batch; keeps the best figure of each."""

    def __init__(self, client: redis.Redis, costs: Costs, size: int) -> None:
        self.verbs, self.costs, self.size = Verbs(client), costs, size
        client.flushall()

    @contextmanager
    def measure(self, what: str, items: int = ITEMS) -> Iterator[None]:
        """Count what the scripts inside cost."""
        self.verbs.redis.config_resetstat()
        yield
        stats = self.verbs.redis.info("commandstats")
        spent = sum(stats[name]["usec"] for name in ("cmdstat_evalsha", "cmdstat_eval") if name in stats) / items
        best = self.costs.setdefault(what, {})
        best[self.size] = min(best.get(self.size, spent), spent)

    def each(self, items: list[str], act: Callable[[list[str]], object]) -> None:
        """In batches."""
        for start in range(0, len(items), self.size):
            act(items[start : start + self.size])

    def claimed(self, owner: str = "w1") -> dict[str, Taken]:
        """Claim all there is."""
        found: dict[str, Taken] = {}
        while taken := self.verbs.take(owner, self.size):
            found |= taken
        return found

    def run(self) -> None:
        """All verbs."""
        verbs, names = self.verbs, [f"m{n:05}" for n in range(ITEMS)]
        new = {name: New(name, envelope=ENVELOPE, watcher="front") for name in names}
        with self.measure("accept"):
            self.each(names, lambda part: verbs.accept(*(new[name] for name in part)))
        with self.measure("claim, first"):
            taken = self.claimed()
        stay = {name: one.write(document=DOCUMENT, events=(event(),)) for name, one in taken.items()}
        with self.measure("commit, go on"):
            self.each(names, lambda part: verbs.commit("w1", *(stay[name] for name in part)))
        with self.measure("commit again (DUPLICATE)"):
            self.each(names, lambda part: verbs.commit("w1", *(stay[name] for name in part)))
        with self.measure("control, event to a lease"):
            for name in names:
                verbs.event(name, "e1")
        with self.measure("renew, all signalled", items=1):
            verbs.renew("w1")
        leave = {name: one.write("leave", rev=1, consumed=1, wake_at=FAR) for name, one in taken.items()}
        with self.measure("commit, wait"):
            self.each(names, lambda part: verbs.commit("w1", *(leave[name] for name in part)))
        self.each(names, self._due)
        taken = self.claimed()
        with self.measure("release"):
            self.each(names, lambda part: verbs.release("w1", *((name, taken[name].fence) for name in part)))
        with self.measure("claim, again"):
            taken = self.claimed("w2")
        with self.measure("watch"):
            self.each(names, lambda part: verbs.watch("front", 60_000, *part))
        end = {name: one.write("end", events=(event(),)) for name, one in taken.items()}
        with self.measure("commit, end"):
            self.each(names, lambda part: verbs.commit("w2", *(end[name] for name in part)))
        self.each(names, self._retire)
        self._target(names)
        self._permits(names)
        self._operators(names)
        self._cancel(names)

    def _due(self, part: list[str]) -> None:
        self.verbs.redis.zadd(self.verbs.key("timers"), dict.fromkeys(part, 1))
        with self.measure("claim, due to its lane", items=len(part)):
            self.verbs.claim("w1", 0)

    def _retire(self, part: list[str]) -> None:
        self.verbs.redis.zadd(self.verbs.key("retire"), dict.fromkeys(part, 1))
        with self.measure("retire", items=len(part)):
            self.verbs.retire()

    def _target(self, names: list[str]) -> None:
        verbs = self.verbs
        new = {name: New(name, envelope=ENVELOPE, target=f"a:{name}") for name in names}
        with self.measure("accept, target"):
            self.each(names, lambda part: verbs.accept(*(new[name] for name in part)))
        taken = self.claimed()
        with self.measure("commit, end, target"):
            self.each(names, lambda part: verbs.commit("w1", *(taken[name].write("end") for name in part)))
        verbs.redis.flushall()

    def _permits(self, names: list[str]) -> None:
        verbs = self.verbs
        verbs._registered.clear()
        for start in range(0, len(names), 50):
            verbs.accept(*(New(name, envelope=ENVELOPE) for name in names[start : start + 50]))
        taken = self.claimed()
        with self.measure("permit, two scopes"):
            for one in taken.values():
                verbs.run("permit", "w1", one.task_id, one.fence, "dep:bank", ITEMS, "type:t", ITEMS)
        stay = {name: one.write(document=DOCUMENT, events=(event(),)) for name, one in taken.items()}
        with self.measure("commit, go on, two permits"):
            self.each(names, lambda part: verbs.commit("w1", *(stay[name] for name in part)))
        with self.measure("permit, none free"):
            for one in taken.values():
                verbs.run("permit", "w1", one.task_id, one.fence, "dep:bank", 1)
        policy = "5 10000 2 2 10000 128 0.2 10"
        for verb, word in (("ask", ""), ("report", "ok")):
            items = {name: (verb, "bank", f"{name}:1", 60_000, "", word, 0, policy) for name in names}
            with self.measure(f"breaker, {verb}"):
                self.each(names, lambda part, of=items: verbs.run("breaker", *(arg for n in part for arg in of[n])))  # type: ignore[misc]  # bound in the loop
        verbs.redis.flushall()

    def _operators(self, names: list[str]) -> None:
        """On targets that ten missions want each: who waits is ranked, who holds inherits."""
        verbs = self.verbs
        verbs._registered.clear()
        for start in range(0, len(names), 50):
            part = names[start : start + 50]
            verbs.accept(*(New(one, envelope=ENVELOPE, target=f"a:{one[:-1]}", latest=f"a:{one}:x") for one in part))
        for priority in ("bulk", "urgent"):
            with self.measure(f"prioritize, {priority}"):
                for name in names:
                    verbs.prioritize(name, priority)
        for verb, act in (("pause", verbs.pause), ("resume", verbs.resume)):
            with self.measure(f"control, {verb}"):
                for name in names:
                    act(name)
        taken = self.claimed()
        buried = list(taken)
        with self.measure("commit, bury, target", items=len(buried)):
            bury = {name: taken[name].write("bury", waiting_for="START") for name in buried}
            self.each(buried, lambda part: verbs.commit("w1", *(bury[name] for name in part)))
        with self.measure("replay", items=len(buried)):
            for name in buried:
                verbs.replay(name)
        verbs.redis.flushall()

    def _cancel(self, names: list[str]) -> None:
        verbs = self.verbs
        verbs._registered.clear()
        for start in range(0, len(names), 50):
            verbs.accept(*(New(name, envelope=ENVELOPE) for name in names[start : start + 50]))
        for name in names[:100]:
            with self.measure("control, cancel", items=1):
                verbs.cancel(name)
        self.each(names[100:500], self._expire)
        self.each(names[500:], self._dead)

    def _expire(self, part: list[str]) -> None:
        self.verbs.redis.zadd(self.verbs.key("deadlines"), dict.fromkeys(part, 1))
        with self.measure("sweep, end", items=len(part)):
            self.verbs.sweep()

    def _dead(self, part: list[str]) -> None:
        owner = f"dead-{part[0]}"
        taken = self.verbs.take(owner, len(part))
        self.verbs.set_score("owners", owner, 1)
        self.verbs.claim("w1", 0, renew_ms=0)
        with self.measure("claim, takeover", items=len(taken)):
            self.verbs.claim("w1", 0, renew_ms=0)


def main() -> None:
    """Print the tables."""
    for name in SERVERS:
        costs: Costs = {}
        with _running(name) as server, server.client() as client:
            for _ in range(3):
                for size in (50, 1):
                    Meter(client, costs, size).run()
        sys.stdout.write(f"\n{name:28}  µs an item at 50     at 1\n")
        for what, best in costs.items():
            sys.stdout.write(f"{what:28}  {best[50]:16.1f}  {best[1]:7.1f}\n")


if __name__ == "__main__":
    main()
