"""Who is there by what was announced: also the simulated home, as it announces itself in each dialect."""

import json
from pathlib import Path
from typing import Any

import pytest
from paho.mqtt.client import topic_matches_sub

from backend_loop.devices.mqtt.book import Book, entities
from backend_loop.devices.mqtt.dialects.described import Described
from dualloop.doctor.broker import missing, unnamed
from dualloop.home.demonstration import WIRES, demonstration
from dualloop.home.wire.dialect import Dialect, Named
from dualloop.home.wire.discovery import Discovery
from dualloop.home.wire.tasmota import Tasmota
from dualloop.home.wire.zigbee2mqtt import Bridge
from shared.home import EMPTY, check

CONFIG = {"state_topic": "plug/state", "command_topic": "plug/set", "unique_id": "plug"}


def book() -> Book:
    return Book(["zigbee2mqtt"], "homeassistant")


def bulb(name: str) -> dict[str, Any]:
    state = {"type": "binary", "name": "state", "property": "state", "access": 7, "value_on": "ON", "value_off": "OFF"}
    definition = {"exposes": [{"type": "light", "features": [state]}]}
    return {"friendly_name": name, "type": "Router", "definition": definition}


def listed(*names: str) -> str:
    return json.dumps([bulb(name) for name in names])


def test_who_is_not_in_the_newest_list_is_gone() -> None:
    one = book()
    assert one.hear("zigbee2mqtt/bridge/devices", listed("a", "b"))
    assert one.hear("zigbee2mqtt/bridge/devices", listed("b"))
    assert [*one.devices()] == ["zigbee2mqtt/b"]
    assert one.hear("zigbee2mqtt/bridge/devices", "no list")
    assert [*one.devices()] == ["zigbee2mqtt/b"], "what is not understood takes nobody away"


def test_an_empty_announcement_takes_a_device_away() -> None:
    one = book()
    one.hear("homeassistant/switch/plug/config", json.dumps(CONFIG))
    assert [*one.devices()] == ["homeassistant/plug"]
    one.hear("homeassistant/switch/plug/config", "")
    assert not one.devices()


def test_of_two_with_one_id_the_first_has_it_however_often_either_is_announced() -> None:
    one, first, second = book(), "homeassistant/switch/plug/config", "homeassistant/switch/other/config"
    one.hear(first, json.dumps(CONFIG))
    one.hear(second, json.dumps(CONFIG | {"command_topic": "elsewhere"}))
    one.hear(first, json.dumps(CONFIG | {"name": "plug"}))
    (plug,) = one.devices().values()
    assert plug.orders({"power": "on"}, {}) == (("plug/set", "ON"),)
    one.hear(first, "")
    (plug,) = one.devices().values()
    assert plug.orders({"power": "on"}, {}) == (("elsewhere", "ON"),), "until it is gone"


@pytest.mark.parametrize(
    "name", ["two\nlines", "bell\x07", "del\x7f", "c1\x85", "\uffff", "\ufdd0", "/".join("a" * 200)]
)
def test_a_name_for_which_a_broker_drops_who_listens_there_costs_nobody_else(name: str) -> None:
    one = book()
    one.hear("zigbee2mqtt/bridge/devices", listed("灯/😀 1", name))
    tasmota = {"t": name, "rl": [1]}
    one.hear("tasmota/discovery/A1/config", json.dumps(tasmota))
    one.hear("homeassistant/switch/plug/config", json.dumps(CONFIG | {"state_topic": name}))
    assert [*one.devices()] == ["zigbee2mqtt/灯/😀 1"]


def test_an_endpoint_that_is_no_topic_costs_only_itself() -> None:
    one, two = book(), bulb("two")
    (first,) = two["definition"]["exposes"]
    two["definition"]["exposes"] = [first | {"endpoint": "l1"}, *(first | {"endpoint": end} for end in ("l+", "l2"))]
    one.hear("zigbee2mqtt/bridge/devices", json.dumps([two]))
    assert [*one.devices()] == ["zigbee2mqtt/two", "zigbee2mqtt/two/l2"]


