"""accept: nothing taken in is lost, nothing known is taken in twice."""

import json

from tests.redis.audit import faults, read
from tests.redis.scripts_client import New, Verbs
from tests.waiting import until


def test_an_accepted_mission_stands_in_its_lane(verbs: Verbs) -> None:
    assert verbs.accept(New("m", envelope='{"v":1}')) == ["OK"]

    record = verbs.record("m")
    assert record["place"] == "lane"
    assert record["status"] == "PENDING"
    assert record["envelope"] == '{"v":1}'
    assert record["created_at"] == record["ready_at"]
    assert faults(read(verbs.redis)) == []


def test_a_known_id_is_a_duplicate_and_changes_nothing(verbs: Verbs) -> None:
    verbs.accept(New("m", envelope="first"))
    before = read(verbs.redis)

    assert verbs.accept(New("m", envelope="second", lane="urgent:default:a", target="a:lamp")) == ["DUPLICATE"]
    assert read(verbs.redis) == before


def test_a_double_within_one_batch_is_a_duplicate(verbs: Verbs) -> None:
    assert verbs.accept(New("m"), New("n"), New("m")) == ["OK", "OK", "DUPLICATE"]
    assert faults(read(verbs.redis)) == []


def test_order_numbers_rise_over_lanes_and_batches(verbs: Verbs) -> None:
    verbs.accept(New("a"), New("b", lane="bulk:default:a"))
    verbs.accept(New("c"))

    assert [verbs.record(one)["order"] for one in "abc"] == ["1", "2", "3"]


def test_a_free_target_is_held_from_the_accept_on(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"))

    assert verbs.holder("a:lamp") == "m"
    assert verbs.place("m") == "lane"


def test_a_held_target_is_waited_for_out_of_the_lane(verbs: Verbs) -> None:
    verbs.accept(New("first", target="a:lamp"), New("second", target="a:lamp"))

    assert verbs.place("second") == "waiters"
    assert verbs.holder("a:lamp") == "first"
    assert verbs.take().keys() == {"first"}
    assert faults(read(verbs.redis)) == []


def test_the_deadline_counts_from_redis_own_clock(verbs: Verbs) -> None:
    before = verbs.now()
    verbs.accept(New("m", deadline_ms=5000))

    deadline = int(verbs.record("m")["deadline"])
    assert before + 5000 <= deadline <= verbs.now() + 5000
    assert verbs.score("deadlines", "m") == deadline


def test_the_watcher_of_an_accept_hears_of_the_claim(verbs: Verbs) -> None:
    with verbs.hearing("feed:front") as hear:
        verbs.accept(New("m", watcher="front"), New("n"))
        verbs.take()

        (message,) = hear()
        head, line = message.split(b"\n")
        assert head == b"m"
        assert json.loads(line[1:])["seq"] == 1
        assert not hear(0.01)


def test_a_worker_of_the_pool_is_woken(verbs: Verbs) -> None:
    with verbs.hearing("wake:default") as hear:
        verbs.accept(New("m"), New("n"))

        assert hear()
        assert not hear(0.01), "one hint a script is enough"


def test_a_tenant_that_waits_already_keeps_its_turn(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    first = verbs.score("ring:normal:default", "a")
    until(lambda: verbs.now() > (first or 0))
    verbs.accept(New("n"), New("o", target="a:lamp"))

    assert verbs.score("ring:normal:default", "a") == first


def test_a_failed_item_never_fails_its_neighbours(verbs: Verbs) -> None:
    verbs.redis.lpush(verbs.key("target:a:lamp"), "not a string")

    assert verbs.accept(New("m"), New("bad", target="a:lamp"), New("n")) == ["OK", "ERROR", "OK"]
    assert verbs.place("bad") == "gone", "what was not taken in is not known"
    verbs.redis.delete(verbs.key("target:a:lamp"))
    assert faults(read(verbs.redis)) == []
    assert verbs.take().keys() == {"m", "n"}


def test_a_lane_that_cannot_be_written_takes_nothing_in(verbs: Verbs) -> None:
    assert verbs.accept(New("m"), New("bad", lane="normal"), New("n")) == ["OK", "ERROR", "OK"]
    assert verbs.place("bad") == "gone"
    assert verbs.take().keys() == {"m", "n"}
