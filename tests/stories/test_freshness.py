"""What users of other systems report of answers that were not true, each as a story on a real broker and a real Redis.

The lamps hang on a Zigbee2MQTT bridge, which publishes what was wanted before the lamp has obeyed, as bridges do.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from backend_loop.devices.mqtt.device import MqttDevices
from backend_loop.devices.protocol import DeviceUnreachable
from backend_loop.missions import device_control
from backend_loop.missions.device_control import DeviceControl
from backend_loop.missions.device_query import DeviceQuery
from shared.clock import now_ms, parse_rfc3339
from shared.mqtt import MqttUrl
from tests.device_commands import Document, Door
from tests.mqtt import Broker, wire
from tests.mqtt_lamp import BASE, Lamp, devices_on, lamp_on, served, soon
from tests.waiting import eventually

LAMP = "light.kitchen_lamp"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lamp has half a second to show the effect."""
    monkeypatch.setattr(device_control, "PATIENCE_ELSE_S", 0.5)


@pytest.fixture
async def door(redis_url: str, mqtt_url: str, lamp: Lamp, tmp_path: Path) -> AsyncIterator[Door]:  # noqa: ARG001  first
    async with served(redis_url, mqtt_url, tmp_path, DeviceControl.definition, DeviceQuery.definition) as door:
        yield door


async def told(door: Door, action: str, entity: str = LAMP, **more: Any) -> Document:
    return await door.end(await door.send(action, entity=entity, **more))


def ended(done: Document) -> str:
    """In one word."""
    return str(done["error"]["code"] if done["error"] else done["reason"] or done["result"]["outcome"])


async def asked(door: Door, entity: str = LAMP) -> Document:
    return await door.end(await door.submit(DeviceQuery.definition, {"entity": entity}))


async def test_the_hub_believes_that_the_lamp_is_off_already_so_off_sends_nothing(lamp: Lamp, door: Door) -> None:
    lamp.reports = False
    await lamp.line.say(lamp.topic, lamp.shown(), retain=True)
    await lamp.hand(state="ON")
    assert ended(await told(door, "turn_off")) == "confirmed"
    assert lamp.sets == [{"state": "OFF"}]


@pytest.mark.usefixtures("impatient")
async def test_the_hub_answers_from_memory_that_the_lamp_is_off_already(lamp: Lamp, door: Door) -> None:
    lamp.seen = True
    await asked(door)  # the clock of the bridge is known now
    lamp.remembers, lamp.reports = True, False
    await eventually(lambda: now_ms() - lamp._heard_at > 300)
    done = await told(door, "turn_off")
    assert lamp.sets == [{"state": "OFF"}], "sent, though the bridge knew better"
    assert ended(done) == "unconfirmed"
    assert done["freshness"]["verified"] is False


@pytest.mark.usefixtures("impatient")
async def test_success_reported_for_an_unavailable_device(lamp: Lamp, door: Door) -> None:
    lamp.answers = lamp.obeys = False
    await lamp.line.say(f"{lamp.topic}/availability", {"state": "offline"}, retain=True)
    done = await told(door, "turn_on")
    assert ended(done) == "device_unreachable"
    assert LAMP in done["error"]["message"]
    assert lamp.sets == []


@pytest.mark.usefixtures("impatient")
async def test_a_lamp_that_dies_between_the_look_and_the_act_is_no_success(lamp: Lamp, door: Door) -> None:
    def dies(wanted: Any) -> Any:
        lamp.answers = lamp.obeys = False
        return lamp._told(wanted)

    lamp.line.on(f"{lamp.topic}/set", dies)
    assert ended(await told(door, "turn_on")) == "unconfirmed"


async def test_the_same_command_executed_twice(lamp: Lamp, door: Door) -> None:
    error = {"level": "error", "message": f"Publish 'set' 'state' to '{lamp.name}' failed: 'Error: (timeout)'"}
    lamp.optimistic = False
    lamp.line.on(f"{lamp.topic}/set", lambda wanted: [*lamp._told(wanted), (f"{BASE}/bridge/logging", error)])
    assert ended(await told(door, "turn_on")) == "confirmed", "it had been done, whatever the bridge says"
    assert ended(await told(door, "turn_on")) == "already_done"
    assert lamp.sets == [{"state": "ON"}]


