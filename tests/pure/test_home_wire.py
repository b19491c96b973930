"""The dialects in which the simulated home speaks: what it says of itself, and what it makes of what it is told."""

import json
from typing import Any

import pytest

from dualloop.home import model
from dualloop.home.demonstration import WIRES, demonstration
from dualloop.home.inventory import demonstration_inventory
from dualloop.home.model import Device, Reading
from dualloop.home.wire import discovery, tasmota, zigbee2mqtt
from dualloop.home.wire.dialect import Again, Dialect, Get, Heard, Message, Named, Set, Unclear
from shared.home import read

HOME = demonstration()
NOW = 1_796_000_000_123


def named(entity: str) -> Named:
    return Named(WIRES[entity].partition("/")[2], HOME[entity])


def dialect(entity: str) -> Dialect:
    match WIRES[entity].partition("/")[0]:
        case "zigbee2mqtt":
            return zigbee2mqtt.Bridge([named(entity)])
        case "tasmota":
            return tasmota.Tasmota(named(entity))
        case _:
            return discovery.Discovery([named(entity)])


def reading(entity: str, **values: Any) -> Reading:
    device = HOME[entity].model_copy(update={"value": HOME[entity].value | values})
    return model.observe(device, NOW)


def report(entity: str, **values: Any) -> dict[str, str]:
    """All that it says of itself, by topic."""
    told = reading(entity, **values)
    return {one.topic: one.payload for one in dialect(entity).report(named(entity), told, frozenset(told.value))}


def heard(entity: str, verb: str, payload: Any) -> Heard:
    """What a message on the topic that ends like this means to it."""
    one, name = dialect(entity), named(entity).name
    base = {"zigbee2mqtt": f"zigbee2mqtt/{name}", "tasmota": f"cmnd/{name}", "homeassistant": f"dualloop/home/{name}"}
    text = payload if isinstance(payload, str | bytes) else json.dumps(payload)
    return one.hear(f"{base[one.prefix]}/{verb}", text if isinstance(text, bytes) else text.encode())


def test_every_device_has_a_wire_and_the_demonstration_inventory_binds_it() -> None:
    assert WIRES.keys() == HOME.keys()
    assert len(set(WIRES.values())) == len(WIRES)
    assert read(demonstration_inventory().encode()).bindings() == {wire: entity for entity, wire in WIRES.items()}


@pytest.mark.parametrize(
    ("entity", "values", "topic", "told"),
    [
        ("light.hall", {"power": "on", "brightness": 40}, "zigbee2mqtt/hall/lamp", {"state": "ON", "brightness": 102}),
        ("lock.front_door", {"lock": "unlocked"}, "zigbee2mqtt/front_door/lock", {"state": "UNLOCK"}),
        ("sensor.front_door", {"contact": "closed"}, "zigbee2mqtt/front_door/contact", {"contact": True}),
        ("media_player.living_room", {"volume": 7}, "zigbee2mqtt/living_room/speaker", {"volume": 7, "state": "OFF"}),
        ("light.study", {"power": "on", "brightness": 40}, "stat/study_lamp/RESULT", {"POWER": "ON", "Dimmer": 40}),
        ("switch.oven", {"power": "off"}, "stat/oven/RESULT", {"POWER": "OFF"}),
        ("sensor.kitchen", {"temperature": 21.5}, "tele/kitchen_air/SENSOR", {"TempUnit": "C"}),
    ],
)
def test_a_device_shows_itself_in_the_words_of_its_dialect(
    entity: str, values: dict[str, Any], topic: str, told: dict[str, Any]
) -> None:
    said = json.loads(report(entity, **values)[topic])
    assert said | told == said


@pytest.mark.parametrize(
    ("values", "mode"),
    [
        ({"power": "off", "mode": "heat"}, "off"),
        ({"power": "on", "mode": "heat"}, "heat"),
        ({"power": "on", "mode": "fan"}, "fan_only"),
    ],
)
def test_an_air_conditioner_that_is_off_shows_it_as_a_mode(values: dict[str, Any], mode: str) -> None:
    base = "dualloop/home/dualloop_study_ac"
    assert report("climate.study", **values) == {f"{base}/mode": mode, f"{base}/temperature": "24"}


