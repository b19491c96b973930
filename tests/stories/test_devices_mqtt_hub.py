"""The MQTT adapter's connection: what it does when it is busy, interrupted, tripped or cut off."""

import asyncio
import socket
import time
from typing import Any

import aiomqtt
import pytest

from backend_loop.devices.mqtt import hub as hub_module
from backend_loop.devices.mqtt.device import MqttDevices
from backend_loop.devices.protocol import Command, DeviceUnreachable, UnknownEntity
from tests.mqtt import Broker
from tests.mqtt_lamp import Lamp, devices_on, known, lamp_on, soon
from tests.waiting import eventually

LAMP = "light.kitchen_lamp"
ON = Command(entity=LAMP, action="turn_on")


async def _shown(devices: MqttDevices) -> Any:
    try:
        return await devices.observe(LAMP, deadline=soon(1))
    except (DeviceUnreachable, UnknownEntity):
        return None


async def test_without_a_broker_everything_is_unreachable_and_with_one_it_is_there(own_mosquitto: Broker) -> None:
    own_mosquitto.stop()
    async with devices_on(own_mosquitto.url) as devices:
        with pytest.raises(DeviceUnreachable, match=r"MQTT broker at mqtt://127.0.0.1:\d+ is not there"):
            await devices.observe(LAMP, deadline=soon(0.3))
        with pytest.raises(DeviceUnreachable, match="MQTT broker"):
            await devices.act(ON, key="k", fence=1, deadline=soon(0.3))
        own_mosquitto.start()
        async with lamp_on(own_mosquitto.url):
            reading = await eventually(lambda: _shown(devices))
            assert reading.value["power"] == "off"


async def test_many_announcements_are_taken_in_together(lamp: Lamp, devices: MqttDevices) -> None:
    await devices.observe(LAMP, deadline=soon())
    before = devices._hub.revision
    config = {"state_topic": "plug/state", "command_topic": "plug/set"}
    plugs = [
        (f"homeassistant/switch/plug{number}/config", {**config, "unique_id": f"p{number}"}) for number in range(50)
    ]
    async with asyncio.TaskGroup() as group:
        for topic, told in plugs:
            group.create_task(lamp.line.say(topic, told, retain=True))
    await eventually(lambda: len(known(devices)) == 51)
    assert devices._hub.revision - before < 25


async def test_one_that_is_announced_anew_is_taken_for_what_it_says_now(lamp: Lamp, devices: MqttDevices) -> None:
    assert (await devices.observe(LAMP, deadline=soon())).value["power"] == "off"
    lamp.access = 3  # it cannot be asked any more
    await lamp.begin()
    await eventually(lambda: not known(devices)[LAMP].askable)
    asked = lamp.asked()
    await lamp.hand(state="ON")
    reading = await eventually(lambda: _on(devices))
    assert reading.value["power"] == "on"
    assert lamp.asked() == asked


async def test_who_asks_too_many_at_once_is_told_so(lamp: Lamp, devices: MqttDevices) -> None:
    dead = Lamp(lamp.line, "dead")
    dead.answers = False
    await lamp.begin(dead)
    await devices.observe(LAMP, deadline=soon())
    devices._looks = asyncio.Semaphore(1)
    waiting = asyncio.create_task(devices.observe(dead.entity, deadline=soon(120)))
    await lamp.line.hear(f"{dead.topic}/get")
    with pytest.raises(DeviceUnreachable, match="many are asked at once"):
        await devices.observe(LAMP, deadline=soon(0.1))
    assert lamp.asked() == 1
    await dead.hand(state="ON")
    assert (await waiting).value["power"] == "on"
    assert (await devices.observe(LAMP, deadline=soon())).value["power"] == "off"


