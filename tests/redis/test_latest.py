"""latest (P11): per target and aspect the newest intent acts; an older one is told so by the commit that would act."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, New, Taken, Verbs

POWER = "a:lamp:power"


def wants(verbs: Verbs, name: str, latest: str = POWER, target: str = "") -> Taken:
    """A mission that wants something, under lease of w1."""
    verbs.accept(New(name, latest=latest, target=target))
    return verbs.take("w1")[name]


def acts(verbs: Verbs, m: Taken, rev: int = 0) -> str:
    """Whether it may act."""
    return verbs.commit("w1", m.write("stay", rev=rev, act=True))[0].word


def intents(verbs: Verbs) -> list[str]:
    return [one.decode() for one in verbs.redis.zrange(verbs.key(f"intents:{POWER}"), 0, -1)]


def test_the_newest_acts_and_the_older_is_superseded(verbs: Verbs) -> None:
    old, new = wants(verbs, "old"), wants(verbs, "new")
    before = read(verbs.redis)

    assert acts(verbs, old) == "SUPERSEDED"
    assert read(verbs.redis) == before
    assert acts(verbs, new) == "OK"
    assert verbs.record("new")["acted"] == "1"
    assert faults(read(verbs.redis)) == []


def test_a_commit_that_does_not_act_is_never_superseded(verbs: Verbs) -> None:
    old = wants(verbs, "old")
    wants(verbs, "new")

    assert verbs.commit("w1", old.write("stay"))[0].word == "OK"


def test_another_aspect_or_target_supersedes_nothing(verbs: Verbs) -> None:
    m = wants(verbs, "m")
    wants(verbs, "warm", "a:lamp:temperature")
    wants(verbs, "fan", "a:fan:power")

    assert acts(verbs, m) == "OK"


def test_a_newer_one_that_ended_without_acting_supersedes_nothing(verbs: Verbs) -> None:
    old = wants(verbs, "old")
    verbs.accept(New("new", latest=POWER))
    verbs.cancel("new")
    assert intents(verbs) == ["old"]
    newer = wants(verbs, "newer")
    verbs.commit("w1", newer.write("end"))

    assert acts(verbs, old) == "OK"
    assert faults(read(verbs.redis)) == []


def test_a_newer_one_that_acted_supersedes_after_its_end_too(verbs: Verbs) -> None:
    old, new = wants(verbs, "old"), wants(verbs, "new")
    acts(verbs, new)
    verbs.commit("w1", new.write("end", rev=1))
    assert intents(verbs) == ["new"], "the last that acted stays, the older ones are nothing to it"

    assert acts(verbs, old) == "SUPERSEDED"
    assert faults(read(verbs.redis)) == []
    verbs.set_score("retire", "new", 1)
    verbs.retire()
    assert not verbs.redis.exists(verbs.key(f"intents:{POWER}"))


def test_who_acts_anew_asks_again(verbs: Verbs) -> None:
    old = wants(verbs, "old")
    assert acts(verbs, old) == "OK"
    wants(verbs, "new")

    assert acts(verbs, old, rev=1) == "SUPERSEDED"


def test_a_doubled_commit_is_a_duplicate_whatever_came_since(verbs: Verbs) -> None:
    old = wants(verbs, "old")
    acts(verbs, old)
    wants(verbs, "new")

    assert acts(verbs, old) == "DUPLICATE"


def test_who_was_told_of_a_cancel_hears_that_first(verbs: Verbs) -> None:
    old = wants(verbs, "old")
    wants(verbs, "new")
    verbs.event("old", "e1")

    assert acts(verbs, old) == "SIGNALLED"


def test_who_waits_meanwhile_keeps_its_intent(verbs: Verbs) -> None:
    old, new = wants(verbs, "old"), wants(verbs, "new")
    verbs.commit("w1", new.write("leave", wake_at=FAR, waiting_for="timer"))

    assert acts(verbs, old) == "SUPERSEDED"
    verbs.pause("new")
    assert acts(verbs, old) == "SUPERSEDED"
    verbs.cancel("new")
    assert verbs.unread("new") != []
    assert acts(verbs, old) == "SUPERSEDED", "it may have to undo what it did"


def test_within_a_millisecond_the_order_decides(verbs: Verbs) -> None:
    verbs.accept(*(New(f"m{n}", latest=POWER) for n in range(5)))

    assert intents(verbs) == ["m0", "m1", "m2", "m3", "m4"]
    taken = verbs.take("w1")
    assert [acts(verbs, one) for one in taken.values()] == ["SUPERSEDED"] * 4 + ["OK"]
    assert [one.intent for one in taken.values()] == [verbs.record(name)["intent"] for name in taken]


def test_what_a_script_ends_leaves_no_intent(verbs: Verbs) -> None:
    verbs.accept(New("m", latest=POWER))
    verbs.set_score("deadlines", "m", 1)
    verbs.sweep()

    assert intents(verbs) == []
    assert faults(read(verbs.redis)) == []


def test_a_replay_is_the_newest_again(verbs: Verbs) -> None:
    dead = wants(verbs, "dead")
    verbs.commit("w1", dead.write("bury", waiting_for="START"))
    new = wants(verbs, "new")
    verbs.replay("dead")

    assert intents(verbs) == ["new", "dead"]
    assert acts(verbs, new) == "SUPERSEDED"
    again = verbs.take("w1")["dead"]
    assert acts(verbs, again, rev=1) == "OK"
    assert faults(read(verbs.redis)) == []
    verbs.commit("w1", again.write("bury", rev=2, waiting_for="START"))
    verbs.replay("dead")
    verbs.commit("w1", verbs.take("w1")["dead"].write("end"))
    assert intents(verbs) == [], "in its last run it did not act"


@pytest.mark.parametrize(("begins", "left"), [(True, ["m"]), (False, [])])
def test_an_act_that_begins_keeps_its_permits(verbs: Verbs, *, begins: bool, left: list[str]) -> None:
    """P12: the permits come first, since who waits for one has not acted; and then they are for the act."""
    m = wants(verbs, "m")
    assert verbs.run("permit", "w1", "m", m.fence, "dep:bank", 1) == b"OK"
    assert verbs.commit("w1", m.write("stay", act=True, begins=begins))[0].word == "OK"

    assert [one.decode() for one in verbs.redis.hkeys(verbs.key("permits:dep:bank"))] == left
    assert faults(read(verbs.redis)) == []
