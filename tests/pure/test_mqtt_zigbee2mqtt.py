"""Zigbee2MQTT as its bridges speak: payloads as its documentation has them."""

import json
from typing import Any

import pytest

from backend_loop.devices.mqtt.dialects.described import Heard, Unfit
from backend_loop.devices.mqtt.dialects.zigbee2mqtt import ZigbeeDevice, announced

BULB: dict[str, Any] = {
    "type": "light",
    "features": [
        {
            "type": "binary",
            "name": "state",
            "property": "state",
            "access": 7,
            "value_on": "ON",
            "value_off": "OFF",
            "value_toggle": "TOGGLE",
        },
        {
            "type": "numeric",
            "name": "brightness",
            "property": "brightness",
            "access": 7,
            "value_min": 0,
            "value_max": 254,
        },
        {
            "type": "numeric",
            "name": "color_temp",
            "property": "color_temp",
            "access": 7,
            "value_min": 150,
            "value_max": 500,
        },
    ],
}
QUALITY = {
    "type": "numeric",
    "name": "linkquality",
    "property": "linkquality",
    "access": 1,
    "value_min": 0,
    "value_max": 255,
}


def devices(*exposes: dict[str, Any], name: str = "kitchen/lamp", **more: Any) -> list[ZigbeeDevice]:
    one = {
        "ieee_address": "0x0017880104e45518",
        "type": "Router",
        "friendly_name": name,
        "definition": {"model": "9290012573A", "vendor": "Philips", "exposes": [*exposes, QUALITY]},
    }
    coordinator = {"ieee_address": "0x00", "type": "Coordinator", "friendly_name": "Coordinator", "definition": None}
    found = announced("zigbee2mqtt", json.dumps([coordinator, one | more]))
    assert found is not None
    return found


def device(*exposes: dict[str, Any]) -> ZigbeeDevice:
    (one,) = devices(*exposes)
    return one


def numeric(name: str, access: int = 7, **more: Any) -> dict[str, Any]:
    return {"type": "numeric", "name": name, "property": name, "access": access, **more}


def heard(one: ZigbeeDevice, told: Any, ending: str = "") -> Heard | None:
    return one.hear(f"zigbee2mqtt/kitchen/lamp{ending}", told if isinstance(told, str) else json.dumps(told))


def values(one: ZigbeeDevice, told: Any) -> dict[str, Any]:
    found = heard(one, told)
    return {} if found is None else dict(found.values)


def test_a_lamp_is_described_by_what_it_exposes() -> None:
    lamp = device(BULB)
    assert (lamp.wire, lamp.domain, lamp.entity) == ("zigbee2mqtt/kitchen/lamp", "light", "light.kitchen_lamp")
    assert set(lamp.sets) == lamp.shows == {"power", "brightness"}
    assert lamp.topics[:2] == ("zigbee2mqtt/kitchen/lamp", "zigbee2mqtt/kitchen/lamp/availability")


def test_a_state_is_read_with_its_time() -> None:
    found = heard(device(BULB), {"state": "ON", "brightness": 215, "last_seen": "2026-11-30T05:31:00.250Z"})
    assert found == Heard({"power": "on", "brightness": 85}, told_at=1_796_016_660_250)


@pytest.mark.parametrize(
    ("told", "at", "within"),
    [
        (1_796_016_660_250, 1_796_016_660_250, 5),
        ("2026-11-30T13:31:00+08:00", 1_796_016_660_000, 1005),
        ("yesterday", None, 5),
        (True, None, 5),
        ("2026-11-30T13:31:00", None, 5),
    ],
)
def test_its_time_is_told_in_several_ways_or_not_at_all(told: Any, at: int | None, within: int) -> None:
    found = heard(device(BULB), {"state": "ON", "last_seen": told})
    assert found is not None
    assert (found.told_at, found.within_ms) == (at, within)


@pytest.mark.parametrize("percent", range(1, 101))
def test_each_brightness_comes_back_as_it_was_set(percent: int) -> None:
    lamp = device(BULB)
    (message,) = lamp.orders({"power": "on", "brightness": percent}, {})
    assert message.topic == "zigbee2mqtt/kitchen/lamp/set"
    assert values(lamp, message.payload) == {"power": "on", "brightness": percent}


def test_a_lamp_is_asked_for_all_that_it_can_be_asked_for() -> None:
    (question,) = device(BULB).questions()
    assert question.topic == "zigbee2mqtt/kitchen/lamp/get"
    assert json.loads(question.payload) == {"state": "", "brightness": ""}


def test_who_sleeps_cannot_be_asked() -> None:
    contact = {
        "type": "binary",
        "name": "contact",
        "property": "contact",
        "access": 1,
        "value_on": False,
        "value_off": True,
    }
    door = device(contact, numeric("battery", 1, value_min=0, value_max=100))
    assert (door.domain, door.questions(), door.askable, dict(door.sets)) == ("sensor", (), frozenset(), {})
    assert values(door, {"contact": True, "battery": 90}) == {"contact": "closed", "battery": 90}
    assert values(door, {"contact": False}) == {"contact": "open"}


