"""attend and abandon (P19): what was to end with its watchers ends once none has watched it for the grace time."""

from tests.redis.audit import faults, read
from tests.redis.scripts_client import FAR, HOUR_MS, New, Verbs
from tests.waiting import until


def attended(verbs: Verbs, watcher: str = "front", watch_ms: int = HOUR_MS) -> None:
    """A mission that is to be cancelled once nobody watches it."""
    verbs.attend("m", watch_ms)
    verbs.accept(New("m", watcher=watcher, watch_ms=watch_ms))


def lapse(verbs: Verbs) -> None:
    """The last watcher's registration ended long ago."""
    verbs.redis.hset(verbs.key("mission:m"), "watchers", "front 1")
    verbs.set_score("attended", "m", 1)


def test_a_row_is_there_before_the_mission_and_until_its_watcher_lapses(verbs: Verbs) -> None:
    before = verbs.now()

    assert verbs.attend("m", 5000) == "OK"
    assert before + 5000 <= (verbs.score("attended", "m") or 0) <= verbs.now() + 5000


def test_a_watched_mission_is_left_alone(verbs: Verbs) -> None:
    attended(verbs)

    handled, next_ms = verbs.abandon()
    assert handled == 0
    assert 0 < next_ms <= HOUR_MS
    assert verbs.place("m") == "lane"


def test_what_never_began_is_cancelled(verbs: Verbs) -> None:
    attended(verbs)
    lapse(verbs)

    assert verbs.abandon() == (1, -1)
    result = verbs.result("m")
    assert result is not None
    assert (result["status"], result["reason"]) == ("CANCELLED", "disconnected")
    assert faults(read(verbs.redis)) == []


def test_a_foreground_that_died_lapses(verbs: Verbs) -> None:
    attended(verbs, watch_ms=1)
    until(lambda: verbs.now() > (verbs.score("attended", "m") or 0))

    assert verbs.abandon() == (1, -1)


def test_who_comes_back_in_time_keeps_it(verbs: Verbs) -> None:
    attended(verbs)
    verbs.watch("front", 0, "m")
    assert verbs.abandon(grace_ms=HOUR_MS)[0] == 0
    verbs.watch("other", HOUR_MS, "m")

    assert verbs.abandon()[0] == 0
    assert (verbs.score("attended", "m") or 0) > verbs.now() + HOUR_MS - 60_000


def test_the_grace_time_is_waited_for(verbs: Verbs) -> None:
    attended(verbs)
    verbs.set_score("attended", "m", 1)
    verbs.redis.hset(verbs.key("mission:m"), "watchers", f"front {verbs.now() - 1000}")

    handled, next_ms = verbs.abandon(grace_ms=60_000)
    assert (handled, verbs.place("m")) == (0, "lane")
    assert 0 < next_ms <= 59_000
    assert verbs.abandon(grace_ms=900)[0] == 1


def test_the_record_decides_whether_it_is_watched(verbs: Verbs) -> None:
    """The row is only when to look: a watcher that came by meanwhile keeps the mission."""
    attended(verbs)
    lapse(verbs)
    verbs.watch("other", HOUR_MS, "m")
    verbs.set_score("attended", "m", 1)

    assert verbs.abandon()[0] == 0
    assert verbs.place("m") == "lane"
    assert (verbs.score("attended", "m") or 0) > verbs.now(), "and it is looked at again when that one lapses"


def test_each_watch_moves_the_next_look(verbs: Verbs) -> None:
    attended(verbs, watch_ms=1000)
    verbs.watch("other", HOUR_MS, "m")
    far = verbs.score("attended", "m") or 0
    assert far > verbs.now() + 2000
    verbs.watch("front", 0, "m")
    assert verbs.score("attended", "m") == far, "the last one counts, not the latest"
    verbs.watch("other", 0, "m")
    assert (verbs.score("attended", "m") or 0) <= verbs.now()


def test_watching_gives_no_row_to_a_mission_that_has_none(verbs: Verbs) -> None:
    verbs.accept(New("m", watcher="front"))
    verbs.watch("front", HOUR_MS, "m")

    assert verbs.score("attended", "m") is None


def test_a_leased_mission_is_told_not_ended(verbs: Verbs) -> None:
    attended(verbs)
    verbs.take("w1")
    lapse(verbs)

    assert verbs.abandon() == (1, -1)
    assert verbs.place("m") == "leased"
    assert verbs.unread("m") == ['{"entry":"cancel","reason":"disconnected"}']
    assert faults(read(verbs.redis)) == []


def test_what_a_worker_had_is_told_and_not_ended_though_nothing_was_committed(verbs: Verbs) -> None:
    attended(verbs)
    verbs.release("w1", ("m", verbs.take("w1")["m"].fence))
    lapse(verbs)

    assert verbs.abandon() == (1, -1)
    assert (verbs.place("m"), len(verbs.unread("m"))) == ("lane", 1)


def test_a_mission_that_committed_is_told_not_ended(verbs: Verbs) -> None:
    attended(verbs)
    m = verbs.take("w1")["m"]
    verbs.commit("w1", m.write("leave", wake_at=FAR))
    lapse(verbs)
    verbs.abandon()

    assert verbs.place("m") == "lane"
    assert len(verbs.unread("m")) == 1
    assert faults(read(verbs.redis)) == []


def test_it_has_room_in_a_full_inbox(verbs: Verbs) -> None:
    attended(verbs)
    verbs.take("w1")
    for n in range(64):
        verbs.event("m", f"e{n}")
    lapse(verbs)
    verbs.abandon()

    assert verbs.unread("m")[64:] == ['{"entry":"cancel","reason":"disconnected"}']


def test_a_client_s_cancel_and_this_one_are_one(verbs: Verbs) -> None:
    attended(verbs)
    verbs.take("w1")
    verbs.cancel("m")
    lapse(verbs)
    verbs.abandon()

    assert len(verbs.unread("m")) == 1


def test_rows_of_the_ended_and_the_gone_are_removed(verbs: Verbs) -> None:
    attended(verbs)
    verbs.cancel("m")
    verbs.attend("never")
    lapse(verbs)
    verbs.set_score("attended", "never", 1)
    before = verbs.record("m")

    assert verbs.abandon() == (0, -1)
    assert verbs.record("m") == before
    assert not verbs.redis.exists(verbs.key("attended"))


def test_a_failed_mission_never_fails_the_others_and_is_tried_again(verbs: Verbs) -> None:
    attended(verbs)
    lapse(verbs)
    verbs.redis.set(verbs.key("mission:bad"), "of another type")
    verbs.redis.zadd(verbs.key("attended"), {"bad": 0})

    handled, next_ms = verbs.abandon()
    assert handled == 1
    assert 0 < next_ms <= 60_000
    assert verbs.place("m") == "ended"


def test_fifty_a_script(verbs: Verbs) -> None:
    for n in range(60):
        verbs.attend(f"m{n:02}", 0)
    last = verbs.now()
    until(lambda: verbs.now() > last)

    assert verbs.abandon() == (0, 0)
    assert verbs.redis.zcard(verbs.key("attended")) == 10
