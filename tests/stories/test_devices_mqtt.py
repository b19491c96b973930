"""The MQTT adapter against a real broker, and devices that behave as they are told to."""

import asyncio
import contextlib
import time

import pytest

from backend_loop.devices.judge import Decision, Verdict, decide, judge, overridden
from backend_loop.devices.mqtt import device as adapter
from backend_loop.devices.mqtt.device import MqttDevices
from backend_loop.devices.protocol import (
    ActUnknown,
    Command,
    DeviceRefused,
    DeviceUnreachable,
    OldFence,
    Reading,
    UnknownEntity,
)
from shared.clock import now_ms, parse_rfc3339
from tests.mqtt import wire
from tests.mqtt_lamp import Lamp, devices_on, known, lamp_on, soon
from tests.waiting import eventually

LAMP = "light.kitchen_lamp"
ON = Command(entity=LAMP, action="turn_on")


async def test_observe_act_and_the_proof_of_it(lamp: Lamp, devices: MqttDevices) -> None:
    looked_at = now_ms()
    before = await devices.observe(LAMP, deadline=soon())
    assert before.value == {"power": "off", "brightness": 80}
    assert (before.source, before.changes) == ("mqtt", {})
    assert decide(before, ON, looked_at=looked_at) is Decision.ACT
    acted_at = now_ms()
    await devices.act(ON, key="k", fence=1, deadline=soon())
    after = await devices.observe(LAMP, deadline=soon())
    assert judge(before, after, ON, acted_at=acted_at) is Verdict.CONFIRMED
    assert decide(after, ON, looked_at=acted_at) is Decision.ALREADY_DONE
    assert after.changes["power"].by == "command"
    assert after.version != before.version
    assert lamp.sets == [{"state": "ON"}]


async def test_an_act_is_announced_before_it_is_sent_and_neither_is_retained(lamp: Lamp, devices: MqttDevices) -> None:
    await devices.act(ON, key="k", fence=3, deadline=soon(), traceparent="00-1")
    await lamp.line.settled()
    said = [one for one in lamp.line.heard if one.topic.startswith("dualloop/acts/") or one.topic.endswith("/set")]
    assert [one.topic for one in said] == [f"dualloop/acts/{lamp.topic}", f"{lamp.topic}/set"]
    told = said[0].json
    assert (told["key"], told["fence"], told["values"], told["traceparent"]) == ("k", 3, {"power": "on"}, "00-1")
    async with wire(lamp.line.url) as late:
        await late.settled()
        assert [one.topic for one in late.heard if one.retained and "changes" not in one.topic] == [
            "zigbee2mqtt/bridge/devices"
        ]


async def test_a_lie_is_no_proof_and_nobody_else_is_blamed_for_it(lamp: Lamp, devices: MqttDevices) -> None:
    lamp.obeys = False
    before, acted_at = await devices.observe(LAMP, deadline=soon()), now_ms()
    await devices.act(ON, key="k", fence=1, deadline=soon())
    after = await devices.observe(LAMP, deadline=soon())
    assert after.value["power"] == "off"
    assert judge(before, after, ON, acted_at=acted_at) is Verdict.UNCONFIRMED
    assert not after.changes


async def test_a_lamp_that_says_nothing_to_an_act_is_looked_at_all_the_same(lamp: Lamp, devices: MqttDevices) -> None:
    lamp.optimistic = False
    before, acted_at = await devices.observe(LAMP, deadline=soon()), now_ms()
    await devices.act(ON, key="k", fence=1, deadline=soon())
    assert now_ms() - acted_at >= 1000 * adapter.WORD_S
    after = await devices.observe(LAMP, deadline=soon())
    assert judge(before, after, ON, acted_at=acted_at) is Verdict.CONFIRMED


async def test_a_hand_before_the_act_is_seen_and_one_after_it_contradicts(lamp: Lamp, devices: MqttDevices) -> None:
    asked_at, before = now_ms(), await devices.observe(LAMP, deadline=soon())
    await lamp.hand(state="ON")
    await lamp.hand(state="OFF")
    await eventually(lambda: _version(devices, before.version))
    now = await devices.observe(LAMP, deadline=soon())
    assert overridden(before, now, ON, asked_at=asked_at)
    acted_at = now_ms()
    await devices.act(ON, key="forced", fence=1, deadline=soon())
    await devices.observe(LAMP, deadline=soon())
    await lamp.hand(state="OFF")
    after = await devices.observe(LAMP, deadline=soon())
    assert judge(now, after, ON, acted_at=acted_at) is Verdict.CONTRADICTED


