"""Whose hand it was, what proves anything, and that workers that heard the same come to the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from backend_loop.devices.mqtt import changes
from backend_loop.devices.mqtt.bridge_clock import WINDOW_MS, BridgeClock
from backend_loop.devices.mqtt.tracker import ECHO_MS, FENCE_MS, Tracker

NAMES = ("power", "brightness", "position", "temperature")


def tracker(*, optimistic: bool = False) -> Tracker:
    return Tracker(NAMES, optimistic=optimistic)


def by(one: Tracker, name: str = "power") -> str | None:
    change = one.changes.get(name)
    return None if change is None else change.by


def test_what_is_seen_first_is_no_change() -> None:
    lamp = tracker()
    lamp.see({"power": "on"}, at=1000, answer=False)
    assert (lamp.values, lamp.changes) == ({"power": "on"}, {})


def test_what_an_act_wanted_is_ours_and_all_else_is_a_hand() -> None:
    lamp = tracker()
    lamp.see({"power": "off"}, at=1000, answer=False)
    lamp.announce("k", 1, {"power": "on"}, 2000)
    lamp.see({"power": "on"}, at=2100, answer=False)
    assert by(lamp) == "command"
    lamp.see({"power": "off"}, at=2200, answer=False)
    assert by(lamp) == "hand"
    lamp.see({"power": "on"}, at=2300, answer=False)
    assert by(lamp) == "hand", "the act has had its effect: this is somebody's own doing"


def test_an_act_is_not_young_for_ever() -> None:
    lamp = tracker()
    lamp.see({"power": "off", "position": 0}, at=1000, answer=False)
    lamp.announce("k", 1, {"power": "on", "position": 100}, 2000)
    lamp.see({"power": "on", "position": 50}, at=2000 + 10_000, answer=False)
    assert (by(lamp), by(lamp, "position")) == ("hand", "command"), "a blind takes its time"


@pytest.mark.parametrize(("to", "mover"), [(60, "command"), (100, "command"), (30, "hand"), (200, "hand")])
def test_a_number_that_moves_towards_what_is_wanted_is_ours(to: int, mover: str) -> None:
    blind = tracker()
    blind.see({"position": 40}, at=1000, answer=False)
    blind.announce("k", 1, {"position": 100}, 2000)
    blind.see({"position": to}, at=2100, answer=False)
    assert by(blind, "position") == mover


def test_what_moves_along_with_an_act_is_ours_too() -> None:
    lamp = tracker()
    lamp.see({"power": "off", "brightness": 10}, at=1000, answer=False)
    lamp.announce("k", 1, {"power": "on"}, 2000)
    lamp.see({"power": "on", "brightness": 80}, at=2100, answer=False)
    assert by(lamp, "brightness") == "command"
    lamp.see({"brightness": 30}, at=3000, answer=False)
    assert by(lamp, "brightness") == "hand"


def test_an_echo_proves_nothing_and_what_comes_after_it_does() -> None:
    lamp = tracker(optimistic=True)
    lamp.see({"power": "off"}, at=1000, answer=True)
    lamp.announce("k", 1, {"power": "on"}, 2000)
    echo = lamp.see({"power": "on"}, at=2001, answer=False)
    assert (echo.proved, lamp.values["power"]) == (frozenset(), "off")
    lie = lamp.see({"power": "off"}, at=2002, answer=True)
    assert lie.proved == {"power"}
    assert not lie.moved, "nobody has touched it"
    lamp.announce("k", 1, {"power": "on"}, 3000)
    lamp.see({"power": "on"}, at=3001, answer=False)
    assert lamp.see({"power": "on"}, at=3002, answer=True).moved == {"power": "command"}


def test_an_echo_that_comes_twice_is_two_echoes() -> None:
    lamp = tracker(optimistic=True)
    lamp.see({"power": "off"}, at=1000, answer=True)
    lamp.announce("k", 1, {"power": "on"}, 2000)
    for _ in range(2):
        assert not lamp.see({"power": "on"}, at=2001, answer=False).proved
    assert lamp.see({"power": "on"}, at=2002, answer=True).moved == {"power": "command"}


def test_the_first_word_after_a_question_may_be_an_echo_that_was_late() -> None:
    lamp = tracker(optimistic=True)
    lamp.see({"power": "off"}, at=1000, answer=True)
    lamp.announce("k", 1, {"power": "on"}, 2000)
    assert not lamp.see({"power": "on"}, at=2600, answer=True).proved
    assert lamp.see({"power": "on"}, at=2601, answer=True).proved


def test_what_was_so_before_is_no_echo() -> None:
    lamp = tracker(optimistic=True)
    lamp.see({"power": "on", "brightness": 10}, at=1000, answer=True)
    lamp.announce("k", 1, {"power": "on", "brightness": 50}, 2000)
    seen = lamp.see({"power": "on", "brightness": 50}, at=2001, answer=False)
    assert seen.proved == {"power"}


def test_an_echo_comes_soon_or_not_at_all() -> None:
    lamp = tracker(optimistic=True)
    lamp.see({"power": "off"}, at=1000, answer=True)
    lamp.announce("k", 1, {"power": "on"}, 2000)
    assert lamp.see({"power": "on"}, at=2001 + ECHO_MS, answer=False).proved == {"power"}


def test_a_change_that_asking_brings_to_light_is_as_old_as_it_may_be() -> None:
    lamp = tracker()
    lamp.see({"power": "off"}, at=1000, answer=False)
    lamp.see({"power": "on"}, at=9000, answer=True)
    assert (by(lamp), lamp.changes["power"].at) == ("hand", 1000)
    lamp.see({"power": "off"}, at=9500, answer=False)
    assert lamp.changes["power"].at == 9500


def test_what_the_broker_retained_is_shown_and_is_no_change() -> None:
    lamp = tracker()
    lamp.remember({"power": "on"})
    assert (lamp.values, lamp.changes) == ({"power": "on"}, {})
    lamp.see({"power": "off"}, at=5000, answer=False)
    assert lamp.changes["power"].at == 0, "somebody switched it at some time that nobody knows"


Step = tuple[str, Any]
STEPS = some.lists(
    some.one_of(
        some.tuples(some.just("see"), some.fixed_dictionaries({"power": some.sampled_from(["on", "off"])})),
        some.tuples(some.just("see"), some.fixed_dictionaries({"position": some.integers(0, 5)})),
        some.tuples(some.just("act"), some.fixed_dictionaries({"power": some.sampled_from(["on", "off"])})),
    ),
    max_size=12,
)


def play(one: Tracker, steps: list[Step], start: int = 0) -> None:
    for number, (kind, values) in enumerate(steps, start):
        if kind == "see":
            one.see(values, at=10_000 + number, answer=False)
        else:
            one.announce(f"k{number}", number, values, 10_000 + number)


@given(steps=STEPS)
def test_workers_that_heard_the_same_have_the_same_versions(steps: list[Step]) -> None:
    one, other = tracker(), tracker()
    play(one, steps)
    play(other, steps)
    assert (one.version, one.changes) == (other.version, other.changes)


@given(before=STEPS, after=STEPS)
def test_one_that_begins_later_goes_on_from_what_was_told(before: list[Step], after: list[Step]) -> None:
    early, late = tracker(), tracker()
    play(early, before)
    late.remember(early.values)
    assert not late.adopt(early.told())
    steps = [step for step in after if step[0] == "see"]  # it has not heard of acts that were announced before
    play(early, steps, 60_000)
    play(late, steps, 60_000)
    assert {name: (change.by, change.version) for name, change in late.changes.items()} == {
        name: (change.by, change.version) for name, change in early.changes.items()
    }


def test_a_version_moves_with_each_change_and_only_then() -> None:
    lamp = tracker()
    lamp.see({"power": "off"}, at=1000, answer=False)
    seen = [lamp.version]
    for power in ("on", "on", "off", "on"):
        lamp.see({"power": power}, at=2000 + len(seen), answer=False)
        seen.append(lamp.version)
    assert seen[1] == seen[2]
    assert len({*seen}) == 4, "off, on and off again are three states, and on again a fourth"


def test_what_another_worker_tells_is_taken_over_if_it_is_newer() -> None:
    one, other = tracker(), tracker()
    for each in (one, other):
        each.see({"power": "off"}, at=1000, answer=False)
    one.see({"power": "on"}, at=2000, answer=False)
    assert not other.adopt(one.told())
    assert (other.values["power"], other.changes) == ("on", one.changes)
    other.see({"power": "on"}, at=2001, answer=False)
    assert other.changes == one.changes, "the message itself, when it comes, is no news"
    other.see({"power": "off"}, at=3000, answer=False)
    before = dict(other.changes)
    assert other.adopt(one.told()), "what is known here is newer, and is to stand there"
    assert other.changes == before


def test_of_one_change_the_earliest_time_counts_wherever_it_was_heard() -> None:
    asking, other = tracker(), tracker()
    for each in (asking, other):
        each.see({"power": "off"}, at=1000, answer=False)
    asking.see({"power": "on"}, at=9000, answer=True)
    other.see({"power": "on"}, at=9000, answer=False)
    assert other.changes["power"].at == 9000
    assert not other.adopt(asking.told())
    assert other.changes == asking.changes
    late = tracker()
    for power in ("off", "on"):
        late.see({"power": power}, at=9000, answer=False)
    assert asking.adopt(late.told()), "the earlier time is to stand there"
    assert asking.changes["power"].at == 1000


def test_a_change_while_nobody_listened_is_a_hand_since_then() -> None:
    early = tracker()
    early.see({"power": "off"}, at=1000, answer=False)
    early.see({"power": "on"}, at=2000, answer=False)
    late = tracker()
    late.adopt(early.told())
    late.remember({"power": "off"})
    late.see({"power": "off"}, at=9000, answer=True)
    change = late.changes["power"]
    assert (change.by, change.at) == ("hand", 2000)
    assert change.version != early.changes["power"].version


def test_changes_are_read_as_they_were_written() -> None:
    lamp = tracker()
    lamp.see({"power": "off", "brightness": 10}, at=1000, answer=False)
    lamp.see({"power": "on", "brightness": 20}, at=2000, answer=False)
    told = {name: changes.Moved(*moved) for name, moved in lamp.told().items()}
    assert changes.read(changes.written(told), 10_000_000_000_000) == told


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[]", "x" * 9),
        '{"changes": {"power": {"by": "cat", "version": "1", "at": "2026-11-30T05:31:00Z", "value": 1}}}',
        '{"changes": {"power": {"by": "hand", "version": "1", "at": "now", "value": 1}}}',
        '{"changes": {"power": {"by": "hand", "version": "1", "at": "2026-11-30T05:31:00Z", "value": {}}}}',
    ],
)
def test_what_no_worker_has_written_is_not_read(text: str) -> None:
    assert changes.read(text, 1) is None


def test_the_newest_fence_is_remembered_for_a_while() -> None:
    lamp = tracker()
    lamp.announce("a", 7, {"power": "on"}, 1000)
    lamp.announce("b", 5, {"power": "on"}, 2000)
    assert lamp.newest_fence(2000) == 7
    assert lamp.newest_fence(1000 + FENCE_MS) == 5


def test_a_report_that_comes_at_once_is_new_and_who_lags_is_late() -> None:
    clock = BridgeClock()
    assert clock.ours(5_000, 1_000_010) == 1_000_010
    assert clock.ours(6_000, 1_001_005) == 1_001_005, "the fastest one is taken to have come at once"
    assert clock.ours(7_000, 1_005_005) == 1_002_005, "this one was three seconds on its way"
    assert clock.ours(6_000, 1_060_000) == 1_001_005, "the same old time, told again: it does not get newer"


def test_a_bridge_whose_clock_is_set_back_is_believed_again_in_a_while() -> None:
    clock = BridgeClock()
    clock.ours(1_000_000, 1_000_000)
    late = clock.ours(1_000_000, 1_060_000)
    assert late == 1_000_000
    for minute in range(10):
        arrived = 1_120_000 + minute * 60_000
        at = clock.ours(arrived - 60_000, arrived)
    assert arrived - at == 0
    assert WINDOW_MS < 600_000
