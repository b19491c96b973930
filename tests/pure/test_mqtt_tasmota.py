"""Tasmota as its devices speak: payloads as its documentation has them."""

import json
from typing import Any

import pytest

from backend_loop.devices.mqtt.dialects.described import Heard, Message
from backend_loop.devices.mqtt.dialects.tasmota import TasmotaDevice, announced

CONFIG: dict[str, Any] = {
    "ip": "192.168.1.20",
    "dn": "Study lamp",
    "fn": ["Study lamp", None, None, None],
    "hn": "tasmota-A1B2C3",
    "mac": "DC4F22A1B2C3",
    "md": "Sonoff D1",
    "ty": 0,
    "if": 0,
    "ofln": "Offline",
    "onln": "Online",
    "state": ["OFF", "ON", "TOGGLE", "HOLD"],
    "sw": "14.3.0",
    "t": "study_lamp",
    "ft": "%prefix%/%topic%/",
    "tp": ["cmnd", "stat", "tele"],
    "rl": [2, 0, 0, 0],
    "lt_st": 1,
    "ver": 1,
}
SENSORS = {"sn": {"Time": "2026-11-30T06:31:00", "AM2301": {"Temperature": 22.5, "Humidity": 45.0}, "TempUnit": "C"}}


def device(sensors: dict[str, Any] | None = None, **more: Any) -> TasmotaDevice:
    (one,) = announced(CONFIG | more, sensors or {})
    return one


def values(one: TasmotaDevice, topic: str, told: Any) -> dict[str, Any] | None:
    found = one.hear(topic, json.dumps(told))
    return None if found is None else dict(found.values)


def test_a_dimmer_is_described_told_and_asked() -> None:
    lamp = device()
    assert (lamp.wire, lamp.domain, lamp.entity) == ("tasmota/study_lamp", "light", "light.study_lamp")
    assert lamp.topics == ("tele/study_lamp/LWT", "tele/study_lamp/STATE", "stat/study_lamp/RESULT")
    assert lamp.questions() == (Message("cmnd/study_lamp/STATE", ""),)
    assert lamp.orders({"power": "off"}, {}) == (Message("cmnd/study_lamp/POWER", "OFF"),)
    assert lamp.orders({"power": "on", "brightness": 30}, {}) == (Message("cmnd/study_lamp/Dimmer", "30"),)


def test_its_state_is_read_with_its_time_in_whole_seconds() -> None:
    told = json.dumps({"Time": "2026-11-30T05:31:00", "Uptime": "0T01:00:00", "POWER": "ON", "Dimmer": 30})
    assert device().hear("stat/study_lamp/RESULT", told) == Heard(
        {"power": "on", "brightness": 30}, told_at=1_796_016_660_000, within_ms=1005
    )


def test_what_it_answers_to_a_command_has_no_time() -> None:
    assert device().hear("stat/study_lamp/RESULT", '{"POWER":"OFF"}') == Heard({"power": "off"})


@pytest.mark.parametrize("word", ["Unknown", "Error"])
def test_a_command_that_it_does_not_know_is_refused(word: str) -> None:
    found = device().hear("stat/study_lamp/RESULT", json.dumps({"Command": word}))
    assert found is not None
    assert (found.error, found.perhaps) == (f"it answered {word}", False)


def test_who_is_away_is_said_by_the_last_will() -> None:
    lamp = device()
    assert lamp.hear("tele/study_lamp/LWT", "Online") == Heard(available=True)
    assert lamp.hear("tele/study_lamp/LWT", "Offline") == Heard(available=False)
    assert lamp.hear("tele/study_lamp/LWT", "") is None


def test_what_only_senses_is_a_sensor() -> None:
    air = device(SENSORS, rl=[0] * 8, t="air")
    assert air.domain == "sensor"
    assert air.shows == {"temperature", "humidity"}
    assert not air.sets
    assert air.questions() == (Message("cmnd/air/STATUS", "8"),)
    status = {"StatusSNS": {"Time": "2026-11-30T05:31:00", "AM2301": {"Temperature": 19.0, "Humidity": 51.2}}}
    assert values(air, "stat/air/STATUS8", status) == {"temperature": 19, "humidity": 51.2}
    assert values(air, "tele/air/SENSOR", status["StatusSNS"]) == {"temperature": 19, "humidity": 51.2}


def test_fahrenheit_is_told_in_celsius() -> None:
    air = device(SENSORS, rl=[])
    assert values(air, "tele/study_lamp/SENSOR", {"SI7021": {"Temperature": 68}, "TempUnit": "F"}) == {
        "temperature": 20
    }


def test_a_plug_that_senses_is_asked_for_both() -> None:
    plug = device(SENSORS, rl=[1], lt_st=0)
    assert plug.domain == "switch"
    assert plug.askable == {"power", "temperature", "humidity"}
    assert [question.topic for question in plug.questions()] == ["cmnd/study_lamp/STATE", "cmnd/study_lamp/STATUS"]


def test_two_relays_are_two_devices() -> None:
    first, second = announced(CONFIG | {"rl": [1, 1, 0], "lt_st": 0, "fn": ["Fan", "Pump", None]}, {})
    assert (first.wire, first.entity) == ("tasmota/study_lamp", "switch.fan")
    assert (second.wire, second.entity) == ("tasmota/study_lamp/2", "switch.pump")
    assert values(second, "stat/study_lamp/RESULT", {"POWER2": "ON"}) == {"power": "on"}
    assert values(second, "stat/study_lamp/RESULT", {"POWER1": "ON"}) is None
    assert second.orders({"power": "on"}, {}) == (Message("cmnd/study_lamp/POWER2", "ON"),)


def test_topics_are_as_the_device_forms_them() -> None:
    lamp = device(ft="home/%topic%/%prefix%/", tp=["c", "s", "t"])
    assert lamp.topics[0] == "home/study_lamp/t/LWT"
    assert lamp.questions() == (Message("home/study_lamp/c/STATE", ""),)


@pytest.mark.parametrize(
    "more",
    [{"t": None}, {"t": "a/+"}, {"tp": ["cmnd"]}, {"rl": None}, {"tp": [1, 2, 3]}, {"rl": [3]}, {"ft": "#"}],
    ids=str,
)
def test_what_is_no_device_is_passed_over(more: dict[str, Any]) -> None:
    assert announced(CONFIG | more, {}) == []


@pytest.mark.parametrize("told", ["", "ON", "[]", '{"POWER": 1}', '{"Dimmer": "x"}', '{"Time": 7}'])
def test_nonsense_says_nothing(told: str) -> None:
    assert device().hear("stat/study_lamp/RESULT", told) is None
