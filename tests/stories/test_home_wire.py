"""The simulated home on a real broker: what it says, what it does when it is told, and how it misbehaves."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from dualloop.home.demonstration import WIRES
from dualloop.home.house import House
from dualloop.home.model import Faults
from dualloop.home.store import Store
from dualloop.home.wire.wiring import Wiring
from shared.clock import now_ms
from tests.mqtt import Broker, Heard, Wire, wire
from tests.waiting import eventually

LAMP, STUDY, AIR = "light.hall", "light.study", "climate.study"
HALL = "zigbee2mqtt/hall/lamp"
ACTS, ANSWERS = "dualloop/acts", "dualloop/answers"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with contextlib.closing(Store(tmp_path)) as store:
        yield House(store, now_ms)


@contextlib.asynccontextmanager
async def speaking(house: House, url: str) -> AsyncIterator[Wiring]:
    """Its devices on a broker, for as long as the block lasts."""
    house.watchers.clear()
    wiring = Wiring(house, url)
    running = asyncio.create_task(wiring.run())
    try:
        await eventually(lambda: not wiring.missing, what="all devices are announced")
        yield wiring
    finally:
        running.cancel()
        await asyncio.wait({running})


@pytest.fixture
async def bus(house: House, mqtt_url: str) -> AsyncIterator[Wire]:
    """Whoever listens to the home, and tells its devices what to do."""
    async with speaking(house, mqtt_url), wire(mqtt_url) as listener:
        await listener.settled()
        yield listener


async def act(bus: Wire, entity: str, key: str, sets: dict[str, Any], *, fence: int = 1, **values: Any) -> None:
    """Announce it and tell it, as a worker does."""
    await bus.say(f"{ACTS}/{WIRES[entity]}", {"key": key, "fence": fence, "values": values, "at": "…"})
    for topic, payload in sets.items():
        await bus.say(topic, payload)


async def switch(bus: Wire, key: str, state: str = "ON", *, fence: int = 1) -> Heard:
    """Switch the lamp in the hall; what it answers."""
    since = await bus.settled()
    await act(bus, LAMP, key, {f"{HALL}/set": {"state": state}}, fence=fence, power=state.lower())
    return await bus.hear(f"{ANSWERS}/{HALL}", since=since)


async def read(bus: Wire) -> dict[str, Any]:
    """What the lamp in the hall shows when it is asked."""
    since = await bus.settled()
    await bus.say(f"{HALL}/get", {"state": ""})
    state: dict[str, Any] = (await bus.hear(HALL, since=since)).json
    return state


def effects(house: House, entity: str = LAMP) -> list[tuple[str, dict[str, Any], str | None]]:
    """What was done to it: by whom, what it changed, under which key."""
    return [(one.by, one.changed, one.order.key if one.order else None) for one in house.journal(entity)]


async def test_whoever_comes_later_finds_who_there_is_and_how_they_are(bus: Wire) -> None:
    retained = {one.topic: one.text for one in bus.heard if one.retained}
    known = {one["friendly_name"] for one in json.loads(retained["zigbee2mqtt/bridge/devices"])}
    assert {"Coordinator", "hall/lamp", "front_door/lock"} <= known
    assert json.loads(retained[f"{HALL}/availability"]) == {"state": "online"}
    assert json.loads(retained[HALL])["state"] == "OFF"
    assert retained["tele/oven/LWT"] == "Online"
    assert retained["dualloop/home/dualloop_study_ac/mode"] == "off"
    configs = [topic for topic in retained if topic.endswith("/config")]
    assert sum(topic.startswith("homeassistant/climate/") for topic in configs) == 3
    assert sum(topic.startswith("homeassistant/cover/") for topic in configs) == 3
    assert sum(topic.startswith("tasmota/discovery/") for topic in configs) == 6
    assert "stat/oven/POWER" not in retained, "a Tasmota's state is not remembered for it"


async def test_an_act_is_done_told_and_answered_in_each_dialect(bus: Wire, house: House) -> None:
    assert (await switch(bus, "z")).json == {"key": "z", "code": "done", "detail": ""}
    assert (await bus.hear(HALL, lambda said: not said.retained)).json["state"] == "ON"
    await act(bus, STUDY, "t", {"cmnd/study_lamp/Dimmer": "40"}, power="on", brightness=40)
    assert (await bus.hear(f"{ANSWERS}/tasmota/study_lamp")).json["code"] == "done"
    assert (await bus.hear("stat/study_lamp/RESULT")).json == {"POWER": "ON", "Dimmer": 40}
    base = "dualloop/home/dualloop_study_ac"
    await act(bus, AIR, "h", {f"{base}/power/set": "ON", f"{base}/temperature/set": "26"}, power="on", temperature=26)
    assert (await bus.hear(f"{ANSWERS}/homeassistant/dualloop_study_ac")).json["code"] == "done"
    assert (await bus.hear(f"{base}/temperature", lambda said: not said.retained)).text == "26"
    assert effects(house) == [("command", {"power": "on"}, "z")]
    assert effects(house, STUDY) == [("command", {"power": "on", "brightness": 40}, "t")]
    assert effects(house, AIR) == [("command", {"power": "on", "temperature": 26}, "h")], "two messages, one act"


async def test_one_key_has_one_effect_however_often_it_comes(bus: Wire, house: House) -> None:
    await switch(bus, "k")
    house.hand(LAMP, {"power": "off"})
    assert (await switch(bus, "k", fence=2)).json["code"] == "done", "a later try of the same act"
    since = await bus.settled()
    await bus.say(f"{HALL}/set", {"state": "ON"})  # the broker delivers it once more
    await bus.hear(HALL, since=since)
    assert [key for by, _, key in effects(house) if by == "command"] == ["k"]
    assert house.look(LAMP).value["power"] == "off", "the hand that came in between stays"


async def test_an_act_that_is_never_whole_is_done_as_far_as_it_was_told(bus: Wire, house: House) -> None:
    base = "dualloop/home/dualloop_study_ac"
    await act(bus, AIR, "k", {f"{base}/power/set": "ON"}, power="on", temperature=26)
    await bus.hear(f"{ANSWERS}/homeassistant/dualloop_study_ac")
    assert effects(house, AIR) == [("command", {"power": "on"}, "k")]


async def test_an_old_fence_and_a_reused_key_are_told_from_each_other(bus: Wire, house: House) -> None:
    await switch(bus, "a", fence=5)
    assert (await switch(bus, "b", "OFF", fence=4)).json["code"] == "old_fence"
    assert (await switch(bus, "a", "OFF", fence=6)).json["code"] == "key_reused"
    assert house.look(LAMP).value["power"] == "on"


async def test_what_nobody_announced_was_somebodys_hand(bus: Wire, house: House) -> None:
    await bus.say(f"{HALL}/set", {"state": "ON"})
    await bus.hear(HALL, lambda said: not said.retained)
    assert effects(house) == [("hand", {"power": "on"}, None)]


async def test_a_command_that_the_broker_remembered_is_nobodys_wish(house: House, mqtt_url: str) -> None:
    async with wire(mqtt_url) as bus:
        await bus.say(f"{HALL}/set", {"state": "ON"}, retain=True)
        async with speaking(house, mqtt_url):
            assert (await read(bus))["state"] == "OFF"
    assert effects(house) == []


async def test_a_hand_is_told_of_at_once_and_says_nothing_new_where_it_changes_nothing(bus: Wire, house: House) -> None:
    since = await bus.settled()
    house.hand(LAMP, {"power": "on"})
    house.hand("cover.kitchen", {"position": 0})
    house.hand("sensor.kitchen", {"temperature": 30})
    assert (await bus.hear(HALL, since=since)).json["state"] == "ON"
    assert (await bus.hear("tele/kitchen_air/SENSOR", since=since)).json["AM2301"]["Temperature"] == 30
    await bus.settled()
    assert [one.topic for one in bus.heard[since:] if "kitchen_blind" in one.topic] == [], "closed is what it was"


async def test_one_that_refuses_says_so(bus: Wire, house: House) -> None:
    house.break_down(LAMP, Faults(refuse=True))
    assert (await switch(bus, "k")).json == {"key": "k", "code": "refused", "detail": "the device refuses"}
    said = (await bus.hear("zigbee2mqtt/bridge/logging")).json
    assert (said["level"], "'hall/lamp'" in said["message"]) == ("error", True)
    house.break_down(STUDY, Faults(refuse=True))
    await act(bus, STUDY, "t", {"cmnd/study_lamp/POWER": "ON"}, power="on")
    assert (await bus.hear("stat/study_lamp/RESULT")).json == {"Command": "Error"}
    assert (await bus.hear(f"{ANSWERS}/tasmota/study_lamp")).json["code"] == "refused"


async def test_one_that_is_offline_is_known_to_be_and_comes_back_as_it_is(bus: Wire, house: House) -> None:
    house.break_down(LAMP, Faults(offline=True))
    assert (await bus.hear(f"{HALL}/availability", lambda said: not said.retained)).json == {"state": "offline"}
    assert (await switch(bus, "k")).json["code"] == "offline"
    since = await bus.settled()
    house.hand(LAMP, {"power": "on"})
    await bus.say(f"{HALL}/get", {"state": ""})
    await bus.settled()
    assert [one.topic for one in bus.heard[since:] if one.topic == HALL] == []
    house.break_down(LAMP, Faults())
    assert (await bus.hear(HALL, since=since)).json["state"] == "ON"


async def test_one_that_is_silent_does_not_look_dead_and_says_nothing(bus: Wire, house: House) -> None:
    house.break_down(LAMP, Faults(silent=True))
    since = await bus.settled()
    await act(bus, LAMP, "k", {f"{HALL}/set": {"state": "ON"}}, power="on")
    await bus.say(f"{HALL}/get", {"state": ""})
    await switch_study(bus)
    assert [one.topic for one in bus.heard[since:] if HALL in one.topic and not one.topic.startswith(ACTS)] == [
        f"{HALL}/set",
        f"{HALL}/get",
    ]
    assert effects(house) == []


async def switch_study(bus: Wire) -> None:
    await act(bus, STUDY, "s", {"cmnd/study_lamp/POWER": "ON"}, power="on")
    await bus.hear(f"{ANSWERS}/tasmota/study_lamp")


async def test_one_that_lies_says_what_is_wanted_and_shows_the_truth_when_it_is_read(bus: Wire, house: House) -> None:
    house.break_down(LAMP, Faults(lie=True))
    assert (await switch(bus, "k")).json["code"] == "done"
    assert (await bus.hear(HALL, lambda said: not said.retained)).json["state"] == "ON"
    assert (await read(bus))["state"] == "OFF"
    assert effects(house) == []


async def test_an_answer_that_is_lost_comes_with_no_report(bus: Wire, house: House) -> None:
    house.break_down(LAMP, Faults(lose_answer=True))
    since = await bus.settled()
    await act(bus, LAMP, "k", {f"{HALL}/set": {"state": "ON"}}, power="on")
    await eventually(lambda: house.look(LAMP).value["power"] == "on", what="it obeys")
    await switch_study(bus)
    assert [one.topic for one in bus.heard[since:] if one.topic in {HALL, f"{ANSWERS}/{HALL}"}] == []


async def test_one_that_says_everything_twice_does(bus: Wire, house: House) -> None:
    house.break_down(LAMP, Faults(duplicate=True))
    since = await bus.settled()
    house.hand(LAMP, {"power": "on"})
    await bus.hear(HALL, since=since)
    await bus.settled()
    said = [one.text for one in bus.heard[since:] if one.topic == HALL]
    assert len(said) == 2
    assert said[0] == said[1]


def states_of(bus: Wire, since: int) -> list[str]:
    """What the lamp in the hall said of itself from then on."""
    return [one.json["state"] for one in bus.heard[since:] if one.topic == HALL]


async def caught_up(bus: Wire, since: int) -> None:
    await eventually(lambda: len(states_of(bus, since)) == 3, what="both have come late")


async def test_a_late_report_shows_what_was_and_a_question_what_is(bus: Wire, house: House) -> None:
    for late_ms in (100, 2_000, 20_000):  # later, where the question took longer
        house.break_down(LAMP, Faults(late_ms=late_ms))
        since = await bus.settled()
        house.hand(LAMP, {"power": "on"})
        house.hand(LAMP, {"power": "off"})
        await bus.say(f"{HALL}/get", {"state": ""})
        now = (await bus.hear(HALL, lambda said: said.json["state"] == "OFF", since=since)).json
        late = await bus.hear(HALL, lambda said: said.json["state"] == "ON", since=since, within=60)
        assert late.json["last_seen"] <= now["last_seen"], "it says itself that it is old"
        if states_of(bus, since)[:2] == ["OFF", "ON"]:
            return
        await caught_up(bus, since)
    pytest.fail("the late report has never come after the question's answer")


async def test_a_stale_one_goes_on_showing_what_it_showed(bus: Wire, house: House) -> None:
    house.break_down(LAMP, Faults(observe_stale=True))
    house.hand(LAMP, {"power": "on"})
    first, second = await read(bus), await read(bus)
    assert (first["state"], first["last_seen"]) == ("OFF", second["last_seen"])


async def test_what_cannot_be_read_hurts_nobody(bus: Wire, house: House) -> None:
    for topic in (f"{HALL}/set", f"{HALL}/get", f"{ACTS}/{HALL}", "cmnd/study_lamp/Backlog", "homeassistant/status"):
        for payload in (b"\xff", b"", b'{"a":' * 2_000, b"x" * 50_000, b'{"key": 1, "values": null}'):
            await bus.say(topic, payload)
    assert (await switch(bus, "k")).json["code"] == "done"
    assert effects(house) == [("command", {"power": "on"}, "k")]


async def test_who_comes_to_home_assistant_hears_all_announcements_again(bus: Wire) -> None:
    since = await bus.settled()
    await bus.say("homeassistant/status", "online")
    await bus.hear("homeassistant/cover/dualloop_kitchen_blind/config", since=since)
    await bus.hear("dualloop/home/availability", lambda said: said.text == "online", since=since)


async def test_after_a_broker_that_has_forgotten_everything_all_is_said_again(
    house: House, own_mosquitto: Broker
) -> None:
    async with speaking(house, own_mosquitto.url) as wiring:
        own_mosquitto.stop()
        await eventually(lambda: len(wiring.missing) == 8, what="all connections are lost")
        house.hand(LAMP, {"power": "on"})
        house.break_down(STUDY, Faults(offline=True))
        own_mosquitto.start()
        await eventually(lambda: not wiring.missing, what="all devices are announced again")
        async with wire(own_mosquitto.url) as bus:
            assert (await bus.hear(HALL)).json["state"] == "ON"
            assert (await bus.hear("zigbee2mqtt/bridge/devices")).retained
            assert (await bus.hear("tele/study_lamp/LWT")).text == "Offline", (
                "the connection stands, the device is away"
            )
            assert (await switch(bus, "k", "OFF")).json["code"] == "done"


async def test_a_home_that_goes_says_good_bye(house: House, mqtt_url: str) -> None:
    async with wire(mqtt_url) as bus:
        async with speaking(house, mqtt_url):
            await bus.hear("dualloop/home/availability", lambda said: said.text == "online")
        await _gone(bus)


async def _gone(bus: Wire) -> None:
    for topic, word in (
        ("zigbee2mqtt/bridge/state", '{"state": "offline"}'),
        ("tele/oven/LWT", "Offline"),
        ("dualloop/home/availability", "offline"),
    ):
        await bus.hear(topic, lambda said, word=word: said.text == word)  # type: ignore[misc]  # bound now
