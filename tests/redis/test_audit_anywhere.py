"""Damage in any state that the random search comes to: what an index lost is back, and everything goes on as it would.

The model knows nothing of damage: after a repair, shard and model have to agree as if there had been none.
"""

import os
from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from tests.redis.audit import read
from tests.redis.auditing import indexes, records, undisturbed
from tests.redis.test_interleavings import Interleavings

NUMBER: Final = st.integers(0, 9999)
PUT_BACK: Final = ("lane", "ring", "timers", "waiters", "parked", "paused", "held", "signals", "outboxes", "permits")
"""Indexes of which an entry comes back as it was; of deadlines and retirements the test moves the time by itself."""
STRANGE: Final = ("lane", "timers", "waiters", "parked", "paused", "held", "dead_letters", "outboxes", "retire")


class Damaged(Interleavings):
    """What may happen, and damage."""

    @rule(number=NUMBER)
    def an_index_loses_an_entry(self, number: int) -> None:
        shard, redis = read(self.verbs.redis), self.verbs.redis
        kinds = [kind for kind in PUT_BACK if shard.all(kind)]
        if not kinds:
            return
        kind = kinds[number % len(kinds)]
        every = [
            (f"{kind}:{rest}" if rest else kind, member)
            for rest, members in shard.all(kind).items()
            for member in members
        ]
        name, member = every[number // len(kinds) % len(every)]
        remove: Any = {"held": redis.srem, "signals": redis.srem, "permits": redis.hdel}.get(kind, redis.zrem)
        before = self._seen()
        remove(self.verbs.key(name), member)
        self.say(f"lost from {kind}")
        records(self.verbs)
        self._is_as(before, name)

    @rule(number=NUMBER, other=NUMBER)
    def an_index_has_an_entry_too_many(self, number: int, other: int) -> None:
        shard, redis = read(self.verbs.redis), self.verbs.redis
        names = [f"{kind}:{rest}" if rest else kind for kind in STRANGE for rest in shard.all(kind)]
        ids = ["gone", *shard.all("mission")]
        if not names:
            return
        name, task_id = names[number % len(names)], ids[other % len(ids)]
        kind, _, rest = name.partition(":")
        if task_id in shard.get(kind, rest) or (kind, task_id) == ("retire", "gone"):
            return
        before = self._seen()
        if kind == "held":
            redis.sadd(self.verbs.key(name), task_id)
        else:
            redis.zadd(self.verbs.key(name), {task_id: 1})
        self.say(f"too many in {kind}")
        indexes(self.verbs)
        self._is_as(before, name)

    def _seen(self) -> dict[str, Any]:
        shard = read(self.verbs.redis)
        return {f"{kind}:{rest}": value for kind, rests in shard.keys.items() for rest, value in rests.items()}

    def _is_as(self, before: dict[str, Any], name: str) -> None:
        after = self._seen()
        kinds = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        assert {key.partition(":")[0] for key in kinds} <= {"ring", "waiters", "outboxes", "terms"}, f"{name}: {kinds}"
        undisturbed(self.verbs)


def _explore(url: str, examples: int, steps: int) -> Counter[str]:
    class Machine(Damaged):
        """This run's."""

    Machine.url, Machine.said = url, Counter()
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    run_state_machine_as_test(Machine, settings=options)
    return Machine.said


def test_damage_in_any_state_is_repaired(redis_url: str) -> None:
    said = _explore(redis_url, 100, 40)
    assert [kind for kind in ("lane", "held", "parked") if not said[f"lost from {kind}"]] == []
    assert [kind for kind in ("lane", "held") if not said[f"too many in {kind}"]] == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_damage_in_a_thousand_states_is_repaired(redis_url: str) -> None:
    said = _explore(redis_url, int(os.environ.get("DUALLOOP_TEST_EXAMPLES", "1000")), 60)
    assert [kind for kind in PUT_BACK if not said[f"lost from {kind}"]] == []
    assert [kind for kind in STRANGE if not said[f"too many in {kind}"]] == []
