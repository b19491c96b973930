"""What was under way to us when a device was asked is no answer, and who was overtaken on his way does not act."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from backend_loop.devices.mqtt import hub
from backend_loop.devices.mqtt.device import MqttDevices
from backend_loop.devices.protocol import Command, OldFence
from shared.clock import now_ms
from tests.mqtt import running_mosquitto, wire
from tests.mqtt_lamp import BASE, Lamp, devices_on, lamp_on, soon
from tests.waiting import eventually

LAMP = "light.kitchen_lamp"


class Held:
    """What the broker sends to a process that is busy: it takes nothing in before `release`."""

    def __init__(self, devices: MqttDevices, monkeypatch: pytest.MonkeyPatch) -> None:
        self._take, self._messages = devices._hub._take, list[tuple[Any, Any]]()
        self._monkeypatch, self._hub = monkeypatch, devices._hub
        monkeypatch.setattr(self._hub, "_take", lambda *args, **more: self._messages.append((args, more)))

    def reports(self) -> int:
        """How many of the lamp have come so far."""
        return len([args for args, _ in self._messages if args[0] == f"{BASE}/kitchen/lamp"])

    async def release(self) -> None:
        """Take all in, one after the other, each with as long for its consequences as they need."""
        for args, more in self._messages:
            self._take(*args, **more)
            for _ in range(20):
                await asyncio.sleep(0)
        self._monkeypatch.undo()


async def test_a_report_that_was_under_way_when_it_was_asked_is_no_answer(
    lamp: Lamp, devices: MqttDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await devices.observe(LAMP, deadline=soon())).value["power"] == "off"
    held = Held(devices, monkeypatch)
    await lamp.line.say(lamp.topic, lamp.shown())  # off, as it was before the hand
    lamp.reports = False
    await lamp.hand(state="ON")
    looking = asyncio.create_task(devices.observe(LAMP, deadline=soon(20)))
    await eventually(lambda: held.reports() == 2)
    await held.release()
    assert (await looking).value["power"] == "on"


async def test_a_broker_that_keeps_us_from_hearing_ourselves_costs_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "SETTLE_S", 0.1)
    rules = tmp_path / "rules"
    rules.write_text(f"topic readwrite {BASE}/#\ntopic write dualloop/#\n")
    with running_mosquitto(acl_file=str(rules)) as broker:
        async with lamp_on(broker.url), devices_on(broker.url) as devices:
            reading = await devices.observe(LAMP, deadline=soon(60))
            assert not devices._hub._hears_itself
    assert reading.value["power"] == "off"


async def test_who_slept_between_announcing_and_acting_does_not_act_after_his_successor(
    lamp: Lamp, devices: MqttDevices, mqtt_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await devices.observe(LAMP, deadline=soon())
    line, publish = devices._hub.lines[lamp.topic], devices._hub.publish

    async def sleeps(topic: str, payload: str, *, qos: int) -> None:
        await publish(topic, payload, qos=qos)
        monkeypatch.undo()
        async with devices_on(mqtt_url) as successor:
            off = Command(entity=LAMP, action="turn_off")
            await successor.act(off, key="newer", fence=9, deadline=soon(60))
        await eventually(lambda: line.tracker.newest_fence(now_ms()) == 9)

    monkeypatch.setattr(devices._hub, "publish", sleeps)
    with pytest.raises(OldFence, match="fence 8 is older than 9"):
        await devices.act(Command(entity=LAMP, action="turn_on"), key="older", fence=8, deadline=soon(120))
    await lamp.line.settled()
    assert lamp.sets == [{"state": "OFF"}]


async def test_a_bridge_whose_clock_is_put_back_is_asked_twice_and_believed(lamp: Lamp, devices: MqttDevices) -> None:
    lamp.seen, lamp.ahead_ms = True, 3_600_000
    await devices.observe(LAMP, deadline=soon())
    lamp.ahead_ms, asked = 0, lamp.asked()
    began = now_ms()
    reading = await devices.observe(LAMP, deadline=soon(600))
    assert reading.value["power"] == "off"
    assert began <= reading.observed_at <= now_ms()
    assert lamp.asked() >= asked + 2
    asked = lamp.asked()
    await devices.observe(LAMP, deadline=soon(600))
    assert lamp.asked() == asked + 1, "its clock is known now"


async def test_what_a_broker_has_retained_is_as_old_as_it_says(mqtt_url: str) -> None:
    async with lamp_on(mqtt_url, access=3) as lamp, wire(mqtt_url) as person:
        then = now_ms() - 3 * 86_400_000
        for last_seen, least, most in ((then, then, then), (now_ms() + 86_400_000, now_ms() - 1, None)):
            await person.say(lamp.topic, {"state": "ON", "last_seen": last_seen}, retain=True)
            async with devices_on(mqtt_url) as devices:
                reading = await devices.observe(LAMP, deadline=soon())
            assert least <= reading.observed_at <= (most or now_ms())