async def _version(devices: MqttDevices, before: str) -> bool:
    return (await devices.observe(LAMP, deadline=soon())).version != before


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("refused", DeviceRefused),
        ("key_reused", DeviceRefused),
        ("old_fence", OldFence),
        ("offline", DeviceUnreachable),
        ("dizzy", ActUnknown),
        ("done", None),
    ],
)
async def test_what_one_of_our_own_kind_answers_is_said(
    lamp: Lamp, devices: MqttDevices, code: str, fault: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "WORD_S", 60.0)
    lamp.optimistic = False
    answers = f"dualloop/answers/{lamp.topic}"
    lamp.line.on(f"{lamp.topic}/set", lambda _: [(answers, {"key": "k", "code": code, "detail": "because"})])
    began = time.monotonic()
    if fault is None:
        await devices.act(ON, key="k", fence=1, deadline=soon(120))
    else:
        with pytest.raises(fault, match=f"{LAMP} .*because"):
            await devices.act(ON, key="k", fence=1, deadline=soon(120))
    assert time.monotonic() - began < adapter.WORD_S


async def test_an_error_of_the_bridge_that_names_the_lamp_is_its_refusal(lamp: Lamp, devices: MqttDevices) -> None:
    lamp.optimistic = False
    error = {"level": "error", "message": f"Publish 'set' 'state' to '{lamp.name}' failed: 'Error: No converter'"}
    lamp.line.on(f"{lamp.topic}/set", lambda _: [("zigbee2mqtt/bridge/logging", error)])
    with pytest.raises(DeviceRefused, match=f"{LAMP} refused: Error: No converter"):
        await devices.act(ON, key="k", fence=1, deadline=soon())


async def test_more_than_it_can_and_nobody_are_refused_before_anything_is_sent(
    lamp: Lamp, devices: MqttDevices
) -> None:
    for command, sentence in [
        (Command(entity=LAMP, action="set_position", value=5), f"{LAMP} has no position"),
        (Command(entity=LAMP, action="fly"), "is no action"),
    ]:
        with pytest.raises(DeviceRefused, match=sentence):
            await devices.act(command, key="k", fence=1, deadline=soon())
    with pytest.raises(UnknownEntity, match=r"there is no light\.nowhere in this home; .*: dualloop home ls$"):
        await devices.observe("light.nowhere", deadline=soon())
    await lamp.line.settled()
    assert not lamp.line.on_topic("dualloop/acts/#")


async def test_an_old_holder_is_refused_by_whoever_has_heard_of_a_later_one(lamp: Lamp, mqtt_url: str) -> None:
    async with devices_on(mqtt_url) as one, devices_on(mqtt_url) as other:
        await one.observe(LAMP, deadline=soon())
        await other.observe(LAMP, deadline=soon())
        await one.act(ON, key="new", fence=9, deadline=soon())
        with pytest.raises(OldFence, match="fence 8 is older than 9"):
            await other.act(Command(entity=LAMP, action="turn_off"), key="old", fence=8, deadline=soon())
        assert lamp.state["state"] == "ON"


