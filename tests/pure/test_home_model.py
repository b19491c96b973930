"""The physics of the simulated home."""

from typing import Any

import pytest

from dualloop.home import model
from dualloop.home.demonstration import demonstration
from dualloop.home.model import FENCE_MEMORY_MS, Device, Faults, Fenced, Order, Refused
from shared.actions import ACTIONS

HOME = demonstration()
LAMP = HOME["light.living_room"]


def order(action: str, value: Any = None, *, key: str = "k", fence: int = 1) -> Order:
    return Order(action=action, value=value, key=key, fence=fence)


def test_an_act_changes_the_value_the_version_and_who_changed_it() -> None:
    lamp, effect = model.apply(LAMP, order("turn_on"), now=5)
    assert lamp.value == {"power": "on", "brightness": 80}
    assert lamp.version == LAMP.version + 1
    assert lamp.changes["power"] == model.Change(by="command", version=lamp.version, at=5)
    assert effect is not None
    assert (effect.changed, effect.by, effect.version) == ({"power": "on"}, "command", lamp.version)
    assert LAMP.value["power"] == "off", "a device is a value: it is never changed in place"


def test_nothing_plays_without_power() -> None:
    speaker, _ = model.apply(HOME["media_player.living_room"], order("play"), now=5)
    assert speaker.value == {"power": "on", "volume": 30, "playback": "playing"}
    speaker, effect = model.hand(speaker, {"power": "off"}, now=6)
    assert speaker.value == {"power": "off", "volume": 30, "playback": "paused"}
    assert effect.changed == {"power": "off", "playback": "paused"}


def test_an_act_that_changes_nothing_keeps_the_version_and_is_told_in_the_journal() -> None:
    lamp, effect = model.apply(LAMP, order("turn_off"), now=5)
    assert (lamp.version, lamp.changes) == (LAMP.version, LAMP.changes)
    assert effect is not None
    assert effect.changed == {}


def test_a_hand_works_whatever_the_faults() -> None:
    broken = model.break_down(LAMP, Faults(offline=True, refuse=True, lie=True), now=1)
    lamp, effect = model.hand(broken, {"power": "on"}, now=2)
    assert (lamp.value["power"], lamp.changes["power"].by, effect.order) == ("on", "hand", None)


def test_each_value_knows_its_own_last_change() -> None:
    lamp, _ = model.apply(LAMP, order("turn_on"), now=5)
    lamp, _ = model.hand(lamp, {"brightness": 10}, now=6)
    assert {name: change.by for name, change in lamp.changes.items()} == {"power": "command", "brightness": "hand"}


def test_a_device_that_lies_does_nothing() -> None:
    liar = model.break_down(LAMP, Faults(lie=True), now=1)
    lamp, effect = model.apply(liar, order("turn_on"), now=2)
    assert (lamp.value, lamp.version, effect) == (LAMP.value, LAMP.version, None)


def test_a_device_that_refuses_does_nothing() -> None:
    with pytest.raises(Refused):
        model.apply(model.break_down(LAMP, Faults(refuse=True), now=1), order("turn_on"), now=2)


def test_a_stale_reading_stays_as_it_was_when_the_fault_began_and_ends_with_it() -> None:
    lamp = model.break_down(LAMP, Faults(observe_stale=True), now=10)
    lamp, _ = model.hand(lamp, {"power": "on"}, now=20)
    lamp = model.break_down(lamp, Faults(observe_stale=True, latency_ms=1), now=25)
    stale = model.observe(lamp, now=30)
    assert (stale.value["power"], stale.version, stale.observed_at) == ("off", LAMP.version, 10)
    fresh = model.observe(model.break_down(lamp, Faults(), now=40), now=50)
    assert (fresh.value["power"], fresh.version, fresh.observed_at) == ("on", LAMP.version + 1, 50)


def test_an_older_fence_is_refused_and_an_equal_or_later_one_is_not() -> None:
    lamp, _ = model.apply(LAMP, order("turn_on", fence=7), now=1)
    with pytest.raises(Fenced):
        model.apply(lamp, order("turn_off", fence=6), now=2)
    for fence in (7, 8):
        assert model.apply(lamp, order("turn_off", fence=fence), now=2)[0].value["power"] == "off"


