"""renew and resign: a lease is kept, or ended, by its owner alone, and never comes back to life."""

from tests.redis.audit import faults, read
from tests.redis.scripts_client import HOUR_MS, New, Verbs


def test_a_renewal_moves_the_end_of_the_lease(verbs: Verbs) -> None:
    verbs.claim("w1", lease_ms=50)
    before = verbs.now()

    assert verbs.renew("w1", 5000) == set()
    assert before + 5000 <= (verbs.score("owners", "w1") or 0) <= verbs.now() + 5000


def test_an_unknown_owner_is_lost(verbs: Verbs) -> None:
    assert verbs.renew("w1") is None
    assert verbs.score("owners", "w1") is None


def test_a_lease_that_is_being_taken_over_is_lost(verbs: Verbs) -> None:
    verbs.claim("w1")
    verbs.set_score("owners", "w1", 0)

    assert verbs.renew("w1") is None
    assert verbs.score("owners", "w1") == 0


def test_a_lapsed_lease_that_nobody_took_is_good_again(verbs: Verbs) -> None:
    verbs.claim("w1")
    verbs.set_score("owners", "w1", 1)

    assert verbs.renew("w1") == set()


def test_unread_entries_are_named_until_a_commit_consumes_them(verbs: Verbs) -> None:
    verbs.accept(New("m"), New("n"))
    m = verbs.take("w1")["m"]
    verbs.event("m", "e1")

    assert verbs.renew("w1") == {"m"}
    assert verbs.renew("w1") == {"m"}
    verbs.commit("w1", m.write(consumed=1))
    assert verbs.renew("w1") == set()


def test_a_resigned_owner_leaves_nothing(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.set_score("owners", "w1", 1)
    verbs.claim("w2", 0)
    verbs.renew("w1")
    verbs.release("w1", ("m", m.fence))
    verbs.redis.sadd(verbs.key("signals:w1"), "never")

    assert verbs.resign("w1") == "OK"
    assert verbs.renew("w1") is None
    shard = read(verbs.redis)
    assert not shard.all("looks")
    assert not shard.all("signals")
    assert "w1" not in shard.get("owners")


def test_an_owner_that_holds_missions_cannot_resign(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.take("w1")

    assert verbs.resign("w1") == "HOLDS"
    assert faults(read(verbs.redis)) == []
    assert verbs.renew("w1", HOUR_MS) == set()