def test_discovered_devices_say_nothing_of_what_stays_as_it_was() -> None:
    one, now = dialect("climate.study"), reading("climate.study", temperature=20)
    assert [m.topic[-11:] for m in one.report(named("climate.study"), now, frozenset({"temperature"}))] == [
        "temperature"
    ]
    assert one.report(named("climate.study"), now, frozenset()) == []
    blind = dialect("cover.bedroom").report(named("cover.bedroom"), reading("cover.bedroom"), frozenset({"position"}))
    assert [(one.topic.rpartition("/")[2], one.payload) for one in blind] == [("position", "0"), ("state", "closed")]


def test_a_reading_says_when_it_was_taken() -> None:
    assert json.loads(report("light.hall")["zigbee2mqtt/hall/lamp"])["last_seen"] == "2026-11-30T00:53:20.123Z"
    lamp = dialect("light.study").answer(Get("study_lamp", "STATE"), named("light.study"), reading("light.study"))
    assert (lamp[0].topic, json.loads(lamp[0].payload)["Time"]) == ("stat/study_lamp/RESULT", "2026-11-30T00:53:20")
    air = dialect("sensor.kitchen").answer(
        Get("kitchen_air", "STATUS"), named("sensor.kitchen"), reading("sensor.kitchen")
    )
    told = json.loads(air[0].payload)["StatusSNS"]
    assert (air[0].topic, told["Time"], told["AM2301"]["Temperature"]) == (
        "stat/kitchen_air/STATUS8", "2026-11-30T00:53:20", 23.5,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("entity", "verb", "payload", "values"),
    [
        ("light.hall", "set", {"state": "ON", "brightness": 102}, {"power": "on", "brightness": 40}),
        ("light.hall", "set", {"brightness": 102}, {"power": "on", "brightness": 40}),
        ("light.hall", "set", {"brightness": 0}, {"power": "off"}),
        ("light.hall", "set", {"brightness": 1}, {"power": "on", "brightness": 1}),
        ("light.hall", "set", {"state": "OFF", "brightness": 102}, {"power": "off"}),
        ("light.hall", "set", "ON", {"power": "on"}),
        ("lock.front_door", "set", {"state": "UNLOCK"}, {"lock": "unlocked"}),
        ("media_player.living_room", "set", {"playback": "playing", "volume": 5}, {"playback": "playing", "volume": 5}),
        ("light.study", "POWER", "ON", {"power": "on"}),
        ("light.study", "Power1", "0", {"power": "off"}),
        ("light.study", "Dimmer", "40", {"power": "on", "brightness": 40}),
        ("light.study", "Dimmer", "0", {"power": "off"}),
        ("light.study", "Backlog", "POWER ON; Dimmer 40", {"power": "on", "brightness": 40}),
        ("climate.study", "power/set", "ON", {"power": "on"}),
        ("climate.study", "mode/set", "off", {"power": "off"}),
        ("climate.study", "mode/set", "fan_only", {"power": "on", "mode": "fan"}),
        ("climate.study", "temperature/set", "26.0", {"temperature": 26}),
        ("cover.kitchen", "command/set", "OPEN", {"position": 100}),
        ("cover.kitchen", "position/set", "30", {"position": 30}),
    ],
)
def test_what_a_device_is_told_is_understood(entity: str, verb: str, payload: Any, values: dict[str, Any]) -> None:
    assert heard(entity, verb, payload) == Set(named(entity).name, values)


@pytest.mark.parametrize(
    ("entity", "verb", "payload"),
    [
        ("light.hall", "set", {"colour": "red"}),
        ("light.hall", "set", {"state": "LOCK"}),
        ("light.hall", "set", {"state": ["ON"]}),
        ("light.hall", "set", {"brightness": 255}),
        ("light.hall", "set", {"brightness": True}),
        ("light.hall", "set", b'{"brightness": NaN}'),
        ("light.hall", "set", b'{"state": '),
        ("light.hall", "set", b"\xff\xfe"),
        ("light.hall", "set", b'{"a":' * 5_000),
        ("light.hall", "set", b'{"state": "ON"' + b" " * 20_000 + b"}"),
        ("switch.oven", "Dimmer", "40"),
        ("light.study", "POWER", "TOGGLE"),
        ("light.study", "Dimmer", "9" * 5_000),
        ("light.study", "Backlog", ";"),
        ("climate.study", "temperature/set", "warm"),
        ("climate.study", "power/set", "on"),
        ("cover.kitchen", "command/set", "STOP"),
        ("cover.kitchen", "position/set", b"x" * 20_000),
    ],
)
def test_what_makes_no_sense_is_unclear_and_nothing_else(entity: str, verb: str, payload: Any) -> None:
    unclear = heard(entity, verb, payload)
    assert isinstance(unclear, Unclear)
    assert unclear.sentence


