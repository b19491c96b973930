"""`audit`: each kind of damage is seen and repaired, what agrees is left alone, and an old leader repairs nothing."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.auditing import audit, call, indexes, records, recount, undisturbed
from tests.redis.scripts_client import FAR, HOUR_MS, New, Verbs
from tests.redis.town import LOST, STRANGE, town


def test_a_shard_that_agrees_with_itself_is_left_alone(verbs: Verbs) -> None:
    town(verbs)
    places = {m["place"] for m in read(verbs.redis).all("mission").values()}
    assert places == {"lane", "leased", "waiting", "waiters", "parked", "paused", "ended"}
    undisturbed(verbs)


@pytest.mark.parametrize("what", LOST)
def test_what_an_index_has_lost_it_gets_back(verbs: Verbs, what: str) -> None:
    town(verbs)
    damage = LOST[what]
    damage.do(verbs)
    found = records(verbs)
    assert (damage.index, damage.task_id) in [(one.where, one.task_id) for one in found]
    if what != "owner":  # whose lease has lapsed: its missions are taken over
        assert faults(read(verbs.redis)) == []
    undisturbed(verbs)


@pytest.mark.parametrize("what", STRANGE)
def test_what_an_index_should_not_have_is_dropped(verbs: Verbs, what: str) -> None:
    town(verbs)
    index, task_id, do = STRANGE[what]
    do(verbs)
    found = indexes(verbs)
    assert [(one.where, one.task_id, one.done) for one in found] == [(index, task_id, "dropped")]
    assert faults(read(verbs.redis)) == []
    undisturbed(verbs)


@pytest.mark.parametrize("index", ["timers", "held:w1", "permits:type:t"])
def test_what_has_left_an_index_since_it_was_seen_there_is_no_repair(verbs: Verbs, index: str) -> None:
    """An index is read in one call and looked at in the next; what moves in between does so rightly."""
    town(verbs)
    verbs.accept(New("moved", target="a:moved"))
    assert call(verbs, "index", index, "moved").repairs == []
    undisturbed(verbs)


def test_what_is_left_of_a_mission_that_is_gone_is_for_retire(verbs: Verbs) -> None:
    """Which removes its log and its result too; the row alone says that there may be some."""
    town(verbs)
    verbs.redis.delete(verbs.key("mission:over"))
    assert [one for one in indexes(verbs) if one.where == "retire"] == []
    verbs.set_score("retire", "over", 1)
    verbs.retire()
    assert verbs.redis.exists(verbs.key("log:over"), verbs.key("result:over")) == 0


def test_signals_of_a_lost_owner_go_with_it(verbs: Verbs) -> None:
    town(verbs)
    verbs.accept(*(New(f"m{n}") for n in range(60)))
    for task_id in [*verbs.take(slots=50), *verbs.take(slots=50)]:
        verbs.event(task_id, "e2")
    verbs.set_score("owners", "w1", 1)
    for _ in range(2):
        verbs.claim("w2", 0, renew_ms=0)
    assert (verbs.score("owners", "w1"), verbs.redis.exists(verbs.key("signals:w1"))) == (0, 1)
    undisturbed(verbs)


def test_a_waiter_that_was_lost_makes_its_holder_as_urgent(verbs: Verbs) -> None:
    verbs.accept(
        New("one", lane="bulk:default:a", target="a:lamp"), New("two", lane="urgent:default:a", target="a:lamp")
    )
    verbs.redis.zrem(verbs.key("waiters:a:lamp"), "two")
    verbs.redis.hset(verbs.key("mission:one"), "lane", "bulk:default:a")
    verbs.redis.hdel(verbs.key("mission:one"), "base")
    verbs.redis.zrem(verbs.key("lane:urgent:default:a"), "one")
    verbs.redis.zadd(verbs.key("lane:bulk:default:a"), {"one": 1})
    records(verbs)
    assert faults(read(verbs.redis)) == []
    assert verbs.record("one")["lane"] == "urgent:default:a"


def test_a_deadline_that_was_posted_is_not_put_back(verbs: Verbs) -> None:
    town(verbs)
    verbs.set_score("deadlines", "leased", 1)
    assert verbs.sweep()[0] == 1
    assert records(verbs) == []


def test_a_target_held_by_nobody_goes_to_the_best_waiter(verbs: Verbs) -> None:
    """The holder is gone, with all that was its own: P10 has no waiters without a holder."""
    town(verbs)
    verbs.redis.delete(verbs.key("mission:kept"), verbs.key("log:kept"))
    found = audit(verbs)
    assert ("target:a:fan", "kept", "passed on") in found
    assert (verbs.holder("a:fan"), verbs.place("behind")) == ("behind", "lane")
    assert faults(read(verbs.redis)) == []


def test_a_lost_hold_is_passed_on_where_only_waiters_are_left(verbs: Verbs) -> None:
    town(verbs)
    taken = verbs.take("w2", 0)
    assert taken == {}
    verbs.redis.delete(verbs.key("target:a:lamp"))
    found = records(verbs, "waiter")
    assert [one.done for one in found] == ["passed on"]
    assert (verbs.holder("a:lamp"), verbs.place("waiter")) == ("waiter", "lane")
    records(verbs, "leased")  # which is at work on it: it has the hold again, and the other one waits
    assert (verbs.holder("a:lamp"), verbs.place("waiter")) == ("leased", "waiters")
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("holder", ["paused", "ended", "elsewhere", "ready", "held up"])
def test_who_may_not_hold_a_target_loses_it(verbs: Verbs, holder: str) -> None:
    town(verbs)
    if holder == "held up":  # its own target, and paused
        verbs.accept(New(holder, target="a:fan"))
        verbs.pause(holder)
    verbs.redis.set(verbs.key("target:a:fan"), holder)
    verbs.redis.zrem(verbs.key("timers"), "kept")
    found = indexes(verbs)
    assert ("target:a:fan", holder, "passed on") in found
    assert verbs.holder("a:fan") == "behind"


@pytest.mark.parametrize("place", ["paused", "ended"])
def test_a_hold_in_a_place_that_has_none_is_passed_on(verbs: Verbs, place: str) -> None:
    verbs.accept(New("one", target="a:lamp"))
    taken = verbs.take()
    verbs.commit("w1", taken["one"].write("pause" if place == "paused" else "end"))
    verbs.redis.set(verbs.key("target:a:lamp"), "one")
    verbs.accept(New("two", target="a:lamp"))
    assert verbs.place("two") == "waiters"
    records(verbs, "one")
    assert (verbs.holder("a:lamp"), verbs.place("two")) == ("two", "lane")
    assert faults(read(verbs.redis)) == []


def test_of_two_that_are_ready_the_one_without_the_hold_waits(verbs: Verbs) -> None:
    verbs.accept(New("one", target="a:lamp"), New("two", target="a:lamp"))
    verbs.redis.hset(verbs.key("mission:two"), "place", "lane")
    verbs.redis.zrem(verbs.key("waiters:a:lamp"), "two")
    verbs.redis.zadd(verbs.key("lane:normal:default:a"), {"two": 2})
    records(verbs)
    assert (verbs.holder("a:lamp"), verbs.place("one"), verbs.place("two")) == ("one", "lane", "waiters")
    assert faults(read(verbs.redis)) == []


def test_of_two_at_work_on_one_target_neither_is_moved(verbs: Verbs) -> None:
    verbs.accept(New("one", target="a:lamp"), New("two", target="a:fan"))
    verbs.take()
    verbs.redis.hset(verbs.key("mission:two"), "target", "a:lamp")
    found = records(verbs, "one", "two")
    assert [(one.task_id, one.done) for one in found] == [("two", "nothing: another is at work on it")]
    assert (verbs.holder("a:lamp"), verbs.place("one"), verbs.place("two")) == ("one", "leased", "leased")


def test_a_waiter_without_a_target_is_ready(verbs: Verbs) -> None:
    verbs.accept(New("one"))
    verbs.redis.hset(verbs.key("mission:one"), "place", "waiters")
    verbs.redis.delete(verbs.key("lane:normal:default:a"))
    records(verbs)
    assert verbs.take().keys() == {"one"}


def test_a_waiter_that_has_the_hold_is_ready(verbs: Verbs) -> None:
    verbs.accept(New("one", target="a:lamp"), New("two", target="a:lamp"))
    verbs.redis.set(verbs.key("target:a:lamp"), "two")
    records(verbs, "two")
    assert verbs.place("two") == "lane"
    assert verbs.score("waiters:a:lamp", "two") is None


def test_what_sleeps_through_entries_is_woken(verbs: Verbs) -> None:
    town(verbs)
    verbs.redis.rpush(verbs.key("inbox:asleep"), "e1")
    verbs.redis.sadd(verbs.key("inbox_ids:asleep"), "e1")
    found = records(verbs)
    assert [one.done for one in found] == ["counted again", "woken: it slept through entries"]
    assert (verbs.place("asleep"), verbs.score("timers", "asleep")) == ("lane", None)
    assert faults(read(verbs.redis)) == []


def test_a_number_of_entries_that_is_wrong_is_counted_again(verbs: Verbs) -> None:
    """Else every commit would be told of entries that are not there, for ever."""
    town(verbs)
    verbs.redis.hset(verbs.key("mission:leased"), "unread", 3)
    records(verbs)
    taken = verbs.record("leased")
    assert taken["unread"] == "1"
    assert faults(read(verbs.redis)) == []


def test_a_lease_that_nobody_has_is_taken_over(verbs: Verbs) -> None:
    town(verbs)
    verbs.redis.zrem(verbs.key("owners"), "w1")
    verbs.redis.delete(verbs.key("held:w1"))
    records(verbs)
    verbs.claim("w2", 0, renew_ms=0)
    verbs.claim("w2", 0, renew_ms=0)
    assert (verbs.place("leased"), verbs.record("leased")["deaths"]) == ("lane", "1")
    assert faults(read(verbs.redis)) == []


def test_a_worker_is_woken_for_what_is_put_back(verbs: Verbs) -> None:
    town(verbs)
    verbs.redis.zrem(verbs.key("lane:normal:default:a"), "ready")
    with verbs.hearing("wake:default") as hear:
        records(verbs)
        assert hear() == [b""]


def test_a_permit_that_is_dropped_wakes_who_waits_for_it(verbs: Verbs) -> None:
    verbs.accept(New("one"), New("two"))
    taken = verbs.take()
    verbs.redis.hset(verbs.key("permits:dep"), "gone", 7)
    verbs.redis.zadd(verbs.key("permit_queue:dep"), {"two": 1})
    verbs.redis.hset(verbs.key("mission:two"), "queued", "dep 1")
    verbs.commit("w1", taken["two"].write("wait", wake_at=FAR, waiting_for="permit"))
    indexes(verbs)
    assert verbs.place("two") == "lane"
    assert verbs.score("timers", "two") is None


@pytest.mark.parametrize("said", ["7", None])
def test_a_count_that_is_wrong_is_put_right(verbs: Verbs, said: str | None) -> None:
    town(verbs)
    counts = verbs.key("counts")
    if said is None:
        verbs.redis.hdel(counts, "t|PENDING|START")
    else:
        verbs.redis.hset(counts, "t|PENDING|START", said)
    verbs.redis.hset(counts, "nothing|RUNNING|OF_IT", 3)
    found = recount(verbs)
    assert {one.task_id for one in found} == {"t|PENDING|START", "nothing|RUNNING|OF_IT"}
    assert faults(read(verbs.redis)) == []
    undisturbed(verbs)


@pytest.mark.parametrize("wrong", ["u|PENDING|START", "t|RUNNING|START"])
def test_a_count_that_moves_meanwhile_is_left_alone(verbs: Verbs, wrong: str) -> None:
    """What was found is old: a mission came, and one was claimed, after the missions were counted."""
    town(verbs)
    call(verbs, "mark", "t|RUNNING|START", "u|PENDING|START", "t|SUCCEEDED|NEXT")
    verbs.accept(New("one-more", "u"))
    verbs.claim()
    before = verbs.redis.hgetall(verbs.key("counts"))
    assert call(verbs, "counted", wrong, "99", "t|SUCCEEDED|NEXT", "2").repairs == []
    assert verbs.redis.hgetall(verbs.key("counts")) == before


def test_a_count_that_moves_back_and_forth_is_left_alone(verbs: Verbs) -> None:
    """One comes and another goes in one script: the number is as before, and who was counted is not who is there."""
    verbs.accept(New("one"), New("two"))
    taken = verbs.take()
    verbs.commit("w1", taken["one"].write(state="B"))
    call(verbs, "mark", "t|RUNNING|B")
    verbs.commit("w1", taken["one"].write(rev=1, state="C"), taken["two"].write(state="B"))
    assert call(verbs, "counted", "t|RUNNING|B", "0").repairs == []
    assert faults(read(verbs.redis)) == []


def test_a_count_that_was_not_marked_is_left_alone(verbs: Verbs) -> None:
    town(verbs)
    call(verbs, "mark", "t|RUNNING|START")
    assert call(verbs, "counted", "t|PENDING|START", "99", "t|RUNNING|START", "2").repairs == []


def test_a_leader_of_an_earlier_term_repairs_nothing(verbs: Verbs) -> None:
    town(verbs)
    call(verbs, "records", "ready", term=9)
    verbs.redis.zrem(verbs.key("lane:normal:default:a"), "ready")
    assert call(verbs, "records", "ready", term=8).fenced == 9
    assert verbs.score("lane:normal:default:a", "ready") is None
    assert len(call(verbs, "records", "ready", term=9).repairs) == 1


def test_a_later_term_is_remembered(verbs: Verbs) -> None:
    call(verbs, "records", term=8)
    call(verbs, "records", term=9)
    assert call(verbs, "records", term=8).fenced == 9


def test_b08_what_is_broken_costs_no_other(verbs: Verbs) -> None:
    town(verbs)
    verbs.redis.set(verbs.key("mission:absurd"), "no hash")
    verbs.redis.hset(verbs.key("mission:nowhere"), "type", "t")
    verbs.redis.hset(verbs.key("mission:paused"), "place", "limbo")
    verbs.redis.zrem(verbs.key("lane:normal:default:a"), "ready")
    found = call(verbs, "records", "absurd", "nowhere", "paused", "ready").repairs
    assert [(one.where, one.task_id) for one in found] == [
        ("", "absurd"),
        ("", "nowhere"),
        ("", "paused"),
        ("lane:normal:default:a", "ready"),
    ]
    assert "WRONGTYPE" in found[0].done
    assert "without a place" in found[1].done
    assert "no place: limbo" in found[2].done


def test_missions_that_are_gone_meanwhile_are_passed_over(verbs: Verbs) -> None:
    assert call(verbs, "records", "gone").more == []
    assert call(verbs, "records", "gone").repairs == []


def test_records_answer_what_each_counts_as(verbs: Verbs) -> None:
    verbs.accept(New("one"), New("two", "u"))
    assert call(verbs, "records", "one", "two").more == ["one", "t|PENDING|START", "two", "u|PENDING|START"]


def test_a_mark_that_an_earlier_leader_left_changes_nothing(verbs: Verbs) -> None:
    town(verbs)
    before = verbs.redis.hgetall(verbs.key("counts"))
    call(verbs, "mark", *(kind.decode() for kind in before))
    assert call(verbs, "counted").repairs == []
    assert verbs.redis.hgetall(verbs.key("counts")) == before


def test_what_is_marked_is_forgotten_in_the_end(verbs: Verbs) -> None:
    """A leader that dies in the middle leaves no mark behind that every script would have to look at."""
    call(verbs, "mark", "t|PENDING|START")
    assert 0 < verbs.redis.pttl(verbs.key("recount")) <= 24 * HOUR_MS
    call(verbs, "counted")
    assert verbs.redis.exists(verbs.key("recount")) == 0
