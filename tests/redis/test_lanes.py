"""Lanes (P9): urgent first, tenants in turn, and a share for everybody."""

from collections import Counter
from itertools import pairwise

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import New, Verbs


def fill(verbs: Verbs, lane: str, count: int) -> None:
    """Missions in a lane, named by its priority and tenant."""
    priority, pool, tenant = lane.split(":")
    for start in range(0, count, 50):
        names = (f"{priority}-{pool}-{tenant}-{n:03}" for n in range(start, min(count, start + 50)))
        verbs.accept(*(New(name, lane=lane) for name in names))


def drawn(verbs: Verbs, slots: int = 50, urgent_slots: int | None = None, pools: str = "default") -> Counter[str]:
    """What a claim took, by priority and tenant."""
    taken = verbs.take("w1", slots, urgent_slots=urgent_slots, pools=pools)
    return Counter("-".join(one.split("-")[0:3:2]) for one in taken)


def one_by_one(verbs: Verbs, claims: int, pools: str = "default") -> list[str]:
    """Who gets the only free slot, claim after claim, as priority and pool."""
    names = []
    for _ in range(claims):
        (name,) = verbs.take("w1", 1, pools=pools)
        names.append("-".join(name.split("-")[:2]))
    return names


def longest_gap(names: list[str], name: str) -> int:
    """The most claims between two that `name` got."""
    at = [-1, *(n for n, one in enumerate(names) if one == name), len(names)]
    return max(later - sooner for sooner, later in pairwise(at))


def test_within_a_lane_the_order_is_the_order_number(verbs: Verbs) -> None:
    verbs.accept(New("z"), New("a"), New("m"))

    claim = verbs.claim("w1")
    assert claim is not None
    assert claim.ids == ["z", "a", "m"]


def test_urgent_comes_first(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 60)
    fill(verbs, "urgent:default:a", 3)

    assert drawn(verbs, 10)["urgent-a"] == 3


def test_the_reserve_is_for_urgent_alone(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 10)
    fill(verbs, "bulk:default:a", 10)
    fill(verbs, "urgent:default:a", 3)

    assert drawn(verbs, 0, 4) == {"urgent-a": 3}
    assert drawn(verbs, 0, 4) == {}
    assert sum(drawn(verbs, 2, 6).values()) == 2


def test_the_reserve_is_no_room_to_take_the_share_of_others(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 50)
    fill(verbs, "urgent:default:a", 50)

    assert drawn(verbs, 16, 20) == {"urgent-a": 18, "normal-a": 2}


def test_urgent_never_takes_more_than_there_is(verbs: Verbs) -> None:
    fill(verbs, "urgent:default:a", 60)

    assert [sum(drawn(verbs, slots).values()) for slots in (1, 2, 7, 1, 9, 3)] == [1, 2, 7, 1, 9, 3]


def test_the_shares_are_of_what_urgent_leaves(verbs: Verbs) -> None:
    fill(verbs, "urgent:default:a", 20)
    fill(verbs, "normal:default:a", 50)
    fill(verbs, "bulk:default:a", 50)

    assert drawn(verbs, 40) == {"urgent-a": 20, "normal-a": 15, "bulk-a": 5}


def test_urgent_may_take_every_free_slot_when_nobody_else_waits(verbs: Verbs) -> None:
    fill(verbs, "urgent:default:a", 20)

    assert drawn(verbs, 10, 14) == {"urgent-a": 14}


def test_bulk_keeps_a_quarter_of_what_is_free(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 60)
    fill(verbs, "bulk:default:a", 60)

    assert drawn(verbs, 40) == {"normal-a": 30, "bulk-a": 10}


def test_what_is_kept_for_bulk_and_not_used_is_normals(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 60)
    fill(verbs, "bulk:default:a", 1)

    assert drawn(verbs, 40) == {"normal-a": 39, "bulk-a": 1}


def test_bulk_is_served_where_slots_come_free_one_at_a_time(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 100)
    fill(verbs, "bulk:default:a", 100)
    names = one_by_one(verbs, 80)

    assert 15 <= names.count("bulk-default") <= 25
    assert longest_gap(names, "bulk-default") <= 8


def test_b43_urgent_without_end_starves_nobody(verbs: Verbs) -> None:
    for priority, count in (("urgent", 300), ("normal", 100), ("bulk", 100)):
        fill(verbs, f"{priority}:default:a", count)
    names = one_by_one(verbs, 300)

    assert names.count("urgent-default") > 250
    assert longest_gap(names, "normal-default") <= 30
    assert longest_gap(names, "bulk-default") <= 75


def test_a_pool_starves_no_other_pool_of_its_worker(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 100)
    fill(verbs, "normal:speech:a", 100)
    names = one_by_one(verbs, 60, pools="default,speech")

    assert 25 <= names.count("normal-speech") <= 35
    assert longest_gap(names, "normal-speech") <= 6


def test_a_worker_serves_its_pools_alone(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 2)
    fill(verbs, "urgent:speech:a", 2)

    assert drawn(verbs, pools="default") == {"normal-a": 2}
    assert drawn(verbs, pools="speech") == {"urgent-a": 2}


def commands(verbs: Verbs, pools: str) -> int:
    """What a claim that finds nothing asks of Redis."""
    verbs.redis.config_resetstat()
    assert verbs.take("w1", pools=pools) == {}
    return sum(one["calls"] for one in verbs.redis.info("commandstats").values())


def test_a_pool_where_nobody_waits_costs_a_claim_one_command(verbs: Verbs) -> None:
    fill(verbs, "normal:speech:a", 1)
    commands(verbs, "default")
    one = commands(verbs, "default")

    assert commands(verbs, "default,etl-extract,etl-load,heavy") == one + 3


@pytest.mark.parametrize("priority", ["urgent", "normal", "bulk"])
def test_tenants_share_a_claim(verbs: Verbs, priority: str) -> None:
    fill(verbs, f"{priority}:default:a", 50)
    for tenant in "bc":
        fill(verbs, f"{priority}:default:{tenant}", 5)

    taken = drawn(verbs, 15)
    assert sum(taken.values()) == 15
    assert all(4 <= taken[f"{priority}-{tenant}"] <= 6 for tenant in "abc")


def test_what_cannot_be_divided_is_not_given_twice(verbs: Verbs) -> None:
    for tenant in "abc":
        fill(verbs, f"normal:default:{tenant}", 30)

    assert [sum(drawn(verbs, slots).values()) for slots in (5, 20, 7, 22, 2)] == [5, 20, 7, 22, 2]


def test_a_share_that_a_tenant_does_not_use_goes_to_the_others(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 50)
    fill(verbs, "normal:default:b", 2)

    assert drawn(verbs, 20) == {"normal-a": 18, "normal-b": 2}


def test_tenants_take_turns_over_claims(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 40)
    for tenant in "bcd":
        fill(verbs, f"normal:default:{tenant}", 4)
    tenants = []
    for _ in range(16):
        (name,) = verbs.take("w1", 1)
        tenants.append(name.split("-")[2])

    assert all(sorted(tenants[n : n + 4]) == ["a", "b", "c", "d"] for n in range(0, 16, 4))


def test_a_tenant_leaves_the_ring_with_its_last_mission(verbs: Verbs) -> None:
    fill(verbs, "normal:default:a", 3)
    drawn(verbs)

    assert not verbs.redis.exists(verbs.key("ring:normal:default"))
    assert faults(read(verbs.redis)) == []
