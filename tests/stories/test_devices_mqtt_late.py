"""What was under way to us when a device was asked is no answer, though the device tells no time of its own."""

import asyncio
import getpass
from pathlib import Path
from typing import Any

import pytest

from backend_loop.devices.mqtt import hub
from backend_loop.devices.mqtt.device import MqttDevices
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
