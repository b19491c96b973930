"""Devices announced as Home Assistant's documentation has it."""

import json
from typing import Any

import pytest

from backend_loop.devices.mqtt.dialects.described import Heard, Message
from backend_loop.devices.mqtt.dialects.discovery import DiscoveredDevice, announced

CLIMATE: dict[str, Any] = {
    "name": None,
    "unique_id": "ac_living",
    "device": {"identifiers": ["ac"], "name": "Living room AC"},
    "modes": ["off", "cool", "heat", "auto", "fan_only"],
    "mode_state_topic": "ac/mode",
    "mode_command_topic": "ac/mode/set",
    "temperature_state_topic": "ac/temp",
    "temperature_command_topic": "ac/temp/set",
    "current_temperature_topic": "ac/now",
    "min_temp": 16,
    "max_temp": 30,
    "availability": [{"topic": "ac/lwt"}],
}


def device(component: str, **config: Any) -> DiscoveredDevice:
    one = announced("homeassistant", f"homeassistant/{component}/x/config", json.dumps(config))
    assert one is not None
    return one


def values(one: DiscoveredDevice, topic: str, text: str) -> dict[str, Any] | None:
    found = one.hear(topic, text)
    return None if found is None else dict(found.values)


def test_a_lamp_in_json_with_abbreviations() -> None:
    lamp = device(
        "light",
        **{"~": "home/lamp", "uniq_id": "lamp1", "name": "Lamp", "schema": "json", "brightness": True},
        stat_t="~/state",
        cmd_t="~/set",
        avty_t="~/lwt",
    )
    assert (lamp.wire, lamp.entity, set(lamp.sets)) == ("homeassistant/lamp1", "light.lamp", {"power", "brightness"})
    assert values(lamp, "home/lamp/state", '{"state":"ON","brightness":128}') == {"power": "on", "brightness": 50}
    (message,) = lamp.orders({"power": "on", "brightness": 50}, {})
    assert (message.topic, json.loads(message.payload)) == ("home/lamp/set", {"state": "ON", "brightness": 128})
    assert lamp.orders({"power": "off"}, {}) == (Message("home/lamp/set", '{"state": "OFF"}'),)
    assert lamp.hear("home/lamp/lwt", "offline") == Heard(available=False)


def test_a_lamp_in_plain_words_of_its_own() -> None:
    lamp = device(
        "light",
        name="Lamp",
        state_topic="l/s",
        command_topic="l/c",
        payload_on="1",
        payload_off="0",
        state_value_template="{{ value_json.power }}",
        brightness_command_topic="l/b",
        brightness_state_topic="l/bs",
        brightness_scale=100,
    )
    assert values(lamp, "l/s", '{"power": 1}') == {"power": "on"}
    assert values(lamp, "l/s", '{"power": "0"}') == {"power": "off"}
    assert values(lamp, "l/bs", "40") == {"brightness": 40}
    assert lamp.orders({"power": "on", "brightness": 40}, {}) == (Message("l/c", "1"), Message("l/b", "40"))


def test_an_air_conditioner_without_a_switch_starts_by_its_mode() -> None:
    climate = device("climate", **CLIMATE)
    assert (climate.entity, set(climate.sets)) == ("climate.living_room_ac", {"power", "mode", "temperature"})
    assert values(climate, "ac/mode", "fan_only") == {"power": "on", "mode": "fan"}
    assert values(climate, "ac/mode", "off") == {"power": "off"}
    assert values(climate, "ac/mode", "disco") is None
    assert values(climate, "ac/temp", "26.0") == {"temperature": 26}
    assert values(climate, "ac/now", "28.5") == {"current_temperature": 28.5}
    wanted = {"power": "on", "temperature": 26}
    assert climate.orders(wanted, {"power": "off", "mode": "fan"}) == (
        Message("ac/mode/set", "fan_only"),
        Message("ac/temp/set", "26"),
    )
    assert climate.orders(wanted, {"power": "on"}) == (Message("ac/temp/set", "26"),)
    assert climate.orders({"power": "off"}, {}) == (Message("ac/mode/set", "off"),)
    assert climate.orders({"power": "on", "mode": "heat"}, {}) == (Message("ac/mode/set", "heat"),)