async def test_timestamps_that_do_not_move_so_that_a_dead_sensor_looks_alive(
    redis_url: str, mqtt_url: str, tmp_path: Path
) -> None:
    async with (
        lamp_on(mqtt_url, access=1) as sensor,
        served(redis_url, mqtt_url, tmp_path, DeviceQuery.definition) as door,
    ):
        entity, sensor.seen = "sensor.kitchen_lamp", True
        async with devices_on(mqtt_url) as devices:
            assert not await _on(devices, entity)
            await sensor.hand(state="ON")
            await eventually(lambda: _on(devices, entity))
            first = await devices.observe(entity, deadline=soon())
            await eventually(lambda: now_ms() - first.observed_at > 100)
            await sensor.line.say(sensor.topic, sensor.shown())  # the bridge says it again, with the same time
            await sensor.line.settled()
            again = await devices.observe(entity, deadline=soon())
            assert again.observed_at <= first.observed_at

        async def heard() -> Document | None:
            await sensor.line.say(sensor.topic, sensor.shown())  # the worker may have begun to listen only now
            done = await asked(door, entity)
            return done if done["freshness"] is not None else None

        done = await eventually(heard, what="the worker has heard of it")
        assert done is not None
        assert ended(done) == "device_unreachable"
        assert parse_rfc3339(done["freshness"]["observed_at"]) <= now_ms() - 100


async def _on(devices: MqttDevices, entity: str) -> bool:
    try:
        reading = await devices.observe(entity, deadline=soon())
    except DeviceUnreachable:
        return False  # it has said nothing yet
    return bool(reading.value.get("power") == "on")


async def test_two_satellites_hear_one_utterance(lamp: Lamp, door: Door) -> None:
    both = [await door.send("turn_on", entity=LAMP) for _ in range(2)]
    ends = [ended(await door.end(one)) for one in both]
    assert "confirmed" in ends or "already_done" in ends
    assert set(ends) <= {"confirmed", "already_done", "superseded"}
    assert lamp.sets == [{"state": "ON"}]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("times", [1, 2])
async def test_a_state_published_as_changed_although_the_set_timed_out(lamp: Lamp, door: Door, times: int) -> None:
    lamp.obeys, lamp.seen = False, times > 1  # without a time of its own nobody can tell a late echo from an answer
    lamp.line.on(f"{lamp.topic}/set", lambda wanted: lamp._told(wanted) * times)
    done = await told(door, "turn_on")
    assert ended(done) == "unconfirmed"
    assert done["result"]["value"]["power"] == "off"
    assert lamp.line.on_topic(lamp.topic)[0].json["state"] == "OFF", "before the act"
    assert "ON" in [one.json["state"] for one in lamp.line.on_topic(lamp.topic)], "the bridge said so, and lied"
    assert ended(await told(door, "turn_off")) == "already_done", "nor is it a person's doing"


async def test_an_old_state_arriving_between_the_command_and_the_new_state(lamp: Lamp, door: Door) -> None:
    def told_late(wanted: Any) -> Any:
        old, echo = (lamp.topic, lamp.shown()), lamp._told(wanted)
        return [*echo, old, old]

    lamp.line.on(f"{lamp.topic}/set", told_late)
    done = await told(door, "turn_on")
    assert ended(done) == "confirmed"
    assert done["result"]["value"]["power"] == "on"


async def test_an_old_state_taken_for_the_answer_is_asked_again(lamp: Lamp, door: Door) -> None:
    await told(door, "turn_on")
    off = lamp.shown(state="OFF")
    late = [off]

    def answer(_: Any) -> Any:
        return [(lamp.topic, late.pop() if late else lamp.shown())]

    lamp.line.on(f"{lamp.topic}/get", answer)
    assert ended(await told(door, "turn_on")) == "already_done"
    assert len(lamp.sets) == 1


