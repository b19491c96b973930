"""Targets (P10): assigned, never scanned for; one mission at a time, the best waiter next, whatever ends a hold."""

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, New, Verbs


def test_a_mission_that_wakes_takes_its_target_if_it_is_free(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave", wake_at=1))
    assert verbs.holder("a:lamp") is None

    assert verbs.take("w1").keys() == {"m"}
    assert verbs.holder("a:lamp") == "m"


def test_a_mission_that_wakes_waits_for_its_target_if_it_is_held(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("n", target="a:lamp"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave", wake_at=1))
    n = verbs.take("w1")["n"]

    assert verbs.place("m") == "waiters"
    assert faults(read(verbs.redis)) == []
    verbs.commit("w1", n.write("end"))
    assert verbs.holder("a:lamp") == "m"


def test_a_mission_that_kept_its_hold_wakes_into_its_lane(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("n", target="a:lamp"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("wait", wake_at=1))

    assert verbs.take("w1").keys() == {"m"}
    assert faults(read(verbs.redis)) == []


def test_a_cancelled_holder_passes_the_hold_on(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("n", target="a:lamp"))
    verbs.cancel("m")

    assert verbs.holder("a:lamp") == "n"
    assert verbs.take("w1").keys() == {"n"}
    assert faults(read(verbs.redis)) == []


def test_a_cancelled_waiter_leaves_the_holder_alone(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("n", target="a:lamp"))
    verbs.cancel("n")

    assert verbs.holder("a:lamp") == "m"
    assert not verbs.redis.exists(verbs.key("waiters:a:lamp"))
    assert faults(read(verbs.redis)) == []


def test_the_end_of_one_that_holds_nothing_frees_nothing(verbs: Verbs) -> None:
    """A waiting mission gave its hold up; another has it, and keeps it when the first one ends."""
    verbs.accept(New("m", target="a:lamp"), New("n", target="a:lamp"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave", wake_at=FAR))
    verbs.take("w1")
    verbs.accept(New("o", target="a:lamp"))
    verbs.event("m", "e1")
    assert verbs.place("m") == "waiters"
    assert verbs.holder("a:lamp") == "n"
    assert faults(read(verbs.redis)) == []


def test_a_waiter_that_is_gone_is_passed_over(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("n", target="a:lamp"))
    verbs.redis.zadd(verbs.key("waiters:a:lamp"), {"never": 1})
    verbs.cancel("m")

    assert verbs.holder("a:lamp") == "n"


def test_a_new_holder_is_ready_from_then_on(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("n", target="a:lamp"))
    before = int(verbs.record("n")["ready_at"])
    verbs.redis.hset(verbs.key("mission:n"), "ready_at", before - 1000)
    verbs.cancel("m")

    assert int(verbs.record("n")["ready_at"]) >= before


def test_the_same_target_of_another_tenant_is_another_target(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("n", target="b:lamp"))

    assert verbs.take("w1").keys() == {"m", "n"}


def test_a_mission_without_a_target_holds_nothing(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave", wake_at=1))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("end"))

    assert not read(verbs.redis).all("target")
