"""Times on the wall to instants: both changes of the clocks in three zones, each rule, held to a walk by minutes."""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Final
from zoneinfo import ZoneInfo

import pytest

from shared.instants import DaylightSaving, Times, TimesError, default_rule

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"

CHANGES: Final = {
    # zone: (date of the gap, a time in it, where that goes to), (date of the fold, a time that comes twice)
    BERLIN: (("2026-03-29", "02:30", "03:30+02:00"), ("2026-10-25", "02:30", "+02:00", "+01:00")),
    NEW_YORK: (("2026-03-08", "02:30", "03:30-04:00"), ("2026-11-01", "01:30", "-04:00", "-05:00")),
    LORD_HOWE: (("2026-10-04", "02:15", "02:45+11:00"), ("2026-04-05", "01:45", "+11:00", "+10:30")),
}
RULES: Final[tuple[DaylightSaving, ...]] = ("skip", "once", "both")


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def daily(time: str) -> str:
    hour, minute = time.split(":")
    return f"{int(minute)} {int(hour)} * * *"


def on(times: Times, zone: str, date: str) -> list[str]:
    """What runs on a day, as the zone's clocks show it."""
    day = datetime.fromisoformat(date)
    first, last = (
        round(one.replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000) for one in (day, day + timedelta(days=1))
    )
    found = list[str]()
    for instant in times.all_after(first - 1):
        if instant >= last:
            return found
        found.append(times.local(instant).removeprefix(f"{date}T").replace(":00+", "+").replace(":00-", "-"))
    raise AssertionError


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("zone", CHANGES)
def test_b40_a_time_that_does_not_exist(zone: str, rule: DaylightSaving) -> None:
    date, time, later = CHANGES[zone][0]
    assert on(Times(daily(time), zone, rule), zone, date) == ([] if rule == "skip" else [later])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("zone", CHANGES)
def test_b40_a_time_that_exists_twice(zone: str, rule: DaylightSaving) -> None:
    date, time, *offsets = CHANGES[zone][1]
    wanted = [time + offset for offset in (offsets if rule == "both" else offsets[:1])]
    assert on(Times(daily(time), zone, rule), zone, date) == wanted


@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize("rule", RULES)
def test_b40_around_a_change_a_day_has_its_run_and_nothing_stops(zone: str, rule: DaylightSaving) -> None:
    """A time that no change touches comes once on each of 800 days."""
    times = Times("15 4 * * *", zone, rule)
    found = list(islice(times.all_after(ms("2026-01-01T00:00Z")), 800))
    dates = [datetime.fromisoformat(times.local(one)).date() for one in found]
    assert dates == [dates[0] + timedelta(days=n) for n in range(800)]


