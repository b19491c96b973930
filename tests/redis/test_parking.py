"""Parking (P13): a worker never runs, and never loses, what it does not know."""

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, HOUR_MS, New, Verbs
from tests.waiting import until

BOTH = ("t@1", "new@2")


def parked(verbs: Verbs, target: str = "") -> None:
    """A mission of a type that the old worker, w1, does not know."""
    verbs.accept(New("m", type="new", version=2, target=target))
    assert verbs.take("w1") == {}
    assert verbs.place("m") == "parked"


def test_b21_b52_an_unknown_type_is_parked_and_uses_no_slot(verbs: Verbs) -> None:
    verbs.accept(New("m", type="new", version=2), New("n"))

    assert verbs.take("w1", 1).keys() == {"n"}
    record = verbs.record("m")
    assert (record["place"], record["status"], record.get("deaths"), record.get("fence")) == (
        "parked",
        "PENDING",
        None,
        None,
    )
    assert verbs.log("m") == []
    assert faults(read(verbs.redis)) == []


def test_another_version_is_another_type(verbs: Verbs) -> None:
    verbs.accept(New("newer", version=2), New("longer", type="tt"), New("shorter", version=1))

    assert verbs.take("w1", knows=("tt@1", "t@12")).keys() == {"longer"}
    assert verbs.place("newer") == verbs.place("shorter") == "parked"
    verbs.accept(New("dotted", type="a.b"))
    assert verbs.take("w1", knows=("a-b@1", "axb@1")) == {}


def test_parking_passes_the_hold_on(verbs: Verbs) -> None:
    verbs.accept(New("m", type="new", version=2, target="a:lamp"), New("next", target="a:lamp"))

    assert verbs.take("w1").keys() == {"next"}, "and the next one is claimed by the same script"
    assert verbs.holder("a:lamp") == "next"
    assert faults(read(verbs.redis)) == []


def test_a_worker_that_knows_it_claims_it_where_it_is_parked(verbs: Verbs) -> None:
    parked(verbs, "a:lamp")
    m = verbs.take("w2", knows=BOTH)["m"]

    assert m.seq == 1
    assert verbs.holder("a:lamp") == "m"
    assert not verbs.redis.exists(verbs.key("parked:new@2"))
    verbs.take("w2", knows=BOTH)
    assert not verbs.redis.exists(verbs.key("parked_types"))
    assert faults(read(verbs.redis)) == []


def test_a_worker_that_does_not_know_it_leaves_it_parked(verbs: Verbs) -> None:
    parked(verbs)

    assert verbs.take("w2") == {}
    assert verbs.place("m") == "parked"
    assert faults(read(verbs.redis)) == []


def test_no_more_is_unparked_than_there_are_free_slots(verbs: Verbs) -> None:
    verbs.accept(*(New(f"m{n}", type="new", version=2) for n in range(5)))
    verbs.take("w1")

    assert len(verbs.take("w2", 2, knows=BOTH)) == 2
    assert len(verbs.take("w2", 0, urgent_slots=4, knows=BOTH)) == 0
    assert verbs.redis.zcard(verbs.key("parked:new@2")) == 3


def test_a_worker_takes_what_is_parked_from_its_pools_alone(verbs: Verbs) -> None:
    verbs.accept(New("m", type="new", version=2, lane="normal:speech:a"))
    verbs.take("w1", pools="speech")

    assert verbs.take("w2", knows=BOTH, pools="default") == {}
    assert verbs.place("m") == "parked"
    assert faults(read(verbs.redis)) == []
    assert verbs.take("w3", knows=BOTH, pools="default,speech").keys() == {"m"}


def test_a_parked_mission_that_is_broken_costs_no_other(verbs: Verbs) -> None:
    parked(verbs)
    verbs.accept(New("n"))
    verbs.redis.set(verbs.key("mission:bad"), "of another type")
    verbs.redis.zadd(verbs.key("parked:new@2"), {"bad": 0})

    assert verbs.take("w2", knows=BOTH).keys() == {"m", "n"}
    assert verbs.redis.smembers(verbs.key("held:w2")) == {b"m", b"n"}