async def test_nobody_is_asked_before_the_answer_would_be_heard(
    lamp: Lamp, devices: MqttDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    await devices.observe(LAMP, deadline=soon())
    client, may = devices._hub._client, asyncio.Event()
    assert client is not None
    subscribe = client.subscribe

    async def later(*topics: Any, **more: Any) -> Any:
        await may.wait()
        return await subscribe(*topics, **more)

    monkeypatch.setattr(client, "subscribe", later)
    hall = Lamp(lamp.line, "hall")
    await lamp.begin(hall)
    await eventually(lambda: "light.hall" in known(devices))
    looking = asyncio.create_task(devices.observe("light.hall", deadline=soon()))
    await lamp.line.settled()
    assert hall.asked() == 0
    may.set()
    assert (await looking).value["power"] == "off"


async def test_an_answer_that_comes_while_the_question_is_still_being_sent(
    lamp: Lamp, devices: MqttDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    await devices.observe(LAMP, deadline=soon())
    hub, line = devices._hub, devices._hub.lines[lamp.topic]
    publish = hub.publish

    async def slowly(topic: str, payload: str, *, qos: int) -> None:
        await publish(topic, payload, qos=qos)
        if topic.endswith("/get"):
            await eventually(lambda: all(look.done for look in line.looks))

    monkeypatch.setattr(hub, "publish", slowly)
    began = time.monotonic()
    await devices.observe(LAMP, deadline=soon(60))
    assert time.monotonic() - began < 30


async def test_a_message_that_trips_us_costs_neither_the_connection_nor_the_next_one(
    lamp: Lamp, devices: MqttDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    await devices.observe(LAMP, deadline=soon())
    line, since = devices._hub.lines[lamp.topic], devices._hub.connected_at
    hear = line.hear

    def trips(*_: Any, **__: Any) -> bool:
        monkeypatch.setattr(line, "hear", hear)
        raise RuntimeError("a stone")

    monkeypatch.setattr(line, "hear", trips)
    await lamp.hand(state="ON")
    assert (await devices.observe(LAMP, deadline=soon())).value["power"] == "on"
    assert devices._hub.connected_at == since


@pytest.mark.parametrize("name", ["two\nlines", "\uffff", "/".join("a" * 300)])
async def test_a_name_that_a_broker_takes_for_no_topic_costs_nobody_the_home(mqtt_url: str, name: str) -> None:
    async with lamp_on(mqtt_url) as lamp:
        odd = Lamp(lamp.line, "odd").described() | {"friendly_name": name}
        await lamp.line.say("zigbee2mqtt/bridge/devices", [odd, lamp.described()], retain=True)
        async with devices_on(mqtt_url) as devices:
            assert (await devices.observe(LAMP, deadline=soon())).value["power"] == "off"
            assert [*known(devices)] == [LAMP]


async def test_what_is_known_here_stands_there_whoever_writes_it_over(lamp: Lamp, devices: MqttDevices) -> None:
    changes = f"dualloop/changes/{lamp.topic}"
    await devices.observe(LAMP, deadline=soon())
    await devices.act(ON, key="k", fence=1, deadline=soon())
    await devices.observe(LAMP, deadline=soon())
    told = await lamp.line.hear(changes)
    since = await lamp.line.settled()
    await lamp.line.say(changes, {"changes": {}}, retain=True)
    await lamp.line.hear(changes, lambda heard: heard.json == told.json, since=since)


async def test_who_was_asked_when_the_broker_went_is_not_blamed_for_it(own_mosquitto: Broker) -> None:
    async with devices_on(own_mosquitto.url) as devices:
        async with lamp_on(own_mosquitto.url) as lamp:
            assert await eventually(lambda: _shown(devices))
            lamp.answers, since = False, await lamp.line.settled()
            looking = asyncio.create_task(devices.observe(LAMP, deadline=soon(600)))
            await lamp.line.hear(f"{lamp.topic}/get", since=since)
            own_mosquitto.stop()
            with pytest.raises(DeviceUnreachable, match="the MQTT broker was lost while it was asked"):
                await looking
            assert not devices._hub.lines[lamp.topic].silent, "it is given its time as ever"
        with pytest.raises(DeviceUnreachable, match=r"is not there \(.*(refused|[Dd]isconnected)"):
            await devices.observe(LAMP, deadline=soon(0.1))


async def test_a_broker_that_forgot_who_changed_what_is_told_again(own_mosquitto: Broker) -> None:
    changes = "dualloop/changes/zigbee2mqtt/kitchen/lamp"
    async with devices_on(own_mosquitto.url) as devices, devices_on(own_mosquitto.url) as others:
        async with lamp_on(own_mosquitto.url) as lamp:
            assert await eventually(lambda: _shown(devices))
            assert await eventually(lambda: _shown(others))
            await lamp.hand(state="ON")
            told = await lamp.line.hear(changes)
        own_mosquitto.restart()
        async with lamp_on(own_mosquitto.url) as lamp:
            again = await lamp.line.hear(changes)
            assert again.json["changes"]["power"]["version"] == told.json["changes"]["power"]["version"]
            assert again.json["changes"]["power"]["by"] == "hand"


async def test_a_broker_that_remembers_is_not_told_again(own_mosquitto: Broker) -> None:
    changes = "dualloop/changes/zigbee2mqtt/kitchen/lamp"
    async with lamp_on(own_mosquitto.url) as lamp, devices_on(own_mosquitto.url) as devices:
        assert await eventually(lambda: _shown(devices))
        await lamp.hand(state="ON")
        await lamp.line.hear(changes)
        assert devices._hub._client is not None
        connected_at, since = devices._hub.connected_at, await lamp.line.settled()
        devices._hub._client._client.socket().shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]  # connected, so it has one
        await eventually(lambda: devices._hub.connected_at != connected_at and devices._hub._reminded)
        assert devices._hub._retained == {lamp.topic}
        assert not devices._hub._untold
        await lamp.line.settled()
        assert not [one for one in lamp.line.heard[since:] if one.topic == changes]


async def test_what_is_retained_is_counted_and_what_is_said_is_not(lamp: Lamp, devices: MqttDevices) -> None:
    await devices.observe(LAMP, deadline=soon())
    recalled, came = devices._hub._recalled, devices._hub._came
    assert recalled
    await lamp.hand(state="ON")
    await eventually(lambda: devices._hub._came > came)
    assert devices._hub._recalled == recalled


async def test_who_is_heard_is_asked_while_thousands_of_others_are_not_yet(
    mqtt_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe, may = aiomqtt.Client.subscribe, asyncio.Event()

    async def later(self: aiomqtt.Client, topics: Any, **more: Any) -> Any:
        if "plug" in str(topics):
            await may.wait()
        return await subscribe(self, topics, **more)

    monkeypatch.setattr(aiomqtt.Client, "subscribe", later)
    monkeypatch.setattr(hub_module, "AT_ONCE", 1)
    async with lamp_on(mqtt_url) as lamp:
        for number in range(3):
            config = {"state_topic": f"plug{number}", "command_topic": "set", "unique_id": f"p{number}"}
            await lamp.line.say(f"homeassistant/switch/plug{number}/config", config, retain=True)
        async with devices_on(mqtt_url) as devices:
            assert (await devices.observe(LAMP, deadline=soon(60))).value["power"] == "off"
            plugs = [line for line in devices._hub.lines.values() if line.described.wire != lamp.topic]
            assert [line.there.is_set() for line in plugs] == [False] * 3
            may.set()
            await eventually(lambda: all(line.there.is_set() for line in plugs))


async def test_a_connection_that_is_cut_comes_back_by_itself(own_mosquitto: Broker) -> None:
    async with devices_on(own_mosquitto.url) as devices:
        async with lamp_on(own_mosquitto.url) as lamp:
            assert await eventually(lambda: _shown(devices))
            await lamp.line.say(f"{lamp.topic}/availability", {"state": "offline"})
            line = devices._hub.lines[lamp.topic]
            await eventually(lambda: line.offline)
        own_mosquitto.restart()
        async with lamp_on(own_mosquitto.url) as lamp:
            lamp.state["state"] = "ON"
            reading = await eventually(lambda: _on(devices))
            assert reading.value["power"] == "on"
            assert devices._hub.loop.state().errors >= 1
            assert not line.offline, "that was said before"


async def _on(devices: MqttDevices) -> Any:
    reading = await _shown(devices)
    return reading if reading is not None and reading.value["power"] == "on" else None


async def test_many_that_are_dead_keep_no_other_from_being_asked(lamp: Lamp, devices: MqttDevices) -> None:
    devices._looks = asyncio.Semaphore(1)
    dead = Lamp(lamp.line, "dead")
    dead.answers = False
    await lamp.begin(dead)
    await eventually(lambda: dead.entity in known(devices))
    waiting = asyncio.create_task(devices.observe(dead.entity, deadline=soon(120)))
    await lamp.line.hear(f"{dead.topic}/get")
    assert (await devices.observe(LAMP, deadline=soon(60))).value["power"] == "off"
    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait({waiting})
    assert (await devices.observe(LAMP, deadline=soon(60))).value["power"] == "off"
    assert devices._looks._value == 1, "each has given back what it had, once"


async def test_a_hand_that_could_not_be_told_is_told_once_the_broker_is_back(
    lamp: Lamp, devices: MqttDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    await devices.observe(LAMP, deadline=soon())
    client, topic = devices._hub._client, f"dualloop/changes/{lamp.topic}"
    assert client is not None

    async def broken(*_: Any, **__: Any) -> None:
        raise aiomqtt.MqttError("away")

    monkeypatch.setattr(client, "publish", broken)
    await lamp.hand(state="ON")
    told = await lamp.line.hear(topic)
    assert told.json["changes"]["power"]["by"] == "hand"
    assert devices._hub._client is not client, "the one that was lost has told nothing"
