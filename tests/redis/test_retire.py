"""retire (P18): after the retention nothing of a mission is left, and no key without owner or expiry."""

from tests.redis.audit import faults, leftovers, read
from tests.redis.scripts_client import FAR, New, Verbs, event


def ended(verbs: Verbs, *task_ids: str, rows: tuple[str, ...] = ()) -> None:
    """Ended missions whose retention has passed."""
    verbs.accept(*(New(one) for one in task_ids))
    taken = verbs.take("w1")
    verbs.commit("w1", *(taken[one].write("end", rows=rows) for one in task_ids))
    for one in task_ids:
        verbs.set_score("retire", one, 1)


def test_a_retired_mission_leaves_nothing(verbs: Verbs) -> None:
    ended(verbs, "m")

    assert verbs.retire() == (1, -1)
    assert leftovers(read(verbs.redis)) == []


def test_a_mission_is_kept_for_its_retention(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.cancel("m")

    removed, next_ms = verbs.retire()
    assert removed == 0
    assert next_ms > 0
    assert verbs.place("m") == "ended"


def test_no_mission_goes_before_its_rows_are_carried_out(verbs: Verbs) -> None:
    ended(verbs, "m", rows=("row",))

    removed, next_ms = verbs.retire(again_ms=5000)
    assert removed == 0
    assert 0 < next_ms <= 5000
    assert verbs.place("m") == "ended"
    verbs.redis.delete(verbs.key("outbox:m"), verbs.key("outboxes"))
    verbs.set_score("retire", "m", 1)
    assert verbs.retire() == (1, -1)
    assert leftovers(read(verbs.redis)) == []


def test_a_mission_that_has_not_ended_is_never_removed(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.redis.zadd(verbs.key("retire"), {"m": 1})

    assert verbs.retire() == (0, -1)
    assert verbs.place("m") == "lane"
    assert faults(read(verbs.redis)) == []


def test_a_row_without_a_record_is_removed(verbs: Verbs) -> None:
    verbs.redis.zadd(verbs.key("retire"), {"never": 1})

    assert verbs.retire() == (1, -1)
    assert read(verbs.redis).keys == {}


def test_fifty_a_script(verbs: Verbs) -> None:
    for start in (0, 30):
        ended(verbs, *(f"m{n:02}" for n in range(start, start + 30)))

    assert verbs.retire() == (50, 0)
    assert verbs.retire() == (10, -1)
    assert leftovers(read(verbs.redis)) == []


def test_a_failed_mission_never_fails_the_others(verbs: Verbs) -> None:
    ended(verbs, "a", "z")
    verbs.redis.set(verbs.key("mission:bad"), "of another type")
    verbs.redis.zadd(verbs.key("retire"), {"bad": 0})

    removed, next_ms = verbs.retire(again_ms=5000)
    assert removed == 2
    assert 0 < next_ms <= 5000
    assert (verbs.place("a"), verbs.place("z")) == ("gone", "gone")


def test_the_counts_of_what_is_left_are_right(verbs: Verbs) -> None:
    ended(verbs, "m", "n")
    verbs.set_score("retire", "n", FAR)
    verbs.retire()

    assert verbs.redis.hget(verbs.key("counts"), "t|SUCCEEDED|NEXT") == b"1"
    assert faults(read(verbs.redis)) == []
    verbs.set_score("retire", "n", 1)
    verbs.retire()
    assert not verbs.redis.hexists(verbs.key("counts"), "t|SUCCEEDED|NEXT"), "a zero is no row"


def test_a_whole_life_leaves_no_key_behind(verbs: Verbs) -> None:
    """Targets, waiters, timers, inbox, parking, cancel, deadline, takeover of one owner; then retired, and gone."""
    verbs.accept(*(New(one, target="a:lamp") for one in ("a", "b", "c")), New("d", type="new"), New("e"), New("f"))
    taken = verbs.take("w1")
    verbs.commit("w1", taken["a"].write("wait", wake_at=FAR, events=(event(),)))
    verbs.event("a", "e1")
    verbs.cancel("b")
    verbs.cancel("d")
    verbs.release("w1", ("e", taken["e"].fence))
    for one in "ef":
        verbs.event(one, "e2")
        verbs.set_score("deadlines", one, 1)
    verbs.sweep()
    while taken := verbs.take("w1"):
        verbs.commit("w1", *(one.write("end") for one in taken.values()))
    verbs.cancel("f")
    verbs.set_score("owners", "w1", 1)
    for _ in range(2):
        verbs.claim("w2", 0, renew_ms=0)
    f = verbs.take("w2")["f"]
    verbs.commit("w2", f.write("end"))
    assert faults(read(verbs.redis)) == []
    for one in "abcdef":
        verbs.set_score("retire", one, 1)
    verbs.claim("w2")

    assert verbs.retire() == (6, -1)
    assert leftovers(read(verbs.redis)) == []
    assert verbs.redis.zrange(verbs.key("owners"), 0, -1) == [b"w2"]
