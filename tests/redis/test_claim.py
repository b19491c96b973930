"""claim: a worker's lease, and the missions it gets; takeover, lanes, targets and parking have files of their own."""

import json

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, HOUR_MS, New, Verbs
from tests.waiting import until


def test_an_owner_registers_with_its_first_claim(verbs: Verbs) -> None:
    before = verbs.now()
    assert verbs.claim("w1", lease_ms=5000) is not None

    lease_end = verbs.score("owners", "w1")
    assert lease_end is not None
    assert before + 5000 <= lease_end <= verbs.now() + 5000


def test_every_claim_renews_the_lease(verbs: Verbs) -> None:
    verbs.claim("w1", lease_ms=5000)
    verbs.claim("w1", 0, lease_ms=HOUR_MS)

    assert (verbs.score("owners", "w1") or 0) > verbs.now() + 6000


def test_an_owner_that_redis_does_not_know_is_lost(verbs: Verbs) -> None:
    verbs.accept(New("m"))

    assert verbs.claim("w1", register=False) is None
    assert verbs.place("m") == "lane"
    assert verbs.score("owners", "w1") is None


def test_an_owner_that_is_being_taken_over_is_lost_even_if_it_registers(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.redis.zadd(verbs.key("owners"), {"w1": 0})

    assert verbs.claim("w1", register=False) is None
    assert verbs.claim("w1", register=True) is None
    assert verbs.score("owners", "w1") == 0


def test_b07_what_is_claimed_is_leased_to_the_owner(verbs: Verbs) -> None:
    verbs.accept(New("m", root="r p 1 77", deadline_ms=FAR, target="a:lamp", envelope="{}"))
    m = verbs.take("w1")["m"]

    record = verbs.record("m")
    assert (record["place"], record["owner"], record["status"]) == ("leased", "w1", "RUNNING")
    assert (record["fence"], record["started_at"]) == (str(m.fence), str(m.started_at))
    assert (m.rev, m.seq, m.type, m.version, m.state, m.document) == (0, 1, "t", 1, "START", b"")
    assert (m.envelope, m.deaths, m.run, m.target, m.root, m.unread) == (b"{}", 0, 1, "a:lamp", "r", ())
    assert m.deadline == int(record["deadline"])
    assert faults(read(verbs.redis)) == []


def test_the_fence_is_drawn_once_a_script_and_only_rises(verbs: Verbs) -> None:
    verbs.accept(New("a"), New("b"))
    taken = verbs.take("w1")
    assert taken["a"].fence == taken["b"].fence
    verbs.claim("w2")
    assert verbs.redis.get(verbs.key("fence")) == b"1", "a claim that got nothing draws none"

    verbs.release("w1", ("a", taken["a"].fence))
    assert verbs.take("w2")["a"].fence == taken["a"].fence + 1


def test_the_first_claim_ever_writes_the_event_and_the_start(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    first = verbs.take("w1")["m"]
    verbs.release("w1", ("m", first.fence))
    until(lambda: verbs.now() > first.started_at)
    second = verbs.take("w1")["m"]

    assert second.started_at == first.started_at
    assert second.seq == first.seq == 1
    (event,) = verbs.log("m")
    assert event == {"seq": 1, "at": event["at"], "status": "RUNNING", "state": "START", "data": None}


def test_it_says_whether_a_worker_had_it_since_the_last_commit(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    first = verbs.take("w1")["m"]
    verbs.release("w1", ("m", first.fence))
    second = verbs.take("w1")["m"]
    assert (first.again, second.again) == (False, True)

    verbs.commit("w1", second.write("yield"))
    third = verbs.take("w1")["m"]
    verbs.release("w1", ("m", third.fence))
    assert (third.again, verbs.take("w1")["m"].again) == (False, True)


def test_a_claim_hands_over_the_unread_entries_and_names_them_in_renewals(verbs: Verbs) -> None:
    verbs.accept(New("m"), New("quiet"))
    verbs.event("m", "e1")
    verbs.event("m", "e2")

    taken = verbs.take("w1")
    assert taken["m"].unread == ("e1", "e2")
    assert taken["quiet"].unread == ()
    assert verbs.renew("w1") == {"m"}
    assert faults(read(verbs.redis)) == []


def test_a_mission_that_is_undoing_stays_so(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave", status="COMPENSATING", wake_at=1))
    verbs.take("w1")

    assert verbs.record("m")["status"] == "COMPENSATING"
    assert faults(read(verbs.redis)) == []


def test_b45_never_more_than_the_free_slots(verbs: Verbs) -> None:
    verbs.accept(*(New(f"m{n}") for n in range(9)))

    assert len(verbs.take("w1", 4)) == 4
    assert len(verbs.take("w1", 0)) == 0
    assert len(verbs.take("w1", 9)) == 5


def test_never_more_than_fifty_a_script(verbs: Verbs) -> None:
    for start in range(0, 120, 40):
        verbs.accept(*(New(f"m{n:03}") for n in range(start, start + 40)))

    assert [len(verbs.take("w1", 500)) for _ in range(3)] == [50, 50, 20]
    assert faults(read(verbs.redis)) == []


def test_a_lane_entry_that_disagrees_with_the_record_is_dropped(verbs: Verbs) -> None:
    verbs.accept(New("m"), New("n"))
    verbs.take("w1", 1)
    verbs.redis.zadd(verbs.key("lane:normal:default:a"), {"m": 1, "never": 2})

    assert verbs.take("w2").keys() == {"n"}
    assert verbs.record("m")["owner"] == "w1"
    assert faults(read(verbs.redis)) == []


def test_a_failed_mission_never_fails_the_others_of_its_claim(verbs: Verbs) -> None:
    verbs.accept(New("a"), New("no log"), New("no record"), New("z"))
    verbs.redis.set(verbs.key("log:no log"), "of another type")
    verbs.redis.set(verbs.key("mission:no record"), "of another type")

    assert verbs.take("w1").keys() == {"a", "z"}
    assert verbs.redis.smembers(verbs.key("held:w1")) == {b"a", b"z"}


def test_a_due_mission_goes_to_its_lane_with_a_new_age(verbs: Verbs) -> None:
    verbs.accept(New("m"), New("later"))
    taken = verbs.take("w1")
    soon = verbs.now() + 60_000
    verbs.commit("w1", taken["m"].write("leave", wake_at=soon), taken["later"].write("leave", wake_at=FAR))
    claim = verbs.claim("w1", 0)
    assert claim is not None
    assert claim.due_ms <= 60_000
    assert verbs.place("m") == "waiting"
    due = verbs.now()
    verbs.set_score("timers", "m", due)

    assert verbs.take("w1", 0) == {}
    assert verbs.place("m") == "lane"
    assert int(verbs.record("m")["ready_at"]) >= due
    assert verbs.place("later") == "waiting"
    assert verbs.take("w1").keys() == {"m"}
    assert faults(read(verbs.redis)) == []


def test_b44_timers_move_fifty_at_a_time_and_the_next_claim_is_due_at_once(verbs: Verbs) -> None:
    for start in (0, 30):
        verbs.accept(*(New(f"m{n:02}") for n in range(start, start + 30)))
        taken = verbs.take("w1")
        verbs.commit("w1", *(one.write("leave", wake_at=FAR) for one in taken.values()))
    for n in range(60):
        verbs.set_score("timers", f"m{n:02}", 1)
    claim = verbs.claim("w1", 0)
    assert claim is not None
    assert claim.due_ms == 0
    assert verbs.redis.zcard(verbs.key("timers")) == 10
    verbs.claim("w1", 0)
    assert verbs.redis.exists(verbs.key("timers")) == 0
    assert faults(read(verbs.redis)) == []


def test_a_timer_that_disagrees_with_the_record_is_dropped(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.take("w1")
    verbs.redis.zadd(verbs.key("timers"), {"m": 1, "never": 1})
    verbs.claim("w1", 0)

    assert verbs.place("m") == "leased"
    assert faults(read(verbs.redis)) == []


def test_a_claim_says_when_the_next_lease_ends(verbs: Verbs) -> None:
    verbs.claim("w2", lease_ms=60_000)
    claim = verbs.claim("w1", 0)

    assert claim is not None
    assert 0 < claim.due_ms <= 60_001


def test_a_claim_is_due_again_after_the_slow_poll_at_the_latest(verbs: Verbs) -> None:
    claim = verbs.claim("w1", 0, poll_ms=70)

    assert claim is not None
    assert claim.due_ms == 70


def test_watchers_see_it_run(verbs: Verbs) -> None:
    with verbs.hearing("feed:front") as hear:
        verbs.accept(New("m", watcher="front"))
        verbs.take("w1")

        (message,) = hear()
        assert json.loads(message.split(b"\nE")[1]) == verbs.log("m")[0]
