"""Which instants are run after a while in which nobody was there."""

from datetime import datetime
from typing import Any

import pytest

from backend_loop.loops.misfires import MOST, Turn, is_missed, turn
from shared.schedules import Misfire, Plan

MINUTE = 60_000
NOON = round(datetime.fromisoformat("2026-06-01T12:00Z").timestamp() * 1000)


def plan(**changes: Any) -> Plan:
    return Plan(**({"cron": "* * * * *", "command": {}, "late_s": 30.0} | changes))


def runs(plan: Plan, expected: int, now: int) -> tuple[list[int], int | None]:
    """All that is run at one moment, turn after turn, in minutes from noon; and what comes then."""
    found, following = list[int](), expected
    while following <= now:
        one = turn("s", plan, following, now)
        if one.run is not None:
            found.append((one.run - NOON) // MINUTE)
        assert one.following is not None
        assert one.following > following, "it gets on"
        following = one.following
    return found, (following - NOON) // MINUTE


def test_on_time_it_is_run_and_the_next_one_waits() -> None:
    for misfire in ("skip", "once", "all"):
        assert turn("s", plan(misfire=misfire), NOON, NOON + 5) == Turn(NOON, NOON + MINUTE)


@pytest.mark.parametrize(("misfire", "wanted"), [("skip", []), ("once", [9]), ("all", list(range(10)))])
def test_b42_after_ten_minutes_of_nobody(misfire: Misfire, wanted: list[int]) -> None:
    """Minutes 0 to 9 are too late at half past the ninth and a bit; the tenth is to come."""
    assert runs(plan(misfire=misfire), NOON, NOON + 9 * MINUTE + 31_000) == (wanted, 10)


@pytest.mark.parametrize(("misfire", "wanted"), [("skip", [10]), ("once", [10]), ("all", list(range(11)))])
def test_b42_what_is_hardly_late_stands_for_those_before_it(misfire: Misfire, wanted: list[int]) -> None:
    assert runs(plan(misfire=misfire), NOON, NOON + 10 * MINUTE + 1_000) == (wanted, 11)


def test_how_late_still_counts_is_up_to_the_schedule() -> None:
    now = NOON + 3 * MINUTE + 20_000
    assert runs(plan(misfire="skip", late_s=90), NOON, now) == ([2, 3], 4)
    assert runs(plan(misfire="once", late_s=90), NOON, now) == ([2, 3], 4)


@pytest.mark.parametrize(("misfire", "wanted"), [("skip", 0), ("once", 1), ("all", MOST)])
def test_a_year_of_minutes_is_bounded(misfire: Misfire, wanted: int) -> None:
    found, following = runs(plan(misfire=misfire), NOON - 365 * 1440 * MINUTE, NOON + 31_000)
    assert len(found) == wanted
    assert found == sorted(set(found))
    assert found[-1:] == [0][:wanted]
    assert following == 1


def test_b42_an_interval_longer_than_any_uptime_is_run_once_somebody_is_there() -> None:
    monthly = plan(cron="0 0 1 * *")
    first = round(datetime.fromisoformat("2026-05-01T00:00Z").timestamp() * 1000)
    one = turn("s", monthly, first, NOON)
    assert one.run == round(datetime.fromisoformat("2026-06-01T00:00Z").timestamp() * 1000)
    assert one.passed == first
    assert one.following == round(datetime.fromisoformat("2026-07-01T00:00Z").timestamp() * 1000)


def test_what_is_left_out_is_told() -> None:
    assert turn("s", plan(misfire="skip"), NOON, NOON + 9 * MINUTE + 31_000).passed == NOON
    assert turn("s", plan(misfire="once"), NOON, NOON + 9 * MINUTE + 31_000).passed == NOON
    assert turn("s", plan(misfire="all"), NOON, NOON + 9 * MINUTE + 31_000).passed is None


def test_an_instant_that_the_zones_rules_know_no_more_was_promised() -> None:
    one = turn("s", plan(), NOON + 7_000, NOON + 8_000)
    assert one == Turn(NOON + 7_000, NOON + MINUTE)


def test_jitter_is_the_same_whoever_asks_and_bounded() -> None:
    jittery = plan(jitter_s=30)
    shifts = {jittery.due("s", NOON + n * MINUTE) - NOON - n * MINUTE for n in range(200)}
    assert len(shifts) > 150
    assert 0 <= min(shifts) < 3_000
    assert 27_000 < max(shifts) <= 30_000
    assert jittery.due("s", NOON) == jittery.due("s", NOON) != jittery.due("t", NOON)
    assert plan().due("s", NOON) == NOON


def test_jitter_counts_as_no_lateness_and_nothing_runs_before_it() -> None:
    jittery = plan(cron="0 12 * * *", jitter_s=600, misfire="skip")
    due = jittery.due("s", NOON)
    assert due > NOON + 1_000
    assert turn("s", jittery, NOON, due - 1) == Turn(None, NOON, NOON)
    assert turn("s", jittery, NOON, due + 29_000).run == NOON
    assert turn("s", jittery, NOON, due + 31_000).run is None


@pytest.mark.parametrize(
    ("misfire", "late_s", "missed"),
    [
        ("skip", 29, False),
        ("skip", 31, True),
        ("once", 29, False),
        ("once", 59, False),
        ("once", 61, True),
        ("all", 3_600, False),
    ],
)
def test_b42_what_was_begun_and_not_sent_is_judged_once_more(misfire: Misfire, late_s: int, *, missed: bool) -> None:
    """Its leader died in between, or Redis was full, for so long; the newest one comes a minute after it."""
    assert is_missed("s", plan(misfire=misfire), NOON, NOON + late_s * 1000) is missed


def test_b42_the_only_one_is_made_up_for_however_late() -> None:
    assert not is_missed("s", plan(misfire="once", cron="0 12 1 6 *"), NOON, NOON + 86_400_000)