def walk(  # noqa: PLR0917  what the other side is told
    minutes: set[int], hours: set[int], zone: str, rule: DaylightSaving, first: int, last: int
) -> Iterator[int]:
    """The same, without any calendar: look at the clock every minute, and at what an unmoved clock would show."""
    tz = ZoneInfo(zone)

    def shows(second: int, offset: timedelta) -> bool:
        wall = datetime.fromtimestamp(second, UTC) + offset
        return wall.minute in minutes and wall.hour in hours

    def offset(second: int) -> timedelta:
        return datetime.fromtimestamp(second, tz).utcoffset() or timedelta()

    recent: deque[timedelta] = deque((offset(first // 1000 - back) for back in range(60, 7_260, 60)), 120)
    for second in range(first // 1000, last // 1000 + 1, 60):
        now, before = offset(second), list(recent)
        recent.appendleft(now)
        moved = next((one for one in before if one != now), now)
        since = next((n for n, one in enumerate(before) if one != now), 0) * 60
        again = moved > now and since < (moved - now).total_seconds()
        put_off = moved < now and since < (now - moved).total_seconds() and rule != "skip"
        if (shows(second, now) and (not again or rule == "both")) or (put_off and shows(second, moved)):
            yield second * 1000


@pytest.mark.parametrize("cron", ["*/7 * * * *", "0,30 1-3 * * *", "45 */2 * * *"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("zone", CHANGES)
@pytest.mark.parametrize("change", [0, 1], ids=["gap", "fold"])
def test_b40_every_instant_around_a_change_in_order_and_once(
    zone: str, change: int, rule: DaylightSaving, cron: str
) -> None:
    first = ms(CHANGES[zone][change][0] + "T00:00Z") - 10 * 3_600_000
    last = first + 20 * 3_600_000
    minute, hour, *_ = cron.split()
    minutes = {"*/7": set(range(0, 60, 7)), "0,30": {0, 30}, "45": {45}}[minute]
    hours = {"*": set(range(24)), "1-3": {1, 2, 3}, "*/2": set(range(0, 24, 2))}[hour]
    times = Times(cron, zone, rule)
    found = []
    for instant in times.all_after(first - 1):
        if instant > last:
            break
        found.append(instant)
    assert found == list(walk(minutes, hours, zone, rule, first, last))
    assert times.newest(first, last, 100) == found[-100:]
    middle = found[len(found) // 2]
    assert times.newest(middle, last, 5_000) == found[len(found) // 2 :]


def test_an_hourly_schedule_runs_every_hour_of_real_time_unless_it_says_otherwise() -> None:
    assert [default_rule(cron) for cron in ("0 * * * *", "0 */2 * * *", "0 2 * * *")] == ["both", "both", "once"]
    times = Times("0 * * * *", BERLIN)
    for change in CHANGES[BERLIN]:
        found = list(islice(times.all_after(ms(f"{change[0]}T00:00Z") - 7_200_000), 8))
        assert {after - before for before, after in pairwise(found)} == {3_600_000}


def test_the_first_instant_is_after_the_given_one() -> None:
    times = Times("0 12 * * *", "UTC")
    noon = ms("2026-06-01T12:00Z")
    assert times.after(noon - 1) == noon
    assert times.after(noon) == noon + 86_400_000
    assert times.after(noon + 500) == noon + 86_400_000


def test_the_newest_of_a_long_time_are_found_at_once() -> None:
    times, last = Times("* * * * *", BERLIN), ms("2026-06-01T12:00:30Z")
    found = times.newest(0, last, 100)
    assert found == [last - 30_000 - n * 60_000 for n in reversed(range(100))]
    assert Times("0 0 29 2 *", "UTC").newest(ms("2020-01-01T00:00Z"), last, 100) == [
        ms("2020-02-29T00:00Z"),
        ms("2024-02-29T00:00Z"),
    ]
    assert times.newest(last, last, 100) == []


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("", "has not five fields"),
        ("@daily", "has not five fields"),
        ("0 0 0 * * *", "has not five fields"),
        ("60 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * 0 * *", "bad day-of-month"),
        ("* * * 13 *", "bad month"),
        ("* * * * 8", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("5-1 * * * *", "bad minute"),
        ("a * * * *", "bad minute"),
        ("-1 * * * *", "bad minute"),
        ("١ * * * *", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 31 4,6,9,11 *", "bad day-of-month"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_reason(cron: str, why: str) -> None:
    with pytest.raises(TimesError, match=why) as caught:
        Times(cron, "UTC")
    assert caught.value.field == "cron"


@pytest.mark.parametrize(
    "zone", ["", "Mars", "Europe", "CEST", "../etc/passwd", "/etc/localtime", "localtime", "right/UTC"]
)
def test_what_is_no_zone_is_refused(zone: str) -> None:
    with pytest.raises(TimesError, match="no IANA time zone") as caught:
        Times("0 0 * * *", zone)
    assert caught.value.field == "zone"


def test_names_of_days_and_the_last_day_of_a_month_are_known() -> None:
    weekdays = Times("30 9 * * MON-FRI", NEW_YORK)
    found = [weekdays.local(one) for one in islice(weekdays.all_after(ms("2026-06-05T00:00Z")), 3)]
    assert found == ["2026-06-05T09:30:00-04:00", "2026-06-08T09:30:00-04:00", "2026-06-09T09:30:00-04:00"]
    last = Times("0 0 L * *", "UTC")
    assert [last.local(one)[:10] for one in islice(last.all_after(ms("2026-01-15T00:00Z")), 3)] == [
        *("2026-01-31", "2026-02-28", "2026-03-31")
    ]
