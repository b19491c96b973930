"""Anybody may publish anything: what is no announcement or no report costs nobody else his devices.

Announcements and reports of each dialect are taken apart by chance, and nonsense is put in their places.
"""

import json
import time
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import pytest

from backend_loop.devices.mqtt.book import Book, entities
from backend_loop.devices.mqtt.bridge_clock import BridgeClock
from backend_loop.devices.mqtt.dialects import zigbee2mqtt
from backend_loop.devices.mqtt.dialects.described import LONGEST_WORD, Described, is_topic
from backend_loop.devices.mqtt.hub import Hub
from backend_loop.devices.mqtt.line import Line
from dualloop.doctor.broker import _Census
from shared.clock import now_ms, rfc3339
from shared.mqtt import MqttUrl
from shared.settings import Settings

NOW: Final = 1_790_000_000_000
JUNK: Final[list[Any]] = [
    *(None, True, False, 0, -1, 1, 3.5, 1e308, 5e-324, 10**400, 9**18, "", "x", "+", "#", "\0", "灯/ü", "ON", "-5"),
    *([], {}, [[]], [{}], ["x"], {"a": {}}, {"x": [1]}, "1e999", "9" * 400, "a" * 70_000),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"),
]
STATE: Final = {"type": "binary", "name": "state", "property": "state", "access": 7, "value_on": "ON", "value_off": 0}
LEVEL: Final = {"type": "numeric", "access": 7, "value_min": 0, "value_max": 254}
_LIGHT: Final = {"definition": {"exposes": [{"type": "light", "features": [STATE]}]}}
ZIGBEE: Final = [
    {
        "friendly_name": "kitchen/lamp",
        "type": "Router",
        "definition": {
            "exposes": [
                {
                    "type": "light",
                    "endpoint": "l1",
                    "features": [STATE, LEVEL | {"name": "brightness", "property": "brightness"}],
                },
                {
                    "type": "climate",
                    "features": [
                        {"name": "system_mode", "property": "system_mode", "access": 7, "values": ["off", "heat"]},
                        LEVEL | {"name": "occupied_heating_setpoint", "property": "setpoint"},
                    ],
                },
                {"type": "binary", "name": "contact", "property": "contact", "access": 1},
                {"type": "enum", "name": "playback", "property": "playback", "access": 7, "values": ["paused"]},
                LEVEL | {"name": "volume", "property": "volume"},
            ]
        },
    }
]
TASMOTA: Final = {"dn": "Plug", "fn": ["a", None], "t": "plug", "ft": "%prefix%/%topic%/", "rl": [1, 2, 0], "lt_st": 1}
SENSORS: Final = {"sn": {"Time": "2026-01-01T00:00:00", "AM2301": {"Temperature": 21.0}, "TempUnit": "F"}}
CONFIG: Final = {
    "name": "x",
    "uniq_id": "u1",
    "~": "home/x",
    "schema": "json",
    "cmd_t": "~/set",
    "stat_t": "~/state",
    "avty": [{"topic": "~/there", "payload_available": "on"}],
    "dev": {"name": "d"},
    "brightness": True,
    "brightness_scale": 100,
    "dualloop": {"get": "home/x/get"},
    "modes": ["off", "cool"],
    "mode_cmd_t": "~/mode",
    "mode_stat_t": "~/mode",
    "temp_cmd_t": "~/warm",
    "temp_stat_t": "~/warm",
    "min_temp": 7,
    "max_temp": 30,
    "pos_t": "~/at",
    "set_pos_t": "~/to",
    "pos_open": 100,
    "pos_clsd": 0,
    "bri_cmd_t": "~/dim",
    "bri_stat_t": "~/d",
    "val_tpl": "{{ value_json.a['b'] }}",
    "dev_cla": "temperature",
    "avty_mode": "any",
    "pl_on": "1",
}
REPORT: Final = {
    "state": "ON",
    "brightness": 215,
    "last_seen": "2026-09-21T14:13:20.000Z",
    "system_mode": "heat",
    "volume": 10,
    "setpoint": 20,
    "contact": True,
    "playback": "paused",
    "POWER": "ON",
    "POWER1": "OFF",
    "Dimmer": 5,
    "Time": "2026-09-21T14:13:20",
    "StatusSNS": {"AM2301": {"Temperature": 1}},
    "a": {"b": "ON"},
    "Command": "ok",
    "level": "error",
    "message": "Publish 'set' 'state' to 'kitchen/lamp' failed: 'x'",
}
COMPONENTS: Final = ("light", "switch", "climate", "cover", "lock", "sensor", "binary_sensor")
WANTED: Final[list[dict[str, Any]]] = [
    *({"power": "on"}, {"power": "off"}, {"brightness": 50}, {"power": "on", "temperature": 21}, {"mode": "cool"}),
    *({"position": 0}, {"position": 50}, {"lock": "locked"}, {"volume": 5}, {"playback": "paused"}),
]


