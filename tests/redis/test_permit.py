"""Permits (P12): all scopes or none, for the lease holder alone; they end with every commit, release and takeover."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, New, Taken, Verbs, Write
from tests.redis.test_takeover import take_over
from tests.waiting import until

ONE = ("type:t", 1)
TWO = ("dep:bank", 2)


def ask(verbs: Verbs, m: Taken, *limits: tuple[str, int], owner: str = "w1") -> tuple[str, ...]:
    """The word; and of BUSY the scope that is full, and how many wait in front."""
    answer = verbs.run("permit", owner, m.task_id, m.fence, *(part for limit in limits for part in limit))
    if isinstance(answer, bytes):
        return (answer.decode(),)
    return answer[0].decode(), answer[1].decode(), str(answer[2])


def holders(verbs: Verbs, scope: str) -> set[str]:
    return {one.decode() for one in verbs.redis.hkeys(verbs.key(f"permits:{scope}"))}


def queue(verbs: Verbs, scope: str) -> list[str]:
    """Who waits for a permit, best first."""
    return [one.decode() for one in verbs.redis.zrange(verbs.key(f"permit_queue:{scope}"), 0, -1)]


def leased(verbs: Verbs, *names: str, owner: str = "w1", **fields: str) -> list[Taken]:
    verbs.accept(*(New(name, **fields) for name in names))  # type: ignore[arg-type]  # text fields only
    taken = verbs.take(owner)
    return [taken[name] for name in names]


def wait(m: Taken, wake_at: int = FAR, **changes: int) -> Write:
    """The commit that follows a NoPermit."""
    return m.write("wait", waiting_for="permit", wake_at=wake_at, **changes)


def test_no_more_than_the_limit_hold_a_scope(verbs: Verbs) -> None:
    a, b, c = leased(verbs, "a", "b", "c")

    assert [ask(verbs, one, TWO) for one in (a, b, c)] == [("OK",), ("OK",), ("BUSY", "dep:bank", "0")]
    assert holders(verbs, "dep:bank") == {"a", "b"}
    assert faults(read(verbs.redis)) == []


def test_the_limit_may_be_raised_while_it_is_held(verbs: Verbs) -> None:
    a, b = leased(verbs, "a", "b")
    ask(verbs, a, ("dep:bank", 1))

    assert ask(verbs, b, ("dep:bank", 2)) == ("OK",)


def test_all_scopes_or_none(verbs: Verbs) -> None:
    a, b = leased(verbs, "a", "b")
    ask(verbs, a, ONE)

    assert ask(verbs, b, TWO, ONE) == ("BUSY", "type:t", "0")
    assert holders(verbs, "dep:bank") == set()
    assert faults(read(verbs.redis)) == []


def test_the_record_names_what_is_held(verbs: Verbs) -> None:
    (m,) = leased(verbs, "m")
    ask(verbs, m, TWO, ONE)

    assert verbs.record("m")["permits"] == "dep:bank type:t"
    assert faults(read(verbs.redis)) == []


def test_asked_again_after_a_lost_answer_it_is_the_same_permit(verbs: Verbs) -> None:
    (m,) = leased(verbs, "m")

    assert [ask(verbs, m, ONE), ask(verbs, m, ONE)] == [("OK",), ("OK",)]
    assert faults(read(verbs.redis)) == []


def test_another_owner_is_fenced(verbs: Verbs) -> None:
    (m,) = leased(verbs, "m")

    assert ask(verbs, m, ONE, owner="w2") == ("FENCED",)
    assert holders(verbs, "type:t") == set()


def test_a_stale_fence_is_fenced(verbs: Verbs) -> None:
    (m,) = leased(verbs, "m")
    verbs.release("w1", ("m", m.fence))
    verbs.take("w1")

    assert ask(verbs, m, ONE) == ("FENCED",)
    assert holders(verbs, "type:t") == set()


def test_what_is_not_leased_is_fenced(verbs: Verbs) -> None:
    (m,) = leased(verbs, "m")
    verbs.commit("w1", m.write("leave", wake_at=FAR))

    assert ask(verbs, m, ONE) == ("FENCED",)
    assert ask(verbs, m._replace(task_id="never"), ONE) == ("FENCED",)
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("move", ["stay", "offer", "wait", "leave", "yield", "pause", "end", "bury"])
def test_a_permit_ends_with_every_commit(verbs: Verbs, move: str) -> None:
    (m,) = leased(verbs, "m")
    ask(verbs, m, ONE, TWO)
    verbs.commit("w1", m.write(move, waiting_for="timer", wake_at=FAR))  # type: ignore[arg-type]  # one of the moves

    assert holders(verbs, "type:t") | holders(verbs, "dep:bank") == set()
    assert "permits" not in verbs.record("m")
    assert faults(read(verbs.redis)) == []


def test_a_permit_ends_with_the_release(verbs: Verbs) -> None:
    (m,) = leased(verbs, "m")
    ask(verbs, m, ONE)
    verbs.release("w1", ("m", m.fence))

    assert holders(verbs, "type:t") == set()
    assert faults(read(verbs.redis)) == []


def test_b12_a_permit_ends_with_the_takeover(verbs: Verbs) -> None:
    (m,) = leased(verbs, "m")
    ask(verbs, m, ONE)
    take_over(verbs)

    assert holders(verbs, "type:t") == set()
    assert faults(read(verbs.redis)) == []


def test_b12_a_permit_ends_with_a_suspect_that_is_convicted(verbs: Verbs) -> None:
    (m,) = leased(verbs, "m", owner="solo-1")
    verbs.redis.hset(verbs.key("mission:m"), "solo_deaths", 2)
    ask(verbs, m, ONE, owner="solo-1")
    take_over(verbs, "solo-1")

    assert verbs.place("m") == "ended"
    assert holders(verbs, "type:t") == set()
    assert faults(read(verbs.redis)) == []


def test_b12_what_no_lease_stands_behind_is_no_permit(verbs: Verbs) -> None:
    """Belt and braces: whatever was forgotten, a ghost never counts as running."""
    (m,) = leased(verbs, "m")
    (waiting,) = leased(verbs, "waiting")
    verbs.commit("w1", waiting.write("leave", wake_at=FAR))
    verbs.redis.hset(verbs.key("permits:type:t"), mapping={"gone": 1, "waiting": waiting.fence})

    assert ask(verbs, m, ONE) == ("OK",)
    assert holders(verbs, "type:t") == {"m"}


def test_b12_a_permit_of_an_earlier_lease_is_none(verbs: Verbs) -> None:
    m, n = leased(verbs, "m", "n")
    verbs.redis.hset(verbs.key("permits:type:t"), "m", m.fence - 1)

    assert ask(verbs, n, ONE) == ("OK",)


def test_who_holds_a_permit_under_a_lease_is_never_purged(verbs: Verbs) -> None:
    a, b = leased(verbs, "a", "b")
    ask(verbs, a, ONE)

    assert [ask(verbs, b, ONE)[0] for _ in range(3)] == ["BUSY"] * 3
    assert holders(verbs, "type:t") == {"a"}


def test_a_freed_permit_wakes_the_first_who_asked(verbs: Verbs) -> None:
    a, b, c = leased(verbs, "a", "b", "c")
    ask(verbs, a, ONE)
    for n, one in enumerate((b, c)):
        assert ask(verbs, one, ONE) == ("BUSY", "type:t", str(n))
        verbs.commit("w1", wait(one))
    verbs.commit("w1", a.write("end"))

    assert [verbs.place(name) for name in "bc"] == ["lane", "waiting"]
    assert queue(verbs, "type:t") == ["c"]
    assert faults(read(verbs.redis)) == []
    assert verbs.take("w1").keys() == {"b"}


def test_a_commit_that_goes_on_frees_its_permit_too(verbs: Verbs) -> None:
    a, b = leased(verbs, "a", "b")
    ask(verbs, a, ONE)
    ask(verbs, b, ONE)
    verbs.commit("w1", wait(b))
    verbs.commit("w1", a.write("stay"))

    assert verbs.place("b") == "lane"
    assert faults(read(verbs.redis)) == []


def test_b43_the_queue_goes_by_priority(verbs: Verbs) -> None:
    a, bulk = leased(verbs, "a", "bulk", lane="bulk:default:a")
    (urgent,) = leased(verbs, "urgent", lane="urgent:default:a")
    ask(verbs, a, ONE)
    for one in (bulk, urgent):
        ask(verbs, one, ONE)

    assert queue(verbs, "type:t") == ["urgent", "bulk"]


def test_b43_who_has_waited_long_goes_first_whatever_its_priority(verbs: Verbs) -> None:
    a, bulk = leased(verbs, "a", "bulk", lane="bulk:default:a")
    (urgent,) = leased(verbs, "urgent", lane="urgent:default:a")
    ask(verbs, a, ONE)
    ask(verbs, bulk, ONE)
    verbs.redis.hset(verbs.key("mission:bulk"), "queued", f"type:t {verbs.now() - 100_000}")
    ask(verbs, bulk, ONE)
    ask(verbs, urgent, ONE)

    assert queue(verbs, "type:t") == ["bulk", "urgent"]


def test_another_priority_counts_from_the_next_question_on(verbs: Verbs) -> None:
    a, b, c = leased(verbs, "a", "b", "c", lane="bulk:default:a")
    ask(verbs, a, ONE)
    for one in (b, c):
        ask(verbs, one, ONE)
    verbs.prioritize("c", "urgent")
    ask(verbs, c, ONE)

    assert queue(verbs, "type:t") == ["c", "b"]


def test_who_was_woken_in_vain_keeps_its_turn(verbs: Verbs) -> None:
    a, b, c = leased(verbs, "a", "b", "c")
    ask(verbs, a, ONE)
    ask(verbs, b, ONE)
    verbs.commit("w1", wait(b))
    ask(verbs, c, ONE)
    verbs.commit("w1", a.write("stay"))
    asked_at = verbs.now()
    until(lambda: verbs.now() > asked_at)
    again = verbs.take("w1")["b"]
    ask(verbs, a, ONE)  # faster

    assert ask(verbs, again, ONE) == ("BUSY", "type:t", "0")
    assert queue(verbs, "type:t") == ["b", "c"]


def test_whoever_gets_its_permit_leaves_the_queue(verbs: Verbs) -> None:
    a, b = leased(verbs, "a", "b")
    ask(verbs, a, ONE)
    ask(verbs, b, ONE)
    verbs.redis.hdel(verbs.key("permits:type:t"), "a")  # not by the way that would take it out of the queue
    verbs.redis.hdel(verbs.key("mission:a"), "permits")
    assert ask(verbs, b, ONE) == ("OK",)

    assert queue(verbs, "type:t") == []
    assert "queued" not in verbs.record("b")


def test_it_stands_in_one_queue_at_a_time(verbs: Verbs) -> None:
    a, b, c = leased(verbs, "a", "b", "c")
    ask(verbs, a, ONE)
    ask(verbs, b, ("dep:bank", 1))
    ask(verbs, c, ONE)
    ask(verbs, c, ("dep:bank", 1))

    assert [queue(verbs, "type:t"), queue(verbs, "dep:bank")] == [[], ["c"]]


def test_a_permit_freed_before_the_wait_is_written_wakes_it_all_the_same(verbs: Verbs) -> None:
    """Asked, BUSY; the permit comes free; only now the wait is committed: it must not be slept through."""
    a, b, c = leased(verbs, "a", "b", "c")
    ask(verbs, a, ONE)
    ask(verbs, b, ONE)
    ask(verbs, c, ONE)
    verbs.commit("w1", wait(c))
    verbs.commit("w1", a.write("end"))
    assert verbs.place("c") == "waiting", "b is in front, and asks again"
    with verbs.hearing("wake:default") as hear:
        verbs.commit("w1", wait(b))
        assert hear()

    assert verbs.take("w1").keys() == {"b"}
    assert faults(read(verbs.redis)) == []


def test_a_wait_that_nothing_was_freed_for_lasts(verbs: Verbs) -> None:
    a, b = leased(verbs, "a", "b")
    ask(verbs, a, ONE)
    ask(verbs, b, ONE)
    verbs.commit("w1", wait(b))

    assert verbs.take("w1") == {}
    assert verbs.score("timers", "b") == FAR


def test_what_waits_for_something_else_by_now_is_passed_over(verbs: Verbs) -> None:
    a, b, c = leased(verbs, "a", "b", "c")
    ask(verbs, a, ONE)
    for one in (b, c):
        ask(verbs, one, ONE)
    verbs.commit("w1", b.write("leave", waiting_for="event"))
    verbs.commit("w1", wait(c))
    verbs.commit("w1", a.write("end"))

    assert [verbs.place(name) for name in "bc"] == ["waiting", "lane"]


def test_what_is_paused_by_now_is_passed_over(verbs: Verbs) -> None:
    a, b, c = leased(verbs, "a", "b", "c")
    ask(verbs, a, ONE)
    for one in (b, c):
        ask(verbs, one, ONE)
        verbs.commit("w1", wait(one))
    verbs.pause("b")
    verbs.commit("w1", a.write("end"))

    assert [verbs.place(name) for name in "bc"] == ["paused", "lane"]
    assert faults(read(verbs.redis)) == []


def test_waiting_for_a_permit_keeps_the_target(verbs: Verbs) -> None:
    """It comes after the target: nobody who holds one waits for another mission's."""
    (a,) = leased(verbs, "a")
    (b,) = leased(verbs, "b", target="x:lamp")
    ask(verbs, a, ONE)
    ask(verbs, b, ONE)
    verbs.commit("w1", wait(b))
    verbs.accept(New("c", target="x:lamp"))

    assert verbs.holder("x:lamp") == "b"
    verbs.commit("w1", a.write("end"))
    assert verbs.take("w1").keys() == {"b"}
    assert faults(read(verbs.redis)) == []


def test_nothing_is_left_of_one_that_ended_in_the_queue(verbs: Verbs) -> None:
    a, b = leased(verbs, "a", "b")
    ask(verbs, a, ONE)
    ask(verbs, b, ONE)
    verbs.commit("w1", b.write("end"))
    verbs.set_score("retire", "b", 1)
    verbs.retire()

    assert queue(verbs, "type:t") == []
