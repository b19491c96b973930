"""announce (P15): rows are there as long as a live worker names them, and every change is counted."""

from tests.redis.scripts_client import HOUR_MS, Verbs
from tests.waiting import until


def rows(verbs: Verbs) -> dict[bytes, bytes]:
    return dict(verbs.redis.hgetall(verbs.key("catalogue")))


def test_rows_are_published_and_counted(verbs: Verbs) -> None:
    assert verbs.announce(HOUR_MS, {"a@1": "{}", "b@2": "{}"}) == 1
    assert rows(verbs) == {b"a@1": b"{}", b"b@2": b"{}"}


def test_nothing_new_is_no_change(verbs: Verbs) -> None:
    verbs.announce(HOUR_MS, {"a@1": "{}"})

    assert verbs.announce(HOUR_MS, {"a@1": "{}"}) == 1


def test_another_row_of_the_same_type_is_a_change(verbs: Verbs) -> None:
    verbs.announce(HOUR_MS, {"a@1": "{}"})

    assert verbs.announce(HOUR_MS, {"a@1": '{"pool":"x"}'}) == 2


def test_a_row_goes_after_its_last_live_worker(verbs: Verbs) -> None:
    verbs.announce(HOUR_MS, {"a@1": "{}", "b@1": "{}"})
    verbs.set_score("catalogue_seen", "a@1", verbs.now() - 1001)

    assert verbs.announce(1000, {"b@1": "{}"}) == 2
    assert list(rows(verbs)) == [b"b@1"]
    assert verbs.score("catalogue_seen", "a@1") is None


def test_a_row_that_is_announced_stays(verbs: Verbs) -> None:
    verbs.announce(HOUR_MS, {"a@1": "{}"})
    seen = verbs.score("catalogue_seen", "a@1") or 0
    until(lambda: verbs.now() > seen)
    verbs.announce(HOUR_MS, {"a@1": "{}"})

    assert (verbs.score("catalogue_seen", "a@1") or 0) > seen
