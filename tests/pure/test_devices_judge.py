"""What readings prove: every combination, against the rules written out once more in words."""

import itertools
from typing import Any

import pytest

from backend_loop.devices.judge import Decision, Verdict, decide, judge, overridden
from backend_loop.devices.protocol import Change, Command, Reading
from shared.actions import ACTIONS, wanted

ON = Command(entity="light.x", action="turn_on")
WARM = Command(entity="climate.x", action="set_temperature", value=26)
READ_AT, ACTED_AT = 100, 200


def reading(power: str, version: int = 5, /, *, at: int = READ_AT, **changes: tuple[str, int]) -> Reading:
    return Reading(
        value={"power": power, "brightness": 80},
        version=str(version),
        observed_at=at,
        source="test",
        changes={name: Change(by=by, version=str(moved), at=moved) for name, (by, moved) in changes.items()},
    )


BEFORE = reading("off", 5, power=("hand", 3))


def test_what_is_already_so_is_not_done_again() -> None:
    assert decide(reading("on"), ON, looked_at=READ_AT) is Decision.ALREADY_DONE
    assert decide(reading("off"), ON, looked_at=READ_AT) is Decision.ACT


def test_what_a_bridge_remembers_from_before_we_looked_settles_nothing() -> None:
    """The hub believes that the lamp is on already, so that "on" sends nothing."""
    assert decide(reading("on"), ON, looked_at=READ_AT + 1) is Decision.ACT


def test_an_act_on_what_was_so_all_along_is_confirmed_by_a_fresh_reading() -> None:
    assert judge(reading("on", 5), reading("on", 5, at=ACTED_AT), ON, acted_at=ACTED_AT) is Verdict.CONFIRMED


def test_a_device_without_the_value_is_told() -> None:
    assert decide(Reading(value={}, version="1", observed_at=1, source="test"), ON, looked_at=1) is Decision.ACT


def test_a_setting_is_done_only_where_the_device_is_on() -> None:
    for power, expected in (("off", Decision.ACT), ("on", Decision.ALREADY_DONE)):
        climate = Reading(value={"power": power, "temperature": 26.0}, version="1", observed_at=1, source="test")
        assert decide(climate, WARM, looked_at=1) is expected


@pytest.mark.parametrize(
    ("at", "power", "version", "by", "moved"),
    list(itertools.product((ACTED_AT - 1, ACTED_AT, ACTED_AT + 1), ("on", "off"), (5, 6), ("hand", "command"), (3, 6))),
)
def test_every_reading_after_an_act(at: int, power: str, version: int, by: str, moved: int) -> None:
    verdict = judge(BEFORE, reading(power, version, at=at, power=(by, moved)), ON, acted_at=ACTED_AT)
    fresh = at >= ACTED_AT
    if fresh and power == "on" and version == 6:
        assert verdict is Verdict.CONFIRMED
    elif fresh and power == "off" and by == "hand" and moved == 6:
        assert verdict is Verdict.CONTRADICTED
    else:
        assert verdict is Verdict.UNCONFIRMED


def test_a_reading_older_than_the_act_never_verifies() -> None:
    assert judge(BEFORE, reading("on", 6, at=ACTED_AT - 1), ON, acted_at=ACTED_AT) is Verdict.UNCONFIRMED


def test_two_states_under_one_version_prove_nothing() -> None:
    assert judge(BEFORE, reading("on", 5, at=ACTED_AT), ON, acted_at=ACTED_AT) is Verdict.UNCONFIRMED


def test_another_value_changed_by_hand_contradicts_nothing() -> None:
    after = reading("off", 6, at=ACTED_AT, power=("hand", 3), brightness=("hand", 6))
    assert judge(BEFORE, after, ON, acted_at=ACTED_AT) is Verdict.UNCONFIRMED


def test_a_hand_that_leaves_what_was_wanted_confirms() -> None:
    after = reading("on", 9, at=ACTED_AT, power=("hand", 9))
    assert judge(BEFORE, after, ON, acted_at=ACTED_AT) is Verdict.CONFIRMED


def test_a_first_change_by_hand_contradicts() -> None:
    after = reading("off", 7, at=ACTED_AT, power=("hand", 7))
    assert judge(reading("off", 5), after, ON, acted_at=ACTED_AT) is Verdict.CONTRADICTED


def test_a_device_that_does_not_say_who_changed_it_is_never_contradicted() -> None:
    assert judge(reading("off", 5), reading("off", 7, at=ACTED_AT), ON, acted_at=ACTED_AT) is Verdict.UNCONFIRMED


def test_one_of_several_wanted_values_is_enough_to_contradict() -> None:
    before = Reading(value={"power": "off", "temperature": 20}, version="1", observed_at=1, source="test")
    after = Reading(
        value={"power": "off", "temperature": 26},
        version="3",
        observed_at=ACTED_AT,
        source="test",
        changes={"power": Change(by="hand", version="3", at=3), "temperature": Change(by="command", version="2", at=2)},
    )
    assert judge(before, after, WARM, acted_at=ACTED_AT) is Verdict.CONTRADICTED


@pytest.mark.parametrize(
    ("power", "by", "moved", "asked_at"),
    list(itertools.product(("on", "off"), ("hand", "command"), (3, 6), (2, 3, 6, 9))),
)
def test_every_reading_before_an_act(power: str, by: str, moved: int, asked_at: int) -> None:
    """A change's time equals its version here: 3 is the change the decision knew, 6 came after it."""
    now = reading(power, max(5, moved), power=(by, moved))
    expected = power == "off" and by == "hand" and (moved == 6 or moved > asked_at)
    assert overridden(BEFORE, now, ON, asked_at=asked_at) is expected


def test_a_hand_on_another_value_overrides_nothing() -> None:
    assert not overridden(BEFORE, reading("off", 6, power=("hand", 3), brightness=("hand", 6)), ON, asked_at=4)


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_belongs_to_an_aspect_and_wants_something(name: str) -> None:
    action = ACTIONS[name]
    value: Any = None
    if action.choices:
        value = action.choices[0]
    elif action.between:
        value = action.between[1]
    assert action.aspect in wanted(name, value)


@pytest.mark.parametrize(("name", "value"), [("fly", None), ("turn_on", 1), ("set_mode", None), ("set_position", -1)])
def test_a_senseless_command_is_a_value_error(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        wanted(name, value)
