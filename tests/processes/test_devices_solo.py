"""A suspect that deals with devices behind a broker: its own process goes there by its own connection."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.mqtt_lamp import Lamp
from tests.processes.commands import Front
from tests.stories.stack import Stack, running
from tests.waiting import eventually

pytestmark = pytest.mark.long


@pytest.fixture
async def stack(redis_url: str, mqtt_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(redis_url, tmp_path, DUALLOOP_LEASE_S="1.5", DUALLOOP_MQTT_URL=mqtt_url) as stack:
        yield stack


def asked_again(lamp: Lamp) -> Callable[[], bool]:
    before = lamp.asked()
    return lambda: lamp.asked() > before


async def test_p8_a_suspect_looks_acts_and_verifies_over_mqtt(stack: Stack, front: Front, lamp: Lamp) -> None:
    lamp.answers = False  # so that its handler is under way when its worker is killed
    one = await front.send("device.control", payload={"entity": lamp.entity, "action": "turn_on"})
    worker = stack.workers[0]
    for _ in range(2):
        await eventually(asked_again(lamp), what="it is looked at")
        worker.kill()
        await worker.start()
    lamp.answers = True
    document = await front.result(one)
    assert (document["status"], document["result"]["outcome"]) == ("SUCCEEDED", "confirmed")
    assert document["freshness"]["source"] == "mqtt"
    assert '"event":"suspect"' in worker.tail(10**6)
