"""One device as a process hears it: who may be asked, what answers a question, what ends the waiting for a word."""

import json
from typing import Any

import pytest

from backend_loop.devices.mqtt.bridge_clock import BridgeClock
from backend_loop.devices.mqtt.dialects import discovery
from backend_loop.devices.mqtt.dialects.described import Heard
from backend_loop.devices.mqtt.dialects.zigbee2mqtt import announced
from backend_loop.devices.mqtt.line import Line, Look, Order
from backend_loop.devices.mqtt.tracker import Seen
from backend_loop.devices.protocol import DeviceUnreachable

TOPIC = "zigbee2mqtt/lamp"
AWAY = f"{TOPIC}/availability"


def line(access: int = 7) -> Line:
    state = {"type": "binary", "name": "state", "property": "state", "value_on": "ON", "value_off": "OFF"}
    light = {"type": "light", "features": [state | {"access": access}]}
    lamp = {"friendly_name": "lamp", "type": "Router", "definition": {"exposes": [light]}}
    found = announced("zigbee2mqtt", json.dumps([lamp]))
    assert found is not None
    return Line(found[0], BridgeClock())


def say(one: Line, told: Any, topic: str = TOPIC, *, retained: bool = False, now: int = 1_000) -> bool:
    return one.hear(topic, json.dumps(told), retained=retained, now=now)


def test_a_device_is_there_where_it_and_its_bridge_are() -> None:
    lamp = line()
    offline = [lamp.offline]
    say(lamp, {"state": "online"}, AWAY)
    for word in ("offline", "online"):
        say(lamp, {"state": word}, "zigbee2mqtt/bridge/state")
        offline.append(lamp.offline)
    assert offline == [None, "zigbee2mqtt/bridge/state", None], "and it is, as long as nobody says otherwise"


def test_one_that_has_two_ways_is_there_by_either() -> None:
    ways = [{"topic": "wifi"}, {"topic": "cable"}]
    config = {"state_topic": "s", "command_topic": "c", "availability": ways, "availability_mode": "any"}
    found = discovery.announced("homeassistant", "homeassistant/switch/plug/config", json.dumps(config))
    assert found is not None
    plug = Line(found, BridgeClock())
    offline = []
    for topic, word in (("wifi", "offline"), ("cable", "online"), ("cable", "offline")):
        plug.hear(topic, word, retained=True, now=1_000)
        offline.append(plug.offline)
    assert offline == ["wifi", None, "wifi"]


def test_a_reading_has_the_limits_that_are_numbers() -> None:
    config = {"temperature_command_topic": "c", "temperature_state_topic": "s", "min_temp": 16, "max_temp": 28}
    modes = {"mode_command_topic": "m", "mode_state_topic": "n", "modes": ["off", "cool"]}
    found = discovery.announced("homeassistant", "homeassistant/climate/ac/config", json.dumps(config | modes))
    assert found is not None
    assert "mode" in found.sets
    assert Line(found, BridgeClock()).reading(1_000).limits == {"temperature": (16, 28)}


def test_what_was_said_of_who_is_there_ends_with_the_connection() -> None:
    lamp = line()
    say(lamp, {"state": "offline"}, AWAY)
    say(lamp, {"state": "ON"})
    lamp.there.set()
    lamp.lose_touch()
    assert lamp.offline is None
    assert lamp.reported_at is None
    assert not lamp.there.is_set()
    assert lamp.tracker.values == {"power": "on"}, "it is remembered"


def test_one_that_is_announced_with_more_begins_anew_and_with_the_same_goes_on() -> None:
    lamp, other = line(), line(access=1)
    say(lamp, {"state": "ON"})
    lamp.redescribe(line().described)
    assert lamp.tracker.values == {"power": "on"}
    lamp.redescribe(other.described)
    assert lamp.tracker.values == {}


def test_only_a_live_message_that_moved_something_is_to_be_told() -> None:
    lamp = line()
    assert not say(lamp, {"state": "ON"}, retained=True)
    assert not say(lamp, {"state": "ON"})
    assert say(lamp, {"state": "OFF"})
    assert not say(lamp, {"state": "OFF"})


def test_what_comes_after_something_newer_is_passed_over() -> None:
    lamp = line()
    say(lamp, {"state": "ON", "last_seen": 900}, now=1_000)
    assert not say(lamp, {"state": "OFF", "last_seen": 800}, now=1_100)
    assert lamp.tracker.values == {"power": "on"}


def test_other_values_under_the_same_time_are_no_news() -> None:
    lamp = line()
    say(lamp, {"state": "ON", "last_seen": 900}, now=1_000)
    assert not say(lamp, {"state": "OFF", "last_seen": 900}, now=1_100)
    assert lamp.tracker.values == {"power": "on"}
    assert say(lamp, {"state": "OFF", "last_seen": 901}, now=1_200)


def seen(*names: str, by: str | None = None) -> Seen:
    return Seen(frozenset(names), {} if by is None else dict.fromkeys(names, by))


def test_a_question_is_answered_once_all_that_was_asked_is_told() -> None:
    look = Look(frozenset({"power", "temperature"}), 1_000)
    done = [look.done]
    look.take(seen("power"), Heard({"power": "on"}), 1_010)
    done.append(look.done)
    look.take(seen("temperature"), Heard({"temperature": 26}), 1_020)
    assert [*done, look.done] == [False, False, True]
    assert look.observed_at == 1_000, "without a time of its own it may have been read as soon as it was asked"


def test_an_answer_with_a_time_of_its_own_is_as_new_as_that_says() -> None:
    look = Look(frozenset({"power"}), 1_000)
    look.take(seen("power"), Heard({"power": "on"}, told_at=7), 1_200)
    assert look.observed_at == 1_200


@pytest.mark.parametrize(("at", "done"), [(994, False), (995, True), (1_000, True)])
def test_what_was_so_before_the_question_is_no_answer(at: int, done: bool) -> None:
    look = Look(frozenset({"power"}), 1_000)
    look.take(seen("power"), Heard({"power": "on"}, told_at=7), at)
    assert (look.done, look.stale_at) == (done, None if done else at)
    assert look.observed_at == (1_000 if done else None), "an answer is never older than its question"


def test_an_echo_and_a_surprise_are_asked_again() -> None:
    look = Look(frozenset({"power"}), 1_000)
    look.take(seen(), Heard({"power": "on"}), 1_010)
    assert (look.done, look.again) == (False, True)
    look = Look(frozenset({"power"}), 1_000)
    look.take(seen("power", by="hand"), Heard({"power": "on"}), 1_010)
    assert (look.done, look.again) == (False, True)
    look = Look(frozenset({"power"}), 1_000)
    look.take(seen("power", by="command"), Heard({"power": "on"}), 1_010)
    assert (look.done, look.again) == (True, False)


def test_a_word_counts_once_the_act_was_sent_and_the_first_one_does() -> None:
    lamp, order = line(), Order("k", {"power": "on"})
    lamp.orders.add(order)
    say(lamp, {"state": "ON"})
    assert not order.heard.is_set()
    order.sent = True
    say(lamp, {"state": "OFF"})
    lamp.answered({"key": "another", "code": "offline"})
    assert not order.heard.is_set()
    lamp.answered({"key": "k", "code": "offline", "detail": "no power"})
    assert isinstance(order.fault, DeviceUnreachable)
    say(lamp, {"state": "ON"})
    lamp.answered({"key": "k", "code": "done"})
    assert isinstance(order.fault, DeviceUnreachable)
