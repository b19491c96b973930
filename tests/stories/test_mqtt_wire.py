"""A real broker, and a client that plays devices: what the stories of MQTT devices stand on."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend_loop.devices.protocol import DeviceUnreachable
from tests.mqtt import Broker, running_mosquitto, wire
from tests.mqtt_lamp import devices_on


async def test_a_scripted_device_answers_and_what_it_says_is_heard(mqtt_url: str) -> None:
    async with wire(mqtt_url) as lamp, wire(mqtt_url) as person:
        lamp.on("zigbee2mqtt/lamp/set", lambda asked: [("zigbee2mqtt/lamp", asked, True)])
        await person.say("zigbee2mqtt/lamp/set", {"state": "ON"})
        assert (await person.hear("zigbee2mqtt/lamp")).json == {"state": "ON"}
        assert [one.text for one in lamp.on_topic("zigbee2mqtt/+/set")] == ['{"state": "ON"}']


async def test_what_the_broker_retained_for_the_test_before_is_gone(mqtt_url: str) -> None:
    async with wire(mqtt_url) as late:
        await late.settled()
        assert not [one for one in late.heard if one.retained]


async def test_a_connection_that_is_lost_leaves_its_will(mqtt_url: str) -> None:
    async with wire(mqtt_url) as watcher, wire(mqtt_url, will=("tele/plug/LWT", "Offline", True)) as plug:
        plug.drop()
        assert (await watcher.hear("tele/plug/LWT")).text == "Offline"


async def test_a_broker_that_is_started_again_is_at_the_same_place(own_mosquitto: Broker) -> None:
    async with wire(own_mosquitto.url) as before:
        await before.say("kept", "by nobody", retain=True)
    own_mosquitto.restart()
    async with wire(own_mosquitto.url) as after:
        await after.settled()
        assert not after.on_topic("kept")


@pytest.fixture
def locked_mosquitto(tmp_path: Path) -> Iterator[Broker]:
    """A broker that lets in nobody but ``home``, whose password is ``a/b@c``."""
    passwords = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-b", "-c", passwords, "home", "a/b@c"], check=True)
    with running_mosquitto(allow_anonymous="false", password_file=str(passwords)) as broker:
        yield broker


async def test_who_asks_is_told_to_the_broker_and_to_nobody_else(locked_mosquitto: Broker) -> None:
    url = locked_mosquitto.url
    async with wire(url.replace("mqtt://", "mqtt://home:a%2Fb%40c@")) as line:
        await line.settled()
    async with devices_on(url.replace("mqtt://", "mqtt://home:hunter2@")) as devices:
        with pytest.raises(DeviceUnreachable, match="Not authorized") as refused:
            await devices.observe("light.hall", deadline=time.monotonic() + 0.3)
    assert "hunter2" not in str(refused.value)
