"""Pause and resume (P14, P23): at once where nobody is at work on it, else an entry; never past the pause limit."""

import pytest

from tests.redis.audit import faults, read
from tests.redis.items import entry
from tests.redis.scripts_client import FAR, Move, New, Taken, Verbs

DEADLINE = '{"entry":"deadline"}'


def begun(verbs: Verbs, **fields: str) -> Taken:
    """A mission that has committed once, under lease of w1."""
    verbs.accept(New("m", **fields))  # type: ignore[arg-type]  # text fields only
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write())
    return m._replace(rev=1)


def the_limit_comes(verbs: Verbs) -> None:
    """It has been paused for longer than it may be, and its deadline has passed."""
    verbs.redis.hset(verbs.key("mission:m"), mapping={"paused_at": 1, "deadline": 1})
    verbs.redis.zadd(verbs.key("paused"), {"m": 1})
    verbs.set_score("deadlines", "m", 1)
    verbs.sweep()


def test_what_nobody_works_on_is_paused_at_once(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp", watcher="front"), New("next", target="a:lamp"))
    with verbs.hearing("feed:front") as hear:
        said = verbs.control("m", "pause", "p1", note='{"event":"paused","by":"op"}')

        assert said == ("OK", "PAUSED", "paused")
        assert hear()
    assert verbs.log("m")[-1]["data"] == {"event": "paused", "by": "op"}
    assert (verbs.log("m")[-1]["status"], verbs.record("m")["status"]) == ("PAUSED", "PAUSED")
    assert verbs.holder("a:lamp") == "next"
    assert faults(read(verbs.redis)) == []
    assert verbs.take("w1").keys() == {"next"}
    assert faults(read(verbs.redis)) == []


def test_what_is_leased_is_told(verbs: Verbs) -> None:
    m = begun(verbs)

    assert verbs.pause("m") == ("OK", "RUNNING")
    assert verbs.unread("m") == [entry("pause", by=None)]
    assert verbs.commit("w1", m.write("pause", consumed=1, wake_at=FAR, waiting_for="timer"))[0].word == "OK"
    record = verbs.record("m")
    assert (record["place"], record["status"], record["wake_at"]) == ("paused", "PAUSED", str(FAR))
    assert faults(read(verbs.redis)) == []


def test_a_pause_behind_unread_entries_is_an_entry(verbs: Verbs) -> None:
    """An event that came first is not to be slept through."""
    m = begun(verbs)
    verbs.release("w1", ("m", m.fence))
    verbs.event("m", "e1")

    assert verbs.pause("m") == ("OK", "WAITING")
    assert verbs.place("m") == "lane"
    assert verbs.take("w1")["m"].unread == ("e1", entry("pause", by=None))


def test_a_pause_of_what_is_paused_changes_nothing(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.pause("m")
    before = read(verbs.redis)

    assert verbs.pause("m", "again") == ("OK", "PAUSED")
    assert read(verbs.redis) == before


def test_the_wake_time_is_kept_and_goes_on(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("leave", wake_at=FAR, waiting_for="timer"))
    verbs.pause("m")
    assert verbs.score("timers", "m") is None

    assert verbs.resume("m") == ("OK", "WAITING")
    assert verbs.score("timers", "m") == FAR
    assert verbs.record("m")["waiting_for"] == "timer"
    assert verbs.log("m")[-1]["data"] == {"event": "resumed", "by": "op"}
    assert faults(read(verbs.redis)) == []


def test_a_wake_time_that_passed_meanwhile_is_not_waited_for(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("leave", wake_at=1, waiting_for="timer"))
    verbs.pause("m")
    verbs.resume("m")

    assert verbs.place("m") == "lane"


def test_a_wake_time_of_an_earlier_wait_is_none_of_its_own(verbs: Verbs) -> None:
    """It was ready when it was paused, so it is ready when it is resumed."""
    m = begun(verbs)
    verbs.commit("w1", m.write("leave", wake_at=FAR, waiting_for="timer"))
    verbs.event("m", "e1")
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("yield"))
    verbs.pause("m")
    verbs.resume("m")

    assert verbs.place("m") == "lane"


def test_who_waits_for_an_event_alone_goes_on_waiting(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("leave", waiting_for="event"))
    verbs.pause("m")
    assert verbs.resume("m") == ("OK", "WAITING")

    assert verbs.place("m") == "waiting"
    assert faults(read(verbs.redis)) == []


def test_what_came_meanwhile_is_read_first(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("leave", wake_at=FAR, waiting_for="timer"))
    verbs.pause("m")
    assert verbs.event("m", "e1") == ("OK", "PAUSED")
    verbs.redis.hset(verbs.key("mission:m"), "ready_at", 1)
    verbs.resume("m")

    assert int(verbs.record("m")["ready_at"]) > 1
    assert verbs.take("w1")["m"].unread == ("e1",)
    assert faults(read(verbs.redis)) == []


def test_a_resumed_mission_takes_its_target_or_waits_for_it(verbs: Verbs) -> None:
    verbs.accept(New("m", target="a:lamp"), New("next", target="a:lamp"))
    verbs.pause("m")
    verbs.resume("m")

    assert (verbs.place("m"), verbs.holder("a:lamp")) == ("waiters", "next")
    verbs.cancel("next")
    assert verbs.holder("a:lamp") == "m"
    assert faults(read(verbs.redis)) == []


def test_a_resume_before_the_pause_was_read_is_an_entry_too(verbs: Verbs) -> None:
    begun(verbs)
    verbs.resume("m")
    assert verbs.unread("m") == []
    verbs.pause("m")
    verbs.resume("m")

    assert verbs.unread("m") == [entry("pause", by=None), entry("resume", by=None)]


@pytest.mark.parametrize("where", ["lane", "leased", "waiting"])
def test_what_is_undone_stays_so_through_a_pause(verbs: Verbs, where: str) -> None:
    m = begun(verbs)
    if where == "lane":
        verbs.commit("w1", m.write("yield", status="COMPENSATING"))
        verbs.pause("m")
    else:
        wake_at = FAR if where == "waiting" else None
        verbs.commit(
            "w1", m.write("pause", status="COMPENSATING", wake_at=wake_at, waiting_for="retry" if wake_at else "")
        )
    assert verbs.record("m")["status"] == "PAUSED"
    assert faults(read(verbs.redis)) == []

    assert verbs.resume("m") == ("OK", "COMPENSATING")
    assert "was" not in verbs.record("m")
    assert faults(read(verbs.redis)) == []


def test_a_cancel_reaches_what_is_paused(verbs: Verbs) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("pause", wake_at=FAR, waiting_for="timer"))

    assert verbs.control("m", "cancel", "c1") == ("OK", "WAITING", "lane")
    assert len(verbs.take("w1")["m"].unread) == 1
    assert faults(read(verbs.redis)) == []


