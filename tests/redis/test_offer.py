"""offer (P9): after each commit a bulk mission gives its slot back, if urgent or aged work waits in its pool."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import Answer, New, Taken, Verbs, event


def working(verbs: Verbs, **fields: str) -> Taken:
    """A bulk mission under lease of w1."""
    verbs.accept(New("m", **{"lane": "bulk:default:a", **fields}))  # type: ignore[arg-type]  # text fields only
    return verbs.take("w1")["m"]


def offer(verbs: Verbs, m: Taken) -> Answer:
    (answer,) = verbs.commit("w1", m.write("offer", events=(event(),)))
    assert faults(read(verbs.redis)) == []
    return answer


def long_ago(verbs: Verbs, name: str, ms: int = 31_000) -> None:
    verbs.redis.hset(verbs.key(f"mission:{name}"), "ready_at", verbs.now() - ms)


def test_it_goes_on_where_nobody_needs_the_slot(verbs: Verbs) -> None:
    m = working(verbs)
    verbs.accept(New("normal"), New("bulk", lane="bulk:default:b"), New("elsewhere", lane="urgent:speech:a"))

    assert offer(verbs, m) == ("OK", 2, ())
    assert verbs.place("m") == "leased"


def test_it_yields_to_urgent_work(verbs: Verbs) -> None:
    m = working(verbs, target="a:lamp")
    verbs.accept(New("urgent", lane="urgent:default:b"))

    assert offer(verbs, m) == ("YIELDED", 2, ())
    record = verbs.record("m")
    assert (record["place"], record["status"], record["rev"]) == ("lane", "WAITING", "1")
    assert verbs.holder("a:lamp") == "m"


@pytest.mark.parametrize("priority", ["normal", "bulk"])
def test_it_yields_to_work_that_has_waited_for_half_a_minute(verbs: Verbs, priority: str) -> None:
    m = working(verbs)
    verbs.accept(New("old", lane=f"{priority}:default:b"))
    long_ago(verbs, "old", 29_000)
    assert offer(verbs, m).word == "OK"
    long_ago(verbs, "old")

    (answer,) = verbs.commit("w1", m.write("offer", rev=1))
    assert answer.word == "YIELDED"


def test_a_tenant_without_work_hides_nobody(verbs: Verbs) -> None:
    """A ring keeps a tenant until a claim finds its lane empty."""
    m = working(verbs)
    verbs.accept(New("gone", lane="urgent:default:b"))
    verbs.cancel("gone")
    assert offer(verbs, m).word == "OK"
    verbs.accept(New("urgent", lane="urgent:default:c"))

    (answer,) = verbs.commit("w1", m.write("offer", rev=1))
    assert answer.word == "YIELDED"


def test_the_same_offer_again_is_a_duplicate(verbs: Verbs) -> None:
    m = working(verbs)
    offer(verbs, m)
    verbs.accept(New("urgent", lane="urgent:default:b"))
    before = read(verbs.redis)

    assert offer(verbs, m).word == "DUPLICATE"
    assert read(verbs.redis) == before