def test_a_fence_is_forgotten_in_the_end_so_that_a_new_redis_is_obeyed() -> None:
    lamp, _ = model.apply(LAMP, order("turn_on", fence=7), now=1)
    with pytest.raises(Fenced):
        model.apply(lamp, order("turn_off", fence=1), now=FENCE_MEMORY_MS)
    assert model.apply(lamp, order("turn_off", fence=1), now=FENCE_MEMORY_MS + 1)[0].fence == 1


@pytest.mark.parametrize(
    ("entity", "action", "value"),
    [
        ("light.living_room", "lock", None),
        ("light.living_room", "fly", None),
        ("light.living_room", "turn_on", 1),
        ("light.living_room", "set_brightness", None),
        ("light.living_room", "set_brightness", 101),
        ("light.living_room", "set_brightness", True),
        ("light.living_room", "set_brightness", "30"),
        ("light.living_room", "set_brightness", float("nan")),
        ("climate.bedroom", "set_temperature", 31),
        ("climate.bedroom", "set_mode", "arctic"),
        ("climate.bedroom", "set_mode", ["cool"]),
        ("sensor.bedroom", "set_temperature", 20),
        ("cover.living_room", "turn_on", None),
    ],
)
def test_what_a_device_cannot_do_is_refused_with_a_sentence(entity: str, action: str, value: Any) -> None:
    with pytest.raises(Refused, match=r"\w+ \w+"):
        model.apply(HOME[entity], order(action, value), now=1)


def test_a_device_can_be_told_what_to_show_instead_of_an_action() -> None:
    values = {"power": "on", "brightness": 30}
    lamp, effect = model.apply(LAMP, order(model.SET, values), now=5)
    assert lamp.value == values
    assert effect is not None
    assert (effect.changed, effect.by) == (values, "command")


@pytest.mark.parametrize("value", [None, {}, [], "on", {"power": "dim"}, {"smell": "rose"}])
def test_what_it_cannot_show_it_cannot_be_told(value: Any) -> None:
    with pytest.raises(Refused):
        model.apply(LAMP, order(model.SET, value), now=1)


def test_what_another_app_sets_is_a_hand_that_is_subject_to_faults() -> None:
    lamp, effect = model.meddle(LAMP, {"power": "on"}, now=2)
    assert effect is not None
    assert (lamp.value["power"], effect.by, effect.order) == ("on", "hand", None)
    with pytest.raises(Refused):
        model.meddle(model.break_down(LAMP, Faults(refuse=True), now=1), {"power": "on"}, now=2)
    liar = model.break_down(LAMP, Faults(lie=True), now=1)
    assert model.meddle(liar, {"power": "on"}, now=2) == (liar, None)


@pytest.mark.parametrize(
    "values", [{"smell": "rose"}, {"power": "dim"}, {"power": ["on"]}, {"brightness": False}, {"brightness": 0}]
)
def test_a_hand_cannot_do_what_the_device_cannot_be(values: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        model.hand(LAMP, values, now=1)


@pytest.mark.parametrize("device", HOME.values(), ids=lambda device: device.entity)
def test_every_action_of_every_device_does_what_it_says(device: Device) -> None:
    for name in device.actions:
        action = ACTIONS[name]
        value = None
        if action.field is not None:
            limits = device.limits[action.field]
            value = limits[-1]
        after, _ = model.apply(device, order(name, value), now=1)
        besides = {"power": "on"} if name == "play" else {}
        assert after.value == device.value | besides | dict(action.sets) | (
            {action.field: value} if action.field else {}
        )
    assert bool(device.actions) != device.entity.startswith("sensor."), "sensors alone do nothing"


@pytest.mark.parametrize("device", HOME.values(), ids=lambda device: device.entity)
def test_a_device_is_read_back_from_its_json_as_it_was(device: Device) -> None:
    broken = model.break_down(device, Faults(observe_stale=True, latency_ms=3), now=4)
    assert Device.model_validate_json(broken.model_dump_json()) == broken
