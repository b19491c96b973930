"""A real broker, and a client that plays devices: what the stories of MQTT devices stand on."""

from tests.mqtt import Broker, wire


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