@pytest.mark.parametrize("place", ["plug", "node/plug"])
def test_only_kinds_that_are_known_here_are_listened_to(place: str) -> None:
    def heard(kind: str) -> int:
        topic = f"homeassistant/{kind}/{place}/config"
        return sum(topic_matches_sub(one, topic) for together in book().topics for one in together)

    assert [heard(kind) for kind in ("light", "switch", "climate", "cover", "lock", "sensor", "binary_sensor")] == [
        1
    ] * 7
    assert not heard("update"), "there may be thousands of them"


def test_topics_of_a_broker_are_no_devices_and_long_ones_neither() -> None:
    one = book()
    one.hear("homeassistant/switch/plug/config", json.dumps(CONFIG | {"state_topic": "$SYS/broker/uptime"}))
    one.hear("tasmota/discovery/A1/config", json.dumps({"t": "a/" * 50, "ft": "%prefix%/%topic%/%topic%/", "rl": [1]}))
    assert not one.devices()


def test_of_a_device_that_took_its_announcements_back_nothing_is_left() -> None:
    one = book()
    for part, told in (("config", {"t": "plug", "rl": [1]}), ("sensors", {"ver": 1})):
        one.hear(f"tasmota/discovery/A1/{part}", json.dumps(told))
    assert [*one.devices()] == ["tasmota/plug"]
    for part in ("config", "sensors"):
        one.hear(f"tasmota/discovery/A1/{part}", "")
    assert not one.devices()
    assert not one._parts


def test_what_a_bridge_announces_to_home_assistant_besides_is_there_once() -> None:
    one = book()
    one.hear("zigbee2mqtt/bridge/devices", listed("a"))
    twice = {
        "unique_id": "0x1_light",
        "schema": "json",
        "state_topic": "zigbee2mqtt/a",
        "command_topic": "zigbee2mqtt/a/set",
    }
    one.hear("homeassistant/light/0x1/light/config", json.dumps(twice))
    assert [*one.devices()] == ["zigbee2mqtt/a"]


def test_messages_that_announce_nobody_are_not_taken() -> None:
    one = book()
    for topic in ("zigbee2mqtt/a", "tasmota/discovery/xyz/config", "homeassistant/status", "zigbee2mqtt/bridge/state"):
        assert not one.hear(topic, "{}")
    assert not one.hear("zigbee2mqtt/bridge/devices", "[" + " " * 17_000_000 + "]")


def test_a_name_in_the_inventory_wins_and_one_name_is_one_device() -> None:
    one = book()
    one.hear("zigbee2mqtt/bridge/devices", listed("lamp", "Lamp", "hall/lamp"))
    devices = one.devices()
    assert entities(devices, {}) == {"light.lamp": "zigbee2mqtt/Lamp", "light.hall_lamp": "zigbee2mqtt/hall/lamp"}
    bound = entities(devices, {"zigbee2mqtt/lamp": "light.stove", "zigbee2mqtt/gone": "light.gone"})
    assert bound == {
        "light.stove": "zigbee2mqtt/lamp",
        "light.lamp": "zigbee2mqtt/Lamp",
        "light.hall_lamp": "zigbee2mqtt/hall/lamp",
    }


def test_who_is_bound_to_no_name_is_called_by_his_own_in_any_script() -> None:
    one = book()
    names = ("灯/客厅😀", "灯/卧室", "Ku\u0308che Decke", "☀️", "Hall (2)", "ที่", "ทู่", "बैठक", "बाठक")
    one.hear("zigbee2mqtt/bridge/devices", listed(*names))
    assert {entity: wire.partition("/")[2] for entity, wire in entities(one.devices(), {}).items()} == {
        "light.灯_客厅": "灯/客厅😀",
        "light.灯_卧室": "灯/卧室",
        "light.küche_decke": "Ku\u0308che Decke",
        "light.zigbee2mqtt": "☀️",
        "light.ที่": "ที่",
        "light.ทู่": "ทู่",
        "light.बैठक": "बैठक",
        "light.बाठक": "बाठक",
        "light.hall_2": "Hall (2)",
    }