def test_an_unparked_mission_whose_target_is_held_waits_for_it(verbs: Verbs) -> None:
    parked(verbs, "a:lamp")
    verbs.accept(New("holder", target="a:lamp"))
    holder = verbs.take("w1")["holder"]

    assert verbs.take("w2", knows=BOTH) == {}
    assert verbs.place("m") == "waiters"
    assert faults(read(verbs.redis)) == []
    verbs.commit("w1", holder.write("end"))
    assert verbs.take("w2", knows=BOTH).keys() == {"m"}


def test_a_parked_entry_that_disagrees_with_the_record_is_dropped(verbs: Verbs) -> None:
    parked(verbs)
    verbs.take("w2", knows=BOTH)
    verbs.redis.zadd(verbs.key("parked:new@2"), {"m": 1, "never": 1})
    verbs.redis.sadd(verbs.key("parked_types"), "new@2")

    assert verbs.take("w3", knows=BOTH) == {}
    assert verbs.record("m")["owner"] == "w2"


def test_b52_the_limit_counts_from_the_first_parking(verbs: Verbs) -> None:
    parked(verbs)
    first = verbs.record("m")["parked_at"]
    m = verbs.take("w2", knows=BOTH)["m"]
    until(lambda: verbs.now() > int(first))
    verbs.release("w2", ("m", m.fence))
    verbs.take("w1")

    assert verbs.record("m")["parked_at"] == first
    assert verbs.score("parked:new@2", "m") == int(first)


def test_b52_the_limit_counts_anew_once_it_got_on(verbs: Verbs) -> None:
    parked(verbs)
    m = verbs.take("w2", knows=BOTH)["m"]
    verbs.commit("w2", m.write("yield"))
    assert "parked_at" not in verbs.record("m")


def test_a_parked_mission_that_is_cancelled_leaves_no_type_behind(verbs: Verbs) -> None:
    parked(verbs)
    verbs.accept(New("other", type="new", version=2))
    verbs.take("w1")
    verbs.cancel("m")
    assert verbs.redis.smembers(verbs.key("parked_types")) == {b"new@2"}
    verbs.cancel("other")

    assert not verbs.redis.exists(verbs.key("parked_types"))
    assert faults(read(verbs.redis)) == []


def test_one_claim_looks_at_a_bounded_number(verbs: Verbs) -> None:
    """A lane full of what a worker does not know is parked in portions, each followed by a claim at once."""
    for start in range(0, 500, 50):
        verbs.accept(*(New(f"m{n:03}", type="new", version=2) for n in range(start, start + 50)))
    claim = verbs.claim("w1", 50)

    assert claim is not None
    assert claim.due_ms == 0
    assert verbs.redis.zcard(verbs.key("parked:new@2")) <= 250
    claim = verbs.claim("w1", 50)
    claim = verbs.claim("w1", 50)
    assert claim is not None
    assert 0 < claim.due_ms <= HOUR_MS
    assert verbs.redis.zcard(verbs.key("parked:new@2")) == 500
    assert faults(read(verbs.redis)) == []


def test_a_parked_mission_keeps_its_past(verbs: Verbs) -> None:
    """Committed by a new worker, met again by an old one: parked as it is, and it goes on from there."""
    verbs.accept(New("m", type="new", version=2))
    m = verbs.take("w2", knows=BOTH)["m"]
    verbs.commit("w2", m.write("leave", document="far", wake_at=FAR))
    verbs.event("m", "e1")
    verbs.take("w1")
    assert verbs.record("m")["status"] == "WAITING"
    assert faults(read(verbs.redis)) == []

    again = verbs.take("w2", knows=BOTH)["m"]
    assert (again.rev, again.document, again.unread) == (1, b"far", ("e1",))