def test_a_pause_outlasts_the_deadline_by_the_limit_at_most(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    verbs.pause("m")
    verbs.set_score("deadlines", "m", 1)
    before = verbs.now()

    assert verbs.sweep(pause_limit_ms=60_000)[0] == 0
    assert verbs.place("m") == "paused"
    assert before - 1000 <= (verbs.score("deadlines", "m") or 0) - 60_000 <= verbs.now()
    the_limit_comes(verbs)
    assert (verbs.result("m") or {})["reason"] == "expired"
    assert faults(read(verbs.redis)) == []


def test_what_began_is_told_of_its_deadline_at_the_limit(verbs: Verbs) -> None:
    m = begun(verbs, target="a:lamp")
    verbs.commit("w1", m.write("pause", wake_at=FAR, waiting_for="timer"))
    the_limit_comes(verbs)

    assert verbs.take("w1")["m"].unread == (DEADLINE,)
    assert verbs.score("deadlines", "m") is None
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("by", ["control", "commit"])
def test_what_was_told_of_its_deadline_before_comes_back_at_the_limit(verbs: Verbs, by: str) -> None:
    """Paused while it is being undone, its deadline read: without the limit it would stay for ever."""
    m = begun(verbs)
    verbs.set_score("deadlines", "m", 1)
    verbs.sweep()
    move: Move = "pause" if by == "commit" else "leave"
    verbs.commit("w1", m.write(move, consumed=1, status="COMPENSATING", wake_at=FAR, waiting_for="retry"))
    verbs.pause("m")
    assert verbs.place("m") == "paused"
    the_limit_comes(verbs)

    assert (verbs.place("m"), verbs.record("m")["status"]) == ("lane", "COMPENSATING")
    assert verbs.unread("m") == [], "a deadline is told once"
    assert faults(read(verbs.redis)) == []


@pytest.mark.parametrize("wake_at", [None, FAR])
def test_a_resumed_mission_has_its_own_deadline_again(verbs: Verbs, wake_at: int | None) -> None:
    m = begun(verbs)
    verbs.commit("w1", m.write("pause", wake_at=wake_at))
    verbs.redis.hset(verbs.key("mission:m"), "deadline", 1)
    verbs.set_score("deadlines", "m", 1)
    verbs.sweep()
    assert (verbs.score("deadlines", "m") or 0) > verbs.now()
    verbs.resume("m")

    assert verbs.score("deadlines", "m") == 1
    verbs.sweep()
    assert verbs.unread("m") == [DEADLINE]


def test_only_events_and_pauses_may_find_no_room(verbs: Verbs) -> None:
    begun(verbs)
    verbs.pause("m")
    for n in range(63):
        verbs.event("m", f"e{n}")

    words = {
        verb: verbs.control("m", verb, f"{verb} 1").word for verb in ("event", "pause", "resume", "skip", "complete")
    }
    assert words == {"event": "FULL", "pause": "FULL", "resume": "OK", "skip": "OK", "complete": "OK"}
    assert faults(read(verbs.redis)) == []
