"""A worker killed in the middle of an act over MQTT: the next one looks first, and the lamp is told once."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.device_commands import opened_door
from tests.forge import Forked, forked
from tests.mqtt_lamp import Lamp

_RUN = "from backend_loop.main import run; from shared.settings import Settings; run(Settings(_env_file=None))"


def worker(redis_url: str, mqtt_url: str, folder: Path) -> Forked:
    own = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
    environment = own | {
        "DUALLOOP_REDIS_URL": redis_url,
        "DUALLOOP_MQTT_URL": mqtt_url,
        "DUALLOOP_STATE_DIR": str(folder),
        "DUALLOOP_LEASE_S": "2",
        "DUALLOOP_MISSIONS": "backend_loop.missions.device_control",
    }
    return forked(("-c", _RUN), env=environment)


@pytest.fixture
def workers(redis_url: str, mqtt_url: str, lamp: Lamp, tmp_path: Path) -> Iterator[list[Forked]]:  # noqa: ARG001  first
    """One of them, and those that a test adds."""
    started = [worker(redis_url, mqtt_url, tmp_path)]
    yield started
    for process in started:
        process.kill()
        process.wait()


async def test_a_worker_killed_while_it_acts(
    redis_url: str, mqtt_url: str, lamp: Lamp, workers: list[Forked], tmp_path: Path
) -> None:
    lamp.optimistic = False  # so that the worker waits for a word
    async with opened_door(redis_url, None) as door:
        task = await door.send("turn_on", entity=lamp.entity)
        await lamp.line.hear(f"{lamp.topic}/set", within=60)
        workers[0].kill()
        workers[0].wait()
        workers.append(worker(redis_url, mqtt_url, tmp_path))
        done = await door.end(task)
    assert (done["status"], done["result"]["outcome"]) == ("SUCCEEDED", "confirmed")
    assert done["result"]["before"]["power"] == "off"
    assert done["freshness"]["verified"] is True
    assert lamp.sets == [{"state": "ON"}]
