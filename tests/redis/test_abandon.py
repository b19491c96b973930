"""abandon (P19): what was to end with its last watcher does, a grace time later; all else goes on."""

from typing import Any

from tests.redis.audit import faults, read
from tests.redis.scripts_client import HOUR_MS, New, Verbs
from tests.waiting import until

GRACE_MS = 10
ENTRY = '{"entry":"cancel","reason":"disconnected"}'


def submit(verbs: Verbs, *, watch_ms: int = HOUR_MS, **fields: Any) -> None:
    """As a socket's command with on_disconnect cancel comes in."""
    verbs.run("attend", "m", watch_ms)
    verbs.accept(New("m", watcher="front", watch_ms=watch_ms, **fields))


def abandon(verbs: Verbs, grace_ms: int = GRACE_MS) -> tuple[int, int]:
    handled, next_ms = verbs.run("abandon", grace_ms, HOUR_MS)
    return handled, next_ms


def attended(verbs: Verbs) -> dict[str, int]:
    rows = verbs.redis.zrange(verbs.key("attended"), 0, -1, withscores=True)
    return {name.decode(): int(score) for name, score in rows}


def is_past(verbs: Verbs, grace_ms: int = GRACE_MS) -> None:
    """Wait until the grace is over for what nobody watches."""
    until(lambda: verbs.now() > min(attended(verbs).values()) + grace_ms)


def test_while_somebody_watches_nothing_happens(verbs: Verbs) -> None:
    submit(verbs)
    handled, next_ms = abandon(verbs)
    assert handled == 0
    assert HOUR_MS - 5000 < next_ms <= HOUR_MS + GRACE_MS
    assert verbs.place("m") == "lane"


def test_within_the_grace_nothing_happens(verbs: Verbs) -> None:
    submit(verbs)
    verbs.watch("front", 0, "m")
    handled, next_ms = abandon(verbs, grace_ms=HOUR_MS)
    assert handled == 0
    assert 0 < next_ms <= HOUR_MS
    assert verbs.place("m") == "lane"


def test_what_never_began_is_ended(verbs: Verbs) -> None:
    submit(verbs)
    verbs.watch("front", 0, "m")
    is_past(verbs)

    assert abandon(verbs) == (1, -1)
    result = verbs.result("m")
    assert result is not None
    assert (result["status"], result["reason"]) == ("CANCELLED", "disconnected")
    assert faults(read(verbs.redis)) == []


def test_a_leased_mission_is_told(verbs: Verbs) -> None:
    submit(verbs)
    verbs.take("w1")
    verbs.watch("front", 0, "m")
    is_past(verbs)

    assert abandon(verbs) == (1, -1)
    assert verbs.place("m") == "leased"
    assert verbs.unread("m") == [ENTRY]
    assert verbs.renew("w1") == {"m"}
    assert faults(read(verbs.redis)) == []


def test_a_foreground_that_died_lapses(verbs: Verbs) -> None:
    submit(verbs, watch_ms=1)
    is_past(verbs)
    assert abandon(verbs) == (1, -1)


def test_another_watcher_keeps_it(verbs: Verbs) -> None:
    submit(verbs)
    verbs.watch("other", HOUR_MS, "m")
    verbs.watch("front", 0, "m")

    assert attended(verbs)["m"] > verbs.now() + HOUR_MS - 5000
    assert abandon(verbs)[0] == 0


def test_who_comes_back_in_time_keeps_it(verbs: Verbs) -> None:
    submit(verbs)
    verbs.watch("front", 0, "m")
    verbs.watch("other", HOUR_MS, "m")
    assert abandon(verbs)[0] == 0
    assert attended(verbs)["m"] > verbs.now() + HOUR_MS - 5000


def test_the_record_decides_not_the_row(verbs: Verbs) -> None:
    submit(verbs)
    verbs.set_score("attended", "m", 1)

    handled, next_ms = abandon(verbs)
    assert handled == 0
    assert next_ms > HOUR_MS - 5000
    assert verbs.place("m") == "lane"


def test_a_mission_without_that_wish_goes_on(verbs: Verbs) -> None:
    verbs.accept(New("m", watcher="front", watch_ms=1))
    verbs.watch("front", 0, "m")
    assert attended(verbs) == {}
    assert abandon(verbs, grace_ms=0) == (0, -1)
    assert verbs.place("m") == "lane"


def test_a_row_without_its_mission_leaves(verbs: Verbs) -> None:
    verbs.run("attend", "never accepted", 1)
    is_past(verbs)
    assert abandon(verbs) == (0, -1)
    assert attended(verbs) == {}


def test_what_has_ended_stays_as_it_is(verbs: Verbs) -> None:
    submit(verbs)
    verbs.cancel("m")
    before = verbs.record("m")
    verbs.set_score("attended", "m", 1)
    assert abandon(verbs) == (0, -1)
    assert verbs.record("m") == before


def test_a_mission_that_breaks_leaves_the_others_alone(verbs: Verbs) -> None:
    submit(verbs)
    verbs.watch("front", 0, "m")
    verbs.run("attend", "broken", 1)
    verbs.redis.set(verbs.key("mission:broken"), "no hash")
    verbs.set_score("attended", "broken", 1)
    is_past(verbs)
    until(lambda: verbs.result("m") or abandon(verbs)[0])
    assert list(attended(verbs)) == ["broken"]
