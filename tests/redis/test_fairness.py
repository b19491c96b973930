"""Under full load (P9): what share of the claimed slots each lane has, and for how many at most it waits.

The bounds, in claimed slots: urgent has at most 7/8 while others wait, normal at least 3/32, bulk at least 1/32,
so that normal waits for at most 50 and bulk for at most 100; once its head has waited for half a minute, normal has 3/8
and bulk 1/4. What is parked and known has at most half of what urgent leaves. Tenants of a lane take turns.
"""

from collections import Counter

import pytest

from tests.redis.scripts_client import New, Verbs
from tests.redis.test_lanes import fill, longest_gap

PRIORITIES = {"urgent": 320, "normal": 200, "bulk": 160}


def full(verbs: Verbs, tenant: str = "a") -> None:
    """More of everything than the test claims."""
    for priority, count in PRIORITIES.items():
        fill(verbs, f"{priority}:default:{tenant}", count)


def drawn(verbs: Verbs, slots: int, most: int, *, old: str = "") -> list[str]:
    """The lanes of so many claimed slots, in order; the head of one lane has always waited for long, if it is named."""
    names: list[str] = []
    while len(names) < most:
        if old:
            (head,) = verbs.redis.zrange(verbs.key(f"lane:{old}:default:a"), 0, 0)
            verbs.redis.hset(verbs.key(f"mission:{head.decode()}"), "ready_at", 1)
        names += [name.split("-")[0] for name in verbs.take("w1", slots, knows=("t@1", "new@1"))]
    return names


def shares(names: list[str]) -> dict[str, float]:
    return {name: count / len(names) for name, count in Counter(names).items()}


@pytest.mark.parametrize("slots", [1, 3, 8, 50])
def test_b43_every_lane_has_its_share(verbs: Verbs, slots: int) -> None:
    full(verbs)
    names = drawn(verbs, slots, 320)
    share = shares(names)

    assert share["urgent"] <= 7 / 8 + 0.01
    assert share["normal"] >= 3 / 32 - 0.01
    assert share["bulk"] >= 1 / 32 - 0.01
    assert longest_gap(names, "normal") <= 50
    assert longest_gap(names, "bulk") <= 100


@pytest.mark.parametrize(("old", "share"), [("normal", 0.375), ("bulk", 0.25)])
@pytest.mark.parametrize("slots", [1, 10])
def test_aged_heads_get_half(verbs: Verbs, old: str, share: float, slots: int) -> None:
    """Half is kept from those before them, and half of what is left from normal."""
    full(verbs)
    found = shares(drawn(verbs, slots, 240, old=old))

    assert found[old] >= share - 0.02
    assert found["urgent"] >= 0.5 - 0.02


def test_what_is_parked_without_end_starves_no_lane(verbs: Verbs) -> None:
    verbs.claim("old", 0)
    for start in range(0, 200, 50):
        verbs.accept(*(New(f"parked-{n:03}", type="new", lane="bulk:default:a") for n in range(start, start + 50)))
    while verbs.take("old"):
        pass
    assert verbs.redis.zcard(verbs.key("parked:new@1")) == 200
    full(verbs)
    names = drawn(verbs, 1, 320)
    share = shares(names)

    assert share["parked"] >= 1 / 16 - 0.01
    assert share["normal"] >= 3 / 64 - 0.01
    assert share["bulk"] >= 1 / 64 - 0.01
    assert longest_gap(names, "bulk") <= 200


def test_tenants_take_turns_whatever_they_have(verbs: Verbs) -> None:
    """One with much work, one with some, and one that comes late with a single mission: it waits for each once."""
    fill(verbs, "normal:default:much", 100)
    fill(verbs, "normal:default:some", 20)
    for _ in range(10):
        verbs.take("w1", 1)
    fill(verbs, "normal:default:late", 1)
    names: list[str] = []
    while "normal-default-late-000" not in names:
        names += verbs.take("w1", 1)

    assert len(names) <= 3


def test_tenants_have_equal_shares_of_every_lane(verbs: Verbs) -> None:
    for tenant in "abcd":
        for priority, count in {"urgent": 60, "normal": 20, "bulk": 10}.items():
            fill(verbs, f"{priority}:default:{tenant}", count)
    found: Counter[tuple[str, str]] = Counter()
    for _ in range(20):
        taken = verbs.take("w1", 10)
        found.update((name.split("-")[0], name.split("-")[2]) for name in taken)

    for priority in PRIORITIES:
        of_one = [found[priority, tenant] for tenant in "abcd"]
        assert max(of_one) - min(of_one) <= 3, (priority, of_one)  # one turn's share of ten slots
