"""sweep (P14): a deadline ends what never began, and is told to the worker of everything else, wherever it stands."""

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, New, Verbs

ENTRY = '{"entry":"deadline"}'


def expire(verbs: Verbs, *task_ids: str) -> None:
    """Their deadlines have come."""
    for task_id in task_ids:
        verbs.set_score("deadlines", task_id, 1)


def test_what_never_began_is_expired(verbs: Verbs) -> None:
    verbs.accept(New("m"), New("in time"))
    expire(verbs, "m")

    handled, next_ms = verbs.sweep()
    assert handled == 1
    assert next_ms > 0
    result = verbs.result("m")
    assert result is not None
    assert (result["status"], result["reason"]) == ("CANCELLED", "expired")
    assert verbs.place("in time") == "lane"
    assert faults(read(verbs.redis)) == []


def test_a_leased_mission_is_told_not_ended(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.take("w1")
    expire(verbs, "m")
    verbs.sweep()

    assert verbs.place("m") == "leased"
    assert verbs.unread("m") == [ENTRY]
    assert verbs.renew("w1") == {"m"}
    assert faults(read(verbs.redis)) == []


def test_what_a_worker_had_is_told_and_not_ended_though_nothing_was_committed(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.release("w1", ("m", verbs.take("w1")["m"].fence))
    expire(verbs, "m")
    verbs.sweep()

    assert (verbs.place("m"), verbs.unread("m")) == ("lane", [ENTRY])


def test_a_mission_that_committed_is_told_not_ended(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("yield"))
    expire(verbs, "m")
    verbs.sweep()

    assert verbs.place("m") == "lane"
    assert verbs.take("w1")["m"].unread == (ENTRY,)


def test_what_waits_is_moved_to_its_lane(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave", wake_at=FAR))
    expire(verbs, "m")
    verbs.sweep()

    assert verbs.place("m") == "lane"
    assert verbs.unread("m") == [ENTRY]
    assert faults(read(verbs.redis)) == []


def test_a_deadline_is_posted_once(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    expire(verbs, "m")
    assert verbs.sweep()[0] == 1
    assert verbs.sweep() == (0, -1)
    verbs.commit("w1", m.write(consumed=1))
    verbs.redis.zadd(verbs.key("deadlines"), {"m": 1})
    verbs.sweep()

    assert verbs.unread("m") == [], "its id was seen in this run"


def test_an_ended_mission_is_left_alone(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("end"))
    verbs.redis.zadd(verbs.key("deadlines"), {"m": 1, "never": 1})
    before = verbs.record("m")

    assert verbs.sweep() == (2, -1)
    assert verbs.record("m") == before
    assert faults(read(verbs.redis)) == []


def test_a_holder_that_expires_passes_the_hold_on(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("n", target="a:lamp"))
    expire(verbs, "m")
    verbs.sweep()

    assert verbs.take("w1").keys() == {"n"}
    assert faults(read(verbs.redis)) == []


def test_fifty_a_script(verbs: Verbs) -> None:
    for start in (0, 30):
        verbs.accept(*(New(f"m{n:02}") for n in range(start, start + 30)))
    expire(verbs, *(f"m{n:02}" for n in range(60)))

    assert verbs.sweep() == (50, 0)
    assert verbs.sweep() == (10, -1)
    assert faults(read(verbs.redis)) == []


def test_a_failed_mission_never_fails_the_others_and_is_tried_again(verbs: Verbs) -> None:
    verbs.accept(New("a"), New("bad"), New("z"))
    verbs.redis.set(verbs.key("log:bad"), "of another type")
    expire(verbs, "a", "bad", "z")
    handled, next_ms = verbs.sweep()

    assert handled == 3
    assert 0 < next_ms <= 60_000
    assert verbs.place("bad") == "lane"
    verbs.redis.delete(verbs.key("log:bad"))
    assert faults(read(verbs.redis)) == []
    expire(verbs, "bad")
    verbs.sweep()
    assert verbs.place("bad") == "ended"


def test_the_result_is_kept_for_the_retention(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    expire(verbs, "m")
    verbs.sweep(retention_ms=5000)

    assert 0 < verbs.redis.pttl(verbs.key("result:m")) <= 5000
    assert (verbs.score("retire", "m") or 0) <= verbs.now() + 5000
