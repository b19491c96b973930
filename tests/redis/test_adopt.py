"""adopt: a suspect moves to an owner of its own, and nothing else about it changes."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import New, Verbs


def test_only_the_owner_changes(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("n"))
    m = verbs.take("w1")["m"]
    before = verbs.record("m")

    assert verbs.adopt("w1", "solo-1", "m", m.fence) == "OK"
    assert verbs.record("m") == before | {"owner": "solo-1"}
    assert verbs.holder("a:lamp") == "m"
    assert faults(read(verbs.redis)) == []


def test_its_lease_is_a_lease(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    before = verbs.now()
    verbs.adopt("w1", "solo-1", "m", m.fence, lease_ms=5000)

    assert before + 5000 <= (verbs.score("owners", "solo-1") or 0) <= verbs.now() + 5000
    assert verbs.renew("solo-1") == set()
    assert verbs.commit("w1", m.write())[0].word == "FENCED"
    assert verbs.commit("solo-1", m.write("end", status="SUCCEEDED"))[0].word == "OK"
    assert verbs.resign("solo-1") == "OK"
    assert faults(read(verbs.redis)) == []


def test_the_loss_of_the_old_owner_is_not_its_loss(verbs: Verbs) -> None:
    verbs.accept(New("m"), New("n"))
    m = verbs.take("w1")["m"]
    verbs.adopt("w1", "solo-1", "m", m.fence)
    verbs.set_score("owners", "w1", 1)
    verbs.claim("w2", 0, renew_ms=0)
    verbs.claim("w2", 0, renew_ms=0)

    assert (verbs.place("m"), verbs.place("n")) == ("leased", "lane")
    assert faults(read(verbs.redis)) == []


def test_asked_again_it_is_ok_and_changes_nothing(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.adopt("w1", "solo-1", "m", m.fence)
    before = read(verbs.redis)

    assert verbs.adopt("w1", "solo-1", "m", m.fence) == "OK"
    assert read(verbs.redis) == before


def test_another_owner_is_fenced(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.claim("w2", 0)

    assert verbs.adopt("w2", "solo-1", "m", m.fence) == "FENCED"
    assert verbs.record("m")["owner"] == "w1"


def test_a_stale_fence_is_fenced(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.release("w1", ("m", m.fence))
    verbs.take("w1")

    assert verbs.adopt("w1", "solo-1", "m", m.fence) == "FENCED"
    assert verbs.record("m")["owner"] == "w1"


def test_what_is_not_leased_is_fenced(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave"))

    assert verbs.adopt("w1", "solo-1", "m", m.fence) == "FENCED"
    assert verbs.adopt("w1", "solo-1", "never", 1) == "FENCED"
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("score", [0, None])
def test_who_has_lost_its_lease_is_fenced(verbs: Verbs, score: float | None) -> None:
    """It is being taken over, though this mission's turn has not come yet."""
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    if score is None:
        verbs.redis.zrem(verbs.key("owners"), "w1")
    else:
        verbs.set_score("owners", "w1", score)

    assert verbs.adopt("w1", "solo-1", "m", m.fence) == "FENCED"
    assert verbs.record("m")["owner"] == "w1"


def test_the_new_owner_is_told_of_unread_entries(verbs: Verbs) -> None:
    verbs.accept(New("m"), New("n"))
    taken = verbs.take("w1")
    verbs.event("m", "e1")
    verbs.adopt("w1", "solo-1", "m", taken["m"].fence)
    verbs.adopt("w1", "solo-2", "n", taken["n"].fence)

    assert verbs.renew("solo-1") == {"m"}
    assert verbs.renew("solo-2") == set()
    assert verbs.renew("w1") == set()
    assert faults(read(verbs.redis)) == []
    assert verbs.commit("solo-1", taken["m"].write(consumed=1))[0].word == "OK"
    assert verbs.renew("solo-1") == set()