async def test_one_unreachable_plug_delays_all_others_by_seconds(
    lamp: Lamp, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_control, "LOOK_S", 60.0)  # as long as the dead one is waited for at first
    dead, others = Lamp(lamp.line, "dead"), [Lamp(lamp.line, f"lamp{number}") for number in range(5)]
    dead.answers = False
    await lamp.begin(dead, *others)
    await asked(door, others[-1].entity)
    slow = await door.send("turn_on", entity=dead.entity)
    tasks = [await door.send("turn_on", entity=one.entity) for one in others]
    assert [ended(await door.end(one)) for one in tasks] == ["confirmed"] * 5
    assert await door.unfinished(slow)
    dead.answers = True
    await dead.hand(state="OFF")
    assert ended(await door.end(slow)) == "confirmed", "and it was waited for all the while"


async def test_a_poll_that_restores_the_old_state(lamp: Lamp, door: Door) -> None:
    lamp.seen = True
    old = (await asked(door))["result"]["value"], lamp.shown()
    assert old[0]["power"] == "off"
    assert ended(await told(door, "turn_on")) == "confirmed"
    await lamp.line.say(lamp.topic, old[1])  # late, and told with the time of then
    await lamp.line.settled()
    assert (await asked(door))["result"]["value"]["power"] == "on"
    assert ended(await told(door, "turn_on")) == "already_done"
    assert len(lamp.sets) == 1
    assert not [one for one in lamp.line.on_topic(f"dualloop/changes/{lamp.topic}") if '"hand"' in one.text]


async def test_a_retained_command_replayed_after_a_reconnect_undoes_a_manual_change(
    lamp: Lamp, door: Door, mqtt_url: str
) -> None:
    assert ended(await told(door, "turn_on")) == "confirmed"
    await lamp.hand(state="OFF")
    async with wire(mqtt_url) as returned:
        await returned.settled()
        assert not [one for one in returned.heard if one.retained and one.topic.endswith(("/set", "/get"))]
        assert not [one for one in returned.heard if one.retained and one.topic.startswith("dualloop/acts")]
    async with devices_on(mqtt_url) as another_worker:
        reading = await another_worker.observe(LAMP, deadline=soon())
    assert (reading.value["power"], lamp.state["state"], len(lamp.sets)) == ("off", "OFF", 1)


async def test_a_command_kept_for_a_device_that_was_away_is_obeyed_when_it_is_back(
    lamp: Lamp, door: Door, mqtt_url: str
) -> None:
    at = MqttUrl.parse(mqtt_url)

    def sleeper(*, forgets: bool = False) -> aiomqtt.Client:
        return aiomqtt.Client(at.host, at.port, identifier="sleeper", clean_session=forgets)

    async with sleeper() as device:
        await device.subscribe([(f"{lamp.topic}/{verb}", 1) for verb in ("set", "kept")])
    assert ended(await told(door, "turn_on")) == "confirmed"
    await lamp.line.say(f"{lamp.topic}/kept", "since")
    async with sleeper() as device:
        kept = await anext(aiter(device.messages))
    async with sleeper(forgets=True):
        pass
    assert kept.topic.value == f"{lamp.topic}/kept", "the broker keeps things for it, and no command was among them"


async def test_no_state_is_sent_if_nothing_changed_so_that_a_naive_verify_times_out(lamp: Lamp, door: Door) -> None:
    await lamp.hand(state="ON")
    lamp.optimistic = lamp.reports = False
    done = await told(door, "turn_on", insist=True)
    assert ended(done) == "confirmed"
    assert done["freshness"]["verified"] is True
    assert len(lamp.sets) == 1


async def test_entities_unavailable_after_a_broker_reload(
    redis_url: str, own_mosquitto: Broker, tmp_path: Path
) -> None:
    url = own_mosquitto.url
    async with served(redis_url, url, tmp_path, DeviceControl.definition) as door:
        async with lamp_on(url):
            assert ended(await told(door, "turn_on")) == "confirmed"
        own_mosquitto.restart()  # and it has forgotten all that it retained
        async with wire(url) as line:
            back = Lamp(line)  # the bridge is there again, and announces nothing
            back.state["state"] = "ON"
            for ending, script in (("set", back._told), ("get", back._asked)):
                line.on(f"{back.topic}/{ending}", script)
            assert ended(await told(door, "turn_off")) == "confirmed"
            assert back.sets == [{"state": "OFF"}]
