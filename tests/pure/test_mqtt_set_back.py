"""A device whose clock is set back, as in autumn, or that had once a wrong date, is heard again; what is late is not.

Times are in milliseconds; the device tells its own in whole seconds of its zone, as Tasmota does.
"""

import json
from datetime import UTC, datetime
from typing import Final

from backend_loop.devices.mqtt.bridge_clock import BridgeClock
from backend_loop.devices.mqtt.dialects.tasmota import announced
from backend_loop.devices.mqtt.dialects.zigbee2mqtt import announced as zigbee
from backend_loop.devices.mqtt.line import Line, Look

SUMMER: Final = 7_200_000
WINTER: Final = 3_600_000
NOW: Final = 1_792_890_000_000


def plug() -> Line:
    (found,) = announced({"t": "plug", "rl": [1]}, {})
    return Line(found, BridgeClock())


def say(line: Line, power: str, now: int, ahead: int) -> None:
    time = datetime.fromtimestamp((now + ahead) // 1000, UTC).replace(tzinfo=None).isoformat()
    line.hear("stat/plug/RESULT", json.dumps({"Time": time, "POWER": power}), retained=False, now=now)


def answered(line: Line, power: str, now: int, ahead: int) -> bool:
    """Whether an answer to a question of now counts as one."""
    look = Look(line.described.askable, now)
    look.posed = True
    line.looks.add(look)
    for took in (5, 10):  # what looks like a person's hand is asked again
        say(line, power, now + took, ahead)
    line.looks.discard(look)
    return look.done


def test_a_clock_that_is_put_back_by_an_hour_costs_one_question() -> None:
    line = plug()
    assert answered(line, "OFF", NOW, SUMMER)
    assert not answered(line, "ON", NOW + 60_000, WINTER), "it may have been said an hour ago"
    assert answered(line, "ON", NOW + 62_100, WINTER), "it goes on from there: it is a clock"
    assert (line.tracker.values["power"], line.reported_at) == ("on", NOW + 62_105)
    assert answered(line, "OFF", NOW + 62_200, WINTER)


def test_a_date_that_was_wrong_once_is_forgotten() -> None:
    line = plug()
    assert answered(line, "OFF", NOW, 10 * 365 * 86_400_000)
    assert not answered(line, "OFF", NOW + 5_000, 0)
    assert answered(line, "ON", NOW + 9_000, 0)


def test_what_is_late_stays_late() -> None:
    line = plug()
    assert answered(line, "OFF", NOW, 0)
    for n in range(4):
        say(line, "ON", NOW + 3_000 * n, -60_000 - 3_000 * n)  # the same old report, again and again
    assert line.tracker.values["power"] == "off"
    for n in range(4):
        say(line, "ON", NOW + 20_000 + n, -60_000 + 3_000 * n)  # a queue that is let go
    assert line.tracker.values["power"] == "off"


def test_the_other_devices_of_a_bridge_whose_clock_was_put_back_are_heard_at_once() -> None:
    state = {"type": "binary", "name": "state", "property": "state", "access": 7, "value_on": "ON", "value_off": "OFF"}
    light = {"exposes": [{"type": "light", "features": [state]}]}
    found = zigbee("z", json.dumps([{"friendly_name": one, "definition": light} for one in ("a", "b")]))
    assert found is not None
    clock = BridgeClock()
    one, other = (Line(device, clock) for device in found)

    def told(line: Line, word: str, now: int, ahead: int) -> None:
        text = json.dumps({"state": word, "last_seen": now + ahead})
        line.hear(line.described.topics[0], text, retained=False, now=now)

    for line in (one, other):
        told(line, "OFF", NOW, WINTER)
    for now in (NOW + 1_000, NOW + 3_000):
        told(one, "ON", now, 0)
    told(other, "ON", NOW + 3_100, 0)
    assert [line.tracker.values["power"] for line in (one, other)] == ["on", "on"]