async def test_nothing_is_sent_once_the_time_for_it_is_over(
    lamp: Lamp, devices: MqttDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    await devices.observe(LAMP, deadline=soon())
    left, publish, asleep = adapter._left, devices._hub.publish, False

    async def sleeps(topic: str, payload: str, *, qos: int) -> None:
        nonlocal asleep
        await publish(topic, payload, qos=qos)
        asleep = topic.startswith("dualloop/acts/")  # a process that is frozen wakes up with the acknowledgement there

    monkeypatch.setattr(devices._hub, "publish", sleeps)
    monkeypatch.setattr(adapter, "_left", lambda deadline: 0.0 if asleep else left(deadline))
    with pytest.raises(DeviceUnreachable, match=f"{LAMP} was not told: the time for it was over"):
        await devices.act(ON, key="k", fence=1, deadline=soon())
    await lamp.line.settled()
    assert lamp.line.on_topic("dualloop/acts/#")
    assert not lamp.sets


async def test_each_worker_knows_whose_hand_it_was_also_one_that_comes_later(lamp: Lamp, mqtt_url: str) -> None:
    async with devices_on(mqtt_url) as one, devices_on(mqtt_url) as other:
        for each in (one, other):
            await each.observe(LAMP, deadline=soon())
        await one.act(ON, key="k", fence=1, deadline=soon())
        ours = await one.observe(LAMP, deadline=soon())
        theirs = await other.observe(LAMP, deadline=soon())
        assert ours.changes["power"].by == theirs.changes["power"].by == "command"
        assert (ours.version, ours.changes["power"].version) == (theirs.version, theirs.changes["power"].version)
        await lamp.line.hear(f"dualloop/changes/{lamp.topic}")
    async with devices_on(mqtt_url) as late:
        reading = await late.observe(LAMP, deadline=soon())
        assert (reading.version, reading.changes["power"].version) == (ours.version, ours.changes["power"].version)


async def test_a_dead_lamp_is_unreachable_and_waited_for_less_the_next_time(lamp: Lamp, devices: MqttDevices) -> None:
    await devices.observe(LAMP, deadline=soon())
    lamp.answers = False
    for patience, least, most in ((0.6, 0.6, 60), (60, adapter.SHORT_S, 30)):
        began = time.monotonic()
        with pytest.raises(DeviceUnreachable, match=f"{LAMP} gave no answer"):
            await devices.observe(LAMP, deadline=soon(patience))
        assert least <= time.monotonic() - began < most
    lamp.answers = True
    reading = await eventually(lambda: _told(devices))  # who answers later than that is given his time again
    assert reading is not None
    assert reading.value["power"] == "off"


async def test_a_lamp_that_is_said_to_be_away_is_asked_all_the_same(
    lamp: Lamp, devices: MqttDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lamp.line.say(f"{lamp.topic}/availability", {"state": "offline"}, retain=True)
    with monkeypatch.context() as slow:
        slow.setattr(adapter, "SHORT_S", 20.0)
        assert (await devices.observe(LAMP, deadline=soon())).value["power"] == "off"
    lamp.answers = False
    began = time.monotonic()
    with pytest.raises(DeviceUnreachable, match=f"{LAMP} is offline, says {lamp.topic}/availability"):
        await devices.observe(LAMP, deadline=soon(60))
    assert time.monotonic() - began < 30


async def test_what_cannot_be_asked_shows_its_newest_report_with_its_age(
    mqtt_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "WORD_S", 20.0)
    async with lamp_on(mqtt_url, access=3) as lamp, wire(mqtt_url) as person:
        await person.say(lamp.topic, lamp.shown(), retain=True)
        async with devices_on(mqtt_url) as devices:
            await devices.observe(LAMP, deadline=soon())
            began = now_ms()
            kept = await devices.observe(LAMP, deadline=soon())
            assert kept.value["power"] == "off"
            assert kept.observed_at < began, "history, and no look"
            before, acted_at = kept, now_ms()
            await devices.act(ON, key="k", fence=1, deadline=soon())
            after = await devices.observe(LAMP, deadline=soon())
            assert judge(before, after, ON, acted_at=acted_at) is Verdict.CONFIRMED
            assert after.changes["power"].by == "command"
            again = await devices.observe(LAMP, deadline=soon())
            assert again.observed_at == after.observed_at >= began, "it does not get newer by being looked at"
        assert lamp.asked() == 0


async def test_names_are_those_of_the_inventory_and_else_of_the_devices(lamp: Lamp, mqtt_url: str) -> None:
    other = Lamp(lamp.line, "hall")
    await lamp.begin(other)
    async with devices_on(mqtt_url, lambda: {lamp.topic: "light.over_the_stove"}) as devices:
        await devices.observe("light.over_the_stove", deadline=soon())
        assert {entity: one.wire for entity, one in known(devices).items()} == {
            "light.over_the_stove": "zigbee2mqtt/kitchen/lamp",
            "light.hall": "zigbee2mqtt/hall",
        }
        with pytest.raises(UnknownEntity):
            await devices.observe(LAMP, deadline=soon())


async def test_who_is_in_the_inventory_and_not_announced_is_unreachable_for_now(lamp: Lamp, mqtt_url: str) -> None:
    async with devices_on(mqtt_url, lambda: {"zigbee2mqtt/hall": "light.stairs"}) as devices:
        with pytest.raises(DeviceUnreachable, match=r"light\.stairs has not been announced"):
            await devices.observe("light.stairs", deadline=soon())
        await lamp.begin(Lamp(lamp.line, "hall"))
        await eventually(lambda: "light.stairs" in known(devices))
        assert (await devices.observe("light.stairs", deadline=soon())).value["power"] == "off"


async def test_who_is_announced_later_is_heard(lamp: Lamp, devices: MqttDevices) -> None:
    await devices.observe(LAMP, deadline=soon())
    hall = Lamp(lamp.line, "hall")
    await lamp.begin(hall)
    await eventually(lambda: "light.hall" in known(devices))
    assert (await devices.observe("light.hall", deadline=soon())).value["power"] == "off"


async def test_an_empty_list_takes_nobody_away_who_answers(
    lamp: Lamp, devices: MqttDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "SHORT_S", 20.0)
    before = await devices.observe(LAMP, deadline=soon())
    await lamp.line.say("zigbee2mqtt/bridge/devices", [], retain=True)
    await eventually(lambda: not known(devices))
    assert (await devices.observe(LAMP, deadline=soon())).version == before.version
    await devices.act(ON, key="k", fence=1, deadline=soon())
    assert (await devices.observe(LAMP, deadline=soon())).value["power"] == "on"
    await lamp.begin()
    await eventually(lambda: LAMP in known(devices))
    assert (await devices.observe(LAMP, deadline=soon())).changes["power"].by == "command"


async def test_of_who_is_announced_no_more_and_does_not_answer_it_is_said_since_when(
    lamp: Lamp, devices: MqttDevices
) -> None:
    await devices.observe(LAMP, deadline=soon())
    since, hall = now_ms(), Lamp(lamp.line, "hall")
    await hall.begin()
    await eventually(lambda: [*known(devices)] == ["light.hall"])
    lamp.answers = False
    with pytest.raises(DeviceUnreachable, match=r"has not been announced .* since .*, and does not") as gone:
        await devices.observe(LAMP, deadline=soon(600))
    told = str(gone.value).partition(" since ")[2].partition(",")[0]
    assert since <= parse_rfc3339(told) <= now_ms()
    await hall.hand(state="ON")
    await hall.begin()  # once more without it: that is no other moment
    with pytest.raises(DeviceUnreachable, match=told):
        await devices.observe(LAMP, deadline=soon(600))


async def test_who_is_there_has_the_name_and_not_who_had_it_before(lamp: Lamp, devices: MqttDevices) -> None:
    await devices.observe(LAMP, deadline=soon())
    renamed = Lamp(lamp.line, "kitchen lamp")
    renamed.state["state"] = "ON"
    assert renamed.entity == "light.kitchen lamp"
    await renamed.begin()
    await eventually(lambda: [one.wire for one in known(devices).values()] == [renamed.topic])
    assert (await devices.observe(LAMP, deadline=soon())).value["power"] == "on"


async def test_a_sensor_that_is_announced_no_more_shows_what_it_has_said_since(mqtt_url: str) -> None:
    async with lamp_on(mqtt_url, access=3) as lamp, devices_on(mqtt_url) as devices:
        await eventually(lambda: LAMP in known(devices))
        await lamp.hand(state="ON")
        await lamp.line.say("zigbee2mqtt/bridge/devices", [], retain=True)
        await eventually(lambda: not known(devices))
        with pytest.raises(DeviceUnreachable, match="has not been announced to the MQTT broker since"):
            await devices.observe(LAMP, deadline=soon())
        since = now_ms()
        await lamp.hand(state="OFF")
        reading = await eventually(lambda: _told(devices))
        assert reading is not None
        assert reading.value["power"] == "off"
        assert reading.observed_at >= since


async def _told(devices: MqttDevices) -> Reading | None:
    with contextlib.suppress(DeviceUnreachable):
        return await devices.observe(LAMP, deadline=soon())
    return None


async def test_messages_that_are_no_text_or_no_sense_cost_nothing(lamp: Lamp, devices: MqttDevices) -> None:
    await devices.observe(LAMP, deadline=soon())
    for payload in (b"\xff\xfe", "[" * 5000, '{"state": {"a": NaN}}', "x" * 100_000, None):
        for topic in (
            lamp.topic,
            f"dualloop/acts/{lamp.topic}",
            f"dualloop/changes/{lamp.topic}",
            "zigbee2mqtt/bridge/devices",
        ):
            await lamp.line.say(topic, payload)
    assert (await devices.observe(LAMP, deadline=soon())).value["power"] == "off"


async def test_many_are_asked_at_once_and_each_gets_its_own_answer(lamp: Lamp, devices: MqttDevices) -> None:
    lamps = [Lamp(lamp.line, f"lamp{number}") for number in range(100)]
    for number, one in enumerate(lamps):
        one.state["brightness"] = number + 1
    await lamp.begin(*lamps)
    await eventually(lambda: len(known(devices)) == 101)
    readings = await asyncio.gather(*(devices.observe(one.entity, deadline=soon()) for one in lamps))
    assert [reading.value["brightness"] for reading in readings] == [
        max(1, round(n * 100 / 254)) for n in range(1, 101)
    ]
