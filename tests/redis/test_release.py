"""release: hands missions back as they were; no death, no attempt, no new age."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import New, Verbs


def test_a_released_mission_is_claimed_again_as_it_was(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"))
    m = verbs.take("w1")["m"]
    before = verbs.record("m")

    assert verbs.release("w1", ("m", m.fence)) == ["OK"]
    after = verbs.record("m")
    assert after["place"] == "lane"
    same = ("order", "ready_at", "rev", "deaths", "seq")
    assert [after.get(name) for name in same] == [before.get(name) for name in same]
    assert verbs.holder("a:lamp") == "m"
    assert faults(read(verbs.redis)) == []
    assert verbs.take("w2")["m"].deaths == 0


def test_another_owner_is_fenced(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]

    assert verbs.release("w2", ("m", m.fence)) == ["FENCED"]
    assert verbs.place("m") == "leased"


def test_a_stale_fence_is_fenced(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.release("w1", ("m", m.fence))
    verbs.take("w1")

    assert verbs.release("w1", ("m", m.fence)) == ["FENCED"]
    assert verbs.place("m") == "leased"


def test_what_is_not_leased_is_fenced(verbs: Verbs) -> None:
    """Taken over, under the same fence still: the old owner's late release must not take it out of its place."""
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave"))

    assert verbs.release("w1", ("m", m.fence), ("never", 1)) == ["FENCED", "FENCED"]
    assert verbs.place("m") == "waiting"
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize(
    ("status", "after"), [(None, "PENDING"), ("RUNNING", "WAITING"), ("COMPENSATING", "COMPENSATING")]
)
def test_the_status_says_that_nobody_runs_it(verbs: Verbs, status: str | None, after: str) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    if status is not None:
        verbs.commit("w1", m.write(status=status))
    verbs.release("w1", ("m", m.fence))

    assert verbs.record("m")["status"] == after
    assert faults(read(verbs.redis)) == []


def test_unread_entries_stay_for_the_next_worker(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.event("m", "e1")
    verbs.release("w1", ("m", m.fence))

    assert verbs.renew("w1") == set()
    assert faults(read(verbs.redis)) == []
    assert verbs.take("w2")["m"].unread == ("e1",)


def test_a_failed_item_never_fails_its_neighbours(verbs: Verbs) -> None:
    verbs.accept(New("a"), New("z"))
    taken = verbs.take("w1")
    verbs.redis.set(verbs.key("mission:bad"), "of another type")

    assert verbs.release("w1", ("a", taken["a"].fence), ("bad", 1), ("z", taken["z"].fence)) == ["OK", "ERROR", "OK"]
    verbs.redis.delete(verbs.key("mission:bad"))
    assert faults(read(verbs.redis)) == []


def test_a_worker_of_the_pool_is_woken(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    with verbs.hearing("wake:default") as hear:
        verbs.release("w1", ("m", m.fence))

        assert hear()
