"""prioritize: another priority, wherever the mission stands (P9, P10)."""

from tests.redis.audit import faults, read
from tests.redis.items import note
from tests.redis.scripts_client import FAR, New, Verbs


def test_a_queued_mission_moves_to_the_other_lane(verbs: Verbs) -> None:
    verbs.accept(New("m", lane="bulk:default:a"), New("n"))
    with verbs.hearing("wake:default") as hear:
        told = note("priority", **{"from": "bulk", "to": "urgent", "by": "op"})
        assert verbs.prioritize("m", "urgent", told) == ("OK", "PENDING", "lane")

        assert hear()
    assert verbs.log("m")[-1]["data"] == {"event": "priority", "from": "bulk", "to": "urgent", "by": "op"}
    assert (verbs.log("m")[-1]["seq"], verbs.record("m")["order"]) == (1, "1")
    assert faults(read(verbs.redis)) == []
    assert list(verbs.take("w1", 0, urgent_slots=2)) == ["m"]


def test_its_pool_and_tenant_stay(verbs: Verbs) -> None:
    verbs.accept(New("m", lane="bulk:speech:b:c"))
    verbs.prioritize("m", "normal")

    assert verbs.record("m")["lane"] == "normal:speech:b:c"
    assert faults(read(verbs.redis)) == []


def test_the_priority_that_it_has_is_no_change(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    before = read(verbs.redis)

    assert verbs.prioritize("m", "normal") == ("OK", "PENDING", "lane")
    assert read(verbs.redis) == before


def test_what_is_leased_comes_back_to_the_new_lane(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    assert verbs.prioritize("m", "urgent") == ("OK", "RUNNING", "leased")
    verbs.release("w1", ("m", m.fence))

    assert verbs.score("lane:urgent:default:a", "m") == 1
    assert faults(read(verbs.redis)) == []


def test_what_waits_or_is_paused_wakes_into_the_new_lane(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave", wake_at=FAR, waiting_for="timer"))
    assert verbs.prioritize("m", "bulk") == ("OK", "WAITING", "waiting")
    verbs.pause("m")
    assert verbs.prioritize("m", "urgent") == ("OK", "PAUSED", "paused")
    assert faults(read(verbs.redis)) == []
    verbs.event("m", "e1")
    verbs.resume("m")

    assert verbs.score("lane:urgent:default:a", "m") == 1
    assert faults(read(verbs.redis)) == []


def test_a_waiter_is_ranked_anew_by_when_it_came(verbs: Verbs) -> None:
    verbs.accept(*(New(name, target="a:lamp") for name in ("holder", "first", "second", "third")))
    before = verbs.score("waiters:a:lamp", "second")
    assert before is not None
    verbs.prioritize("second", "urgent")
    assert verbs.score("waiters:a:lamp", "second") == before - 30_000 * 4096
    verbs.prioritize("first", "bulk")

    assert [name.decode() for name in verbs.redis.zrange(verbs.key("waiters:a:lamp"), 0, -1)] == [
        "second",
        "third",
        "first",
    ]
    verbs.prioritize("second", "normal")
    assert verbs.score("waiters:a:lamp", "second") == before
    assert faults(read(verbs.redis)) == []


def test_the_holder_inherits_from_a_waiter_that_rises(verbs: Verbs) -> None:
    verbs.accept(New("holder", target="a:lamp"), New("m", target="a:lamp"))
    verbs.prioritize("m", "urgent")

    assert (verbs.record("holder")["lane"], verbs.record("holder")["base"]) == ("urgent:default:a", "normal")
    assert faults(read(verbs.redis)) == []


def test_a_raised_holder_keeps_what_it_inherited(verbs: Verbs) -> None:
    verbs.accept(New("holder", target="a:lamp"), New("m", target="a:lamp", lane="urgent:default:a"))
    verbs.cancel("m")
    verbs.prioritize("holder", "bulk")

    assert (verbs.record("holder")["lane"], verbs.record("holder")["base"]) == ("urgent:default:a", "bulk")
    assert faults(read(verbs.redis)) == []
    verbs.prioritize("holder", "urgent")
    assert (verbs.record("holder")["lane"], verbs.record("holder").get("base")) == ("urgent:default:a", None)
    assert faults(read(verbs.redis)) == []


def test_a_holder_that_sinks_inherits_from_those_behind_it(verbs: Verbs) -> None:
    for n, stands in enumerate(("lane", "leased", "waiting")):
        lamp = f"a:lamp{n}"
        verbs.accept(New(f"holder{n}", target=lamp, lane="urgent:default:a"))
        if stands != "lane":
            one = verbs.take("w1")[f"holder{n}"]
            if stands == "waiting":
                verbs.commit("w1", one.write("wait", wake_at=FAR, waiting_for="retry"))
        verbs.accept(New(f"m{n}", target=lamp))
        assert verbs.prioritize(f"holder{n}", "bulk").place == ("leased" if n == 0 and stands != "lane" else stands)
        record = verbs.record(f"holder{n}")

        assert (record["lane"], record["base"]) == ("normal:default:a", "bulk"), stands
        assert faults(read(verbs.redis)) == []


def test_what_has_ended_or_is_gone_has_none(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.cancel("m")
    before = read(verbs.redis)

    assert verbs.prioritize("m", "urgent") == ("ENDED", "CANCELLED", "ended")
    assert verbs.prioritize("never", "urgent") == ("GONE", "", "")
    assert read(verbs.redis) == before