def test_one_with_a_switch_is_switched() -> None:
    climate = device("climate", **CLIMATE, power_command_topic="ac/power")
    assert climate.orders({"power": "on"}, {"power": "off", "mode": "fan"}) == (Message("ac/power", "ON"),)
    assert climate.orders({"power": "on"}, {"power": "on"}) == (Message("ac/power", "ON"),), "told anew all the same"
    assert climate.orders({"power": "off"}, {}) == (Message("ac/power", "OFF"),)


def test_a_blind_that_counts_the_other_way_round() -> None:
    blind = device(
        "cover",
        name="Blind",
        position_topic="b/p",
        set_position_topic="b/p/set",
        position_open=0,
        position_closed=255,
        command_topic="b/c",
    )
    assert values(blind, "b/p", "255") == {"position": 0}
    assert values(blind, "b/p", "0") == {"position": 100}
    assert blind.orders({"position": 40}, {}) == (Message("b/p/set", "153"),)
    assert values(blind, "b/p", "153") == {"position": 40}
    assert blind.orders({"position": 100}, {}) == (Message("b/c", "OPEN"),)
    assert blind.orders({"position": 0}, {}) == (Message("b/c", "CLOSE"),)


def test_a_lock_a_switch_and_what_senses() -> None:
    lock = device("lock", name="Door", state_topic="d/s", command_topic="d/c", payload_lock="shut")
    assert values(lock, "d/s", "LOCKED") == {"lock": "locked"}
    assert lock.orders({"lock": "locked"}, {}) == (Message("d/c", "shut"),)
    switch = device("switch", name="Oven", state_topic="o/s", command_topic="o/c", state_on="hot")
    assert values(switch, "o/s", "hot") == {"power": "on"}
    window = device("binary_sensor", name="Window", device_class="window", state_topic="w")
    assert (window.domain, values(window, "w", "ON")) == ("sensor", {"contact": "open"})
    air = device(
        "sensor", name="Air", device_class="temperature", state_topic="a", value_template="{{value_json['t'].c}}"
    )
    assert values(air, "a", '{"t": {"c": 21.5}}') == {"temperature": 21.5}
    assert values(air, "a", "21.5") is None


def test_only_who_names_a_topic_for_it_can_be_asked() -> None:
    assert device("climate", **CLIMATE).askable == frozenset()
    asked = device("climate", **CLIMATE, dualloop={"get": "ac/get"})
    assert asked.questions() == (Message("ac/get", ""),)
    assert asked.askable == {"power", "temperature", "current_temperature"}, "one that is off tells no mode"


@pytest.mark.parametrize(
    ("topic", "config"),
    [
        ("homeassistant/light/x/config", ""),
        ("homeassistant/light/x/config", "{}"),
        ("homeassistant/light/x/config", "no JSON"),
        ("homeassistant/light/x/config", {"name": "no topic"}),
        ("homeassistant/light/x/config", {"unique_id": "#", "state_topic": "s"}),
        ("homeassistant/light/x/config", {"state_topic": "s", "command_topic": "all/#"}),
        ("homeassistant/light/x/config", {"state_topic": "s\0"}),
        ("homeassistant/light/x/config", {"state_topic": "s", "dualloop": {"get": "+"}}),
        ("homeassistant/vacuum/x/config", {"state_topic": "s"}),
        ("homeassistant/switch/x/config", {"state_topic": "s", "value_template": "{{ value | int > 3 }}"}),
        ("homeassistant/sensor/x/config", {"state_topic": "s", "device_class": "gas"}),
        ("homeassistant/light/a/b/c/config", {"state_topic": "s"}),
    ],
    ids=str,
)
def test_what_is_no_device_or_none_that_we_understand_is_passed_over(topic: str, config: Any) -> None:
    text = config if isinstance(config, str) else json.dumps(config)
    assert announced("homeassistant", topic, text) is None


def test_a_node_may_stand_in_between() -> None:
    config = json.dumps({"state_topic": "s", "command_topic": "c"})
    found = announced("homeassistant", "homeassistant/switch/node/plug/config", config)
    assert found is not None
    assert (found.wire, found.entity) == ("homeassistant/plug", "switch.plug")