def heard_of(dialect: Dialect) -> dict[str, Described]:
    one = book()
    for message in dialect.hello(dict.fromkeys((named.name for named in dialect.devices), True)):
        one.hear(message.topic, message.payload)
    return one.devices()


def test_the_simulated_home_is_understood_in_each_of_its_dialects() -> None:
    home = demonstration()
    found: dict[str, Described] = {}
    for prefix, kind in (("zigbee2mqtt", Bridge), ("homeassistant", Discovery)):
        found |= heard_of(kind([named for named in _named() if WIRES[named.device.entity].startswith(f"{prefix}/")]))
    for named in _named():
        if WIRES[named.device.entity].startswith("tasmota/"):
            found |= heard_of(Tasmota(named))
    assert set(found) == set(WIRES.values())
    for entity, wire in WIRES.items():
        device, own = found[wire], home[entity]
        assert device.domain == entity.partition(".")[0]
        assert own.value.keys() <= device.shows
        assert bool(device.questions())
        if device.domain != "sensor":
            assert set(device.sets) == own.limits.keys()


def _named() -> list[Named]:
    home = demonstration()
    return [Named(wire.partition("/")[2], home[entity]) for entity, wire in WIRES.items()]


def test_the_doctor_names_what_is_announced_and_not_yet_in_the_home() -> None:
    one = book()
    one.hear("zigbee2mqtt/bridge/devices", listed("a", "b"))
    assert unnamed(one, EMPTY) == "light.a (zigbee2mqtt/a), light.b (zigbee2mqtt/b)"
    bound = {"entity": "light.bed", "names": {"en": ["bed light"]}, "wire": "zigbee2mqtt/a"}
    assert unnamed(one, check({"devices": [bound]})) == "light.b (zigbee2mqtt/b)"
    assert unnamed(one, check({"devices": [bound, {"entity": "light.b", "names": {"en": ["other"]}}]})) == ""
    one.hear("zigbee2mqtt/bridge/devices", listed(*"abcdefghijklm"))
    assert unnamed(one, EMPTY).endswith(", light.j (zigbee2mqtt/j), and 3 more")


def test_a_damaged_file_of_the_home_does_not_let_the_doctor_say_that_nothing_is_in_it(tmp_path: Path) -> None:
    one, file = book(), tmp_path / "home.json"
    one.hear("zigbee2mqtt/bridge/devices", listed("a", "b"))
    assert missing(one, None, file) == "; not in home.json: light.a (zigbee2mqtt/a), light.b (zigbee2mqtt/b)"
    file.write_text('{"devices": [],}')
    assert missing(one, None, file) == "; which of them are in home.json nobody knows, as it cannot be read"
    both = check({"devices": [{"entity": "light.a"}, {"entity": "light.b"}]})
    assert missing(one, both, file) == "", "the old inventory serves still"
    assert (
        missing(one, check({"devices": [{"entity": "light.a"}]}), file) == "; not in the home: light.b (zigbee2mqtt/b)"
    )
    file.write_text('{"devices": [{"entity": "light.a"}]}')
    assert missing(one, None, file) == "; not in home.json: light.b (zigbee2mqtt/b)"


def test_nobody_takes_the_name_of_one_that_is_away() -> None:
    one = book()
    plug = {**CONFIG, "name": "front door"}
    one.hear("homeassistant/lock/plug/config", json.dumps({**plug, "unique_id": "other"}))
    (other,) = one.devices()
    bindings = {"zigbee2mqtt/lock": "lock.front_door"}
    assert entities(one.devices(), {}) == {"lock.front_door": other}
    assert entities(one.devices(), bindings) == {}, "it is not the one that is meant"
    assert entities(one.devices(), {**bindings, other: "lock.shed"}) == {"lock.shed": other}
