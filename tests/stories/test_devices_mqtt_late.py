"""What was under way to us when a device was asked is no answer, and who was overtaken on his way does not act."""

import asyncio
import getpass
from pathlib import Path
from typing import Any

import pytest

from backend_loop.devices.mqtt import hub
from backend_loop.devices.mqtt.device import MqttDevices
from backend_loop.devices.protocol import Command, OldFence
from shared.clock import now_ms
from tests.mqtt import running_mosquitto
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
    with running_mosquitto(acl_file=str(rules), user=getpass.getuser()) as broker:
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