@pytest.mark.parametrize(
    ("entity", "verb", "payload", "what"),
    [
        ("light.hall", "get", {"state": ""}, ""),
        ("light.study", "STATE", "", "STATE"),
        ("light.study", "POWER", "", "POWER"),
        ("sensor.kitchen", "STATUS", "8", "STATUS"),
        ("cover.kitchen", "get", "", ""),
    ],
)
def test_a_question_is_a_question(entity: str, verb: str, payload: Any, what: str) -> None:
    assert heard(entity, verb, payload) == Get(named(entity).name, what)


def test_what_is_nothing_to_them_means_nothing() -> None:
    assert heard("sensor.kitchen", "STATUS", "1") is None
    assert dialect("light.hall").hear("zigbee2mqtt/elsewhere/set", b"ON") is None
    assert dialect("cover.kitchen").hear("dualloop/home/elsewhere/get", b"") is None
    assert dialect("cover.kitchen").hear("homeassistant/status", b"offline") is None
    assert dialect("cover.kitchen").hear("homeassistant/status", b"online") == Again()


@pytest.mark.parametrize("percent", range(1, 101))
def test_no_percent_is_lost_on_the_way_to_a_lamp_and_back(percent: int) -> None:
    raw = json.loads(report("light.hall", brightness=percent)["zigbee2mqtt/hall/lamp"])["brightness"]
    assert heard("light.hall", "set", {"brightness": raw}) == Set("hall/lamp", {"power": "on", "brightness": percent})


@pytest.mark.parametrize("entity", WIRES)
def test_who_comes_is_announced_and_who_goes_is_missed(entity: str) -> None:
    one, name = dialect(entity), named(entity).name
    said = one.hello({name: True})
    assert all(message.retain for message in said), "whoever comes later hears it too"
    here, away = (one.presence(name, here=here)[0] for here in (True, False))
    assert here in said
    assert away not in said
    assert away in one.hello({name: False})
    assert one.will.retain
    assert one.will not in said
    assert one.will.topic in {message.topic for message in said}, "what the broker says of a lost one is taken back"


def test_a_device_that_is_away_does_not_speak_of_it_and_its_bridge_does() -> None:
    told = zigbee2mqtt.Bridge([named("light.hall")]).failed("hall/lamp", "no network route", here=False)
    assert [message.topic for message in told] == ["zigbee2mqtt/bridge/logging"]
    assert "hall/lamp" in json.loads(told[0].payload)["message"]
    lamp = tasmota.Tasmota(named("light.study"))
    assert lamp.failed("study_lamp", "", here=False) == []
    assert lamp.failed("study_lamp", "", here=True) == [Message("stat/study_lamp/RESULT", '{"Command": "Error"}')]


@pytest.mark.parametrize("device", HOME.values(), ids=lambda device: device.entity)
def test_a_device_says_what_its_announcement_promises(device: Device) -> None:
    """Each value that it shows has a word in the announcement: so it can be understood by who knows only that."""
    one = dialect(device.entity)
    announced = json.dumps(
        [
            json.loads(message.payload)
            for message in one.hello({named(device.entity).name: True})
            if message.payload[0] in "[{"
        ]
    )
    match one.prefix:
        case "zigbee2mqtt":
            (payload,) = report(device.entity).values()
            assert all(f'"property": "{name}"' in announced for name in json.loads(payload).keys() - {"last_seen"})
        case "homeassistant":
            assert all(f'"{topic}"' in announced for topic in report(device.entity))
        case _:
            assert f'"t": "{named(device.entity).name}"' in announced
