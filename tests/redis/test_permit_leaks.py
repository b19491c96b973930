"""Permits in random order (P12, B12): whatever two workers do, none is lost and none is one too many."""

import random
from typing import Final

import pytest

from tests.redis.audit import faults, leftovers, read
from tests.redis.scripts_client import New, Taken, Verbs
from tests.redis.test_permit import ask, holders
from tests.redis.test_takeover import take_over


class Play:
    """Two workers on six missions, and whatever they may do in whatever order."""

    LIMITS: Final = {"type:t": 2, "dep:bank": 1, "tenant:a": 3}

    def __init__(self, verbs: Verbs, seed: int) -> None:
        self.verbs, self.dice = verbs, random.Random(seed)
        self.names = [f"m{n}" for n in range(6)]
        verbs.accept(*(New(name) for name in self.names))
        self.held: dict[str, tuple[str, Taken]] = {}
        self.revs = dict.fromkeys(self.names, 0)

    def step(self) -> None:
        verb = self.dice.choice(["claim", "ask", "ask", "ask", "commit", "commit", "release", "die"])
        owner = self.dice.choice(["w1", "w2"])
        if verb == "claim":
            taken = self.verbs.take(owner, self.dice.randint(1, 3))
            self.held |= {name: (owner, m) for name, m in taken.items()}
        elif verb == "die" and owner in {who for who, _ in self.held.values()}:
            take_over(self.verbs, owner)
            self.held = {name: one for name, one in self.held.items() if one[0] != owner}
            self.verbs._registered.discard(owner)
        elif verb in ("ask", "commit", "release") and self.held:
            name = self.dice.choice(sorted(self.held))
            getattr(self, verb)(name, *self.held[name])

    def ask(self, _: str, owner: str, m: Taken) -> None:
        limits = self.dice.sample(sorted(self.LIMITS.items()), self.dice.randint(1, 3))
        ask(self.verbs, m, *limits, owner=owner)

    def commit(self, name: str, owner: str, m: Taken) -> None:
        move = self.dice.choice(["stay", "wait", "leave", "yield"])
        waits = {"waiting_for": self.dice.choice(["permit", "timer"]), "wake_at": 1}
        write = m._replace(rev=self.revs[name]).write(move, **(waits if move in ("wait", "leave") else {}))  # type: ignore[arg-type]  # one of the moves
        assert self.verbs.commit(owner, write)[0].word == "OK"
        self.revs[name] += 1
        if move != "stay":
            del self.held[name]

    def release(self, name: str, owner: str, m: Taken) -> None:
        self.verbs.release(owner, (name, m.fence))
        del self.held[name]

    def end(self) -> None:
        """All of them, after one permit for each."""
        for name, (owner, m) in list(self.held.items()):
            self.release(name, owner, m)
        taken = self.verbs.take("last")
        assert taken.keys() == set(self.names)
        assert {ask(self.verbs, one, ("dep:bank", 6), owner="last") for one in taken.values()} == {("OK",)}
        self.verbs.commit("last", *(one.write("end") for one in taken.values()))
        for name in self.names:
            self.verbs.set_score("retire", name, 1)
        self.verbs.retire()


@pytest.mark.parametrize("seed", range(20))
def test_permits_never_leak_whatever_happens(verbs: Verbs, seed: int) -> None:
    """Never above a limit, and when all is over nobody holds one or waits for one."""
    play = Play(verbs, seed)
    for _ in range(150):
        play.step()
        assert [scope for scope, limit in play.LIMITS.items() if len(holders(verbs, scope)) > limit] == []
        assert faults(read(verbs.redis)) == []
    play.end()
    assert leftovers(read(verbs.redis)) == []