def test_a_lock_a_blind_and_an_air_conditioner() -> None:
    state = {"type": "binary", "name": "state", "property": "state", "access": 7}
    lock = device({"type": "lock", "features": [state | {"value_on": "LOCK", "value_off": "UNLOCK"}]})
    assert values(lock, {"state": "UNLOCK", "lock_state": "unlocked"}) == {"lock": "unlocked"}
    assert json.loads(lock.orders({"lock": "locked"}, {})[0].payload) == {"state": "LOCK"}
    position = numeric("position", value_min=0, value_max=100)
    blind = device({"type": "cover", "features": [state | {"type": "enum", "values": ["OPEN", "CLOSE"]}, position]})
    assert values(blind, {"state": "OPEN", "position": 40}) == {"position": 40}
    assert json.loads(blind.orders({"position": 100}, {})[0].payload) == {"position": 100}
    mode = {"name": "system_mode", "property": "system_mode", "access": 7, "values": ["off", "cool", "fan_only"]}
    setpoint = numeric("occupied_heating_setpoint", value_min=16, value_max=30)
    climate = device({"type": "climate", "features": [mode, setpoint, numeric("local_temperature", 5)]})
    assert set(climate.sets) == {"power", "mode", "temperature"}
    assert values(climate, {"system_mode": "fan_only", "occupied_heating_setpoint": 24.0, "local_temperature": 27}) == {
        "power": "on",
        "mode": "fan",
        "temperature": 24,
        "current_temperature": 27,
    }
    assert values(climate, {"system_mode": "off"}) == {"power": "off"}


def told(one: ZigbeeDevice, wanted: dict[str, Any], known: dict[str, Any]) -> Any:
    (message,) = one.orders(wanted, known)
    return json.loads(message.payload)


def test_an_air_conditioner_starts_in_the_mode_that_it_had() -> None:
    mode = {"name": "system_mode", "property": "system_mode", "access": 7, "values": ["off", "cool", "fan_only"]}
    climate = device({"type": "climate", "features": [mode, numeric("occupied_heating_setpoint")]})
    on = {"power": "on", "temperature": 26}
    assert told(climate, {"power": "off"}, {"power": "on"}) == {"system_mode": "off"}
    assert told(climate, on, {"power": "off", "mode": "fan"}) == {
        "system_mode": "fan_only",
        "occupied_heating_setpoint": 26,
    }
    assert told(climate, on, {"power": "on", "mode": "fan"}) == {"occupied_heating_setpoint": 26}
    assert told(climate, {"power": "on"}, {}) == {"system_mode": "cool"}


def test_two_outlets_of_one_device_are_two_devices() -> None:
    state = {"type": "binary", "name": "state", "access": 7, "value_on": "ON", "value_off": "OFF"}
    left, right = devices(
        *(
            {"type": "switch", "endpoint": side, "features": [state | {"property": f"state_{side}", "endpoint": side}]}
            for side in ("left", "right")
        )
    )
    assert (left.wire, right.wire) == ("zigbee2mqtt/kitchen/lamp", "zigbee2mqtt/kitchen/lamp/right")
    assert values(right, {"state_left": "ON", "state_right": "OFF"}) == {"power": "off"}
    assert told(right, {"power": "on"}, {}) == {"state_right": "ON"}


@pytest.mark.parametrize(
    ("why", "perhaps"),
    [
        ("Error: No converter available for 'state' (undefined)", False),
        ("Error: ZCL command 0x0017880104e45518/11 genOnOff.on failed (Timeout after 10000ms)", True),
    ],
)
def test_errors_of_the_bridge_are_of_the_device_that_they_name(why: str, perhaps: bool) -> None:
    lamp = device(BULB)
    error = {"level": "error", "message": f"z2m: Publish 'set' 'state' to 'kitchen/lamp' failed: '{why}'"}
    assert lamp.hear("zigbee2mqtt/bridge/logging", json.dumps(error)) == Heard(error=why, perhaps=perhaps)
    other = error | {"message": error["message"].replace("kitchen/lamp", "kitchen/lamp2")}
    assert lamp.hear("zigbee2mqtt/bridge/logging", json.dumps(other)) is None
    assert lamp.hear("zigbee2mqtt/bridge/logging", json.dumps(error | {"level": "info"})) is None


@pytest.mark.parametrize(
    ("told", "there"), [('{"state":"online"}', True), ('{"state":"offline"}', False), ("offline", False)]
)
def test_who_is_away_is_said_in_two_ways(told: str, there: bool) -> None:
    found = heard(device(BULB), told, "/availability")
    assert found is not None
    assert found.available is there


@pytest.mark.parametrize(
    "told", ["", "ON", "[]", "{", '{"state": "FLASH"}', '{"state": 1, "brightness": null}', "[" * 9999]
)
def test_nonsense_says_nothing(told: str) -> None:
    assert heard(device(BULB), told) is None


@pytest.mark.parametrize(
    "more",
    [
        {"friendly_name": "a/#"},
        {"friendly_name": ""},
        {"friendly_name": None},
        {"definition": None},
        {"definition": {"exposes": "all"}},
        {"definition": {"exposes": [{"type": "light", "features": [{"name": "state"}, 1]}]}},
        {"disabled": True},
        {"type": "Coordinator"},
    ],
    ids=str,
)
def test_what_is_no_device_is_passed_over(more: dict[str, Any]) -> None:
    assert all(not one.sets and not one.shows for one in devices(BULB, **more))


@pytest.mark.parametrize("text", ["", "{}", "nothing", "[" * 100_000])
def test_what_is_no_list_of_devices_changes_nothing(text: str) -> None:
    assert announced("zigbee2mqtt", text) is None


def test_more_than_it_can_is_refused_with_a_sentence() -> None:
    lamp = device(BULB)
    lamp.fit({"power": "on", "brightness": 1})
    cases: list[tuple[dict[str, Any], str]] = [
        ({"brightness": 0}, "takes a brightness from 1 to 100, not 0"),
        ({"position": 5}, "has no position that can be set"),
        ({"power": "dim"}, "has no power dim: it knows on, off"),
        ({"brightness": True}, "takes a brightness from 1 to 100, not True"),
    ]
    for wanted, sentence in cases:
        with pytest.raises(Unfit, match=sentence):
            lamp.fit(wanted)