def spoilt(told: Any, dice: Random, often: float) -> Any:
    if dice.random() < often:
        return dice.choice(JUNK)
    if isinstance(told, dict):
        return {name: spoilt(one, dice, often) for name, one in told.items() if dice.random() > often / 2}
    if isinstance(told, list):
        return [spoilt(one, dice, often) for one in told for _ in range(dice.choice([1, 1, 1, 0, 2]))]
    return told


def announced(dice: Random, often: float) -> Book:
    book = Book(["zigbee2mqtt"], "homeassistant")
    for topic, told in (
        ("zigbee2mqtt/bridge/devices", ZIGBEE),
        ("tasmota/discovery/AA/config", TASMOTA),
        ("tasmota/discovery/AA/sensors", SENSORS),
        (f"homeassistant/{dice.choice(COMPONENTS)}/node/one/config", CONFIG),
    ):
        assert book.hear(topic, json.dumps(spoilt(told, dice, often)))
    return book


def said(dice: Random, often: float) -> str:
    report = json.dumps(spoilt(REPORT, dice, often))
    return dice.choice([report, report, json.dumps(dice.choice(JUNK)), "ON", "online", "Online", "1e999", "{" * 5_000])


def orders(device: Described, known: dict[str, Any]) -> Iterator[str]:
    for values in WANTED:
        try:
            device.fit(values)
        except ValueError:
            continue
        yield from (message.topic for message in device.orders(values, known))


@pytest.mark.parametrize("often", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(8))
def test_nonsense_in_any_place_trips_nobody(seed: int, often: float) -> None:
    dice, tried = Random(1_000 * seed + round(often * 100)), 0
    for _ in range(12):
        devices = announced(dice, often).devices()
        tried += len(devices)
        entities(devices, {})
        for device in devices.values():
            line = Line(device, BridgeClock())
            for topic in (*device.topics, *device.topics):
                line.hear(topic, said(dice, often), retained=dice.random() < 0.2, now=NOW)
            rfc3339(line.reading(line.reported_at or NOW).observed_at)
            topics = [*orders(device, line.tracker.values), *(one.topic for one in device.questions())]
            assert all(is_topic(topic) for topic in topics)
    assert tried, "of some at least so much was left that they are devices"


def test_the_doctor_counts_what_is_there_and_nothing_else() -> None:
    census = _Census(Settings(_env_file=None))
    for told in (b"5", b"null", b"{}", b"[1, null, {}]", b"\xff", b"{" * 5_000):
        census.take("zigbee2mqtt/bridge/devices", told)
        census.take("tasmota/discovery/AA/config", told)
    assert str(census) == "1 by Tasmota, 1 by Zigbee2MQTT"


def test_an_act_of_nonsense_costs_no_report() -> None:
    hub = Hub(MqttUrl.parse("mqtt://nowhere"), ["zigbee2mqtt"], "homeassistant")
    setpoint = LEVEL | {"name": "occupied_heating_setpoint", "property": "setpoint"}
    heater = {"friendly_name": "heater", "definition": {"exposes": [{"type": "climate", "features": [setpoint]}]}}
    hub._take("zigbee2mqtt/bridge/devices", json.dumps([heater]), retained=True)
    hub._take_in()
    line = hub.lines["zigbee2mqtt/heater"]
    for n, value in enumerate(JUNK):
        act = json.dumps({"key": f"k{n}", "fence": value, "values": {"temperature": value}})
        hub._take("dualloop/acts/zigbee2mqtt/heater", act, retained=False)
        for warm in (n + 0.5, n + 0.25):
            line.hear("zigbee2mqtt/heater", json.dumps({"setpoint": warm}), retained=False, now=now_ms())
            assert line.tracker.values["temperature"] == warm


@pytest.mark.parametrize("told", ["Publish 'set'" * 4_900, "Publish 'set' to 'a' failed: " * 2_200])
def test_what_a_bridge_says_of_its_failures_is_read_soon(told: str) -> None:
    (lamp,) = zigbee2mqtt.announced("z", json.dumps([{"friendly_name": "lamp", **_LIGHT}])) or []
    text, began = json.dumps({"level": "error", "message": told}), time.process_time()
    assert lamp.hear("z/bridge/logging", text) is None
    assert time.process_time() - began < 0.5


def test_a_failure_that_a_bridge_goes_on_about_is_told_in_short() -> None:
    (lamp,) = zigbee2mqtt.announced("z", json.dumps([{"friendly_name": "lamp", **_LIGHT}])) or []
    message = f"z2m: Publish 'set' 'state' to 'lamp' failed: 'no converter {'x' * 50_000}'"
    heard = lamp.hear("z/bridge/logging", json.dumps({"level": "error", "message": message}))
    assert heard is not None
    assert (str(heard.error)[:12], len(str(heard.error)), heard.perhaps) == ("no converter", LONGEST_WORD, False)
