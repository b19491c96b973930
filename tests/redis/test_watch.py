"""watch (P19): a foreground says what it wants to hear of, for how long, and when no longer."""

from tests.redis.scripts_client import HOUR_MS, New, Verbs
from tests.waiting import until


def watchers(verbs: Verbs) -> dict[str, int]:
    parts = verbs.record("m").get("watchers", "").split()
    return {front: int(till) for front, till in zip(parts[::2], parts[1::2], strict=True)}


def test_a_watcher_is_kept_until_its_time(verbs: Verbs) -> None:
    verbs.accept(New("m"))
    before = verbs.now()

    assert verbs.watch("front", 5000, "m") == ["OK"]
    assert before + 5000 <= watchers(verbs)["front"] <= verbs.now() + 5000


def test_a_watcher_is_renewed_not_doubled(verbs: Verbs) -> None:
    verbs.accept(New("m", watcher="front", watch_ms=1000))
    verbs.watch("front", HOUR_MS, "m")

    assert verbs.record("m")["watchers"].split()[::2] == ["front"]
    assert watchers(verbs)["front"] > verbs.now() + 2000


def test_others_stay_and_the_lapsed_leave(verbs: Verbs) -> None:
    verbs.accept(New("m", watcher="lapsed", watch_ms=1))
    until(lambda: verbs.now() > watchers(verbs)["lapsed"])
    verbs.watch("one", HOUR_MS, "m")
    verbs.watch("two", HOUR_MS, "m")

    assert list(watchers(verbs)) == ["one", "two"]


def test_zero_unwatches(verbs: Verbs) -> None:
    verbs.accept(New("m", watcher="front"))
    verbs.watch("other", HOUR_MS, "m")

    assert verbs.watch("front", 0, "m") == ["OK"]
    assert list(watchers(verbs)) == ["other"]


def test_each_id_has_its_own_answer(verbs: Verbs) -> None:
    verbs.accept(New("m"), New("done"))
    verbs.cancel("done")
    before = verbs.record("done")

    assert verbs.watch("front", HOUR_MS, "m", "done", "never") == ["OK", "ENDED", "GONE"]
    assert verbs.record("done") == before
    assert not verbs.record("never")
