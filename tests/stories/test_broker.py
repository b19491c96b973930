"""The broker that comes along, and the home as a process on it."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import amqtt.broker  # type: ignore[import-untyped]
import pytest

from dualloop.address import running_broker
from dualloop.broker import _serve
from dualloop.doctor.broker import broker as examined
from dualloop.lifeline import ends_with_parent
from shared.settings import Settings
from tests.home import Home, running_home
from tests.mqtt import Wire, wire
from tests.waiting import eventually, until


@contextlib.contextmanager
def broker(folder: Path, **env: str) -> Iterator[subprocess.Popen[str]]:
    """`dualloop broker` on this state folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DUALLOOP_")}
    process = subprocess.Popen(
        (sys.executable, "-m", "dualloop", "broker"),
        env=inherited | {"DUALLOOP_STATE_DIR": str(folder)} | env,
        preexec_fn=ends_with_parent(),  # noqa: PLW1509  tests run in the main thread
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until(lambda: running_broker(folder) or process.poll() is not None, within=60, what="the broker listens")
        yield process
    finally:
        process.kill()
        process.communicate()


async def missed(bus: Wire, since: int) -> None:
    """Each bridge, and each device that has a connection of its own, is said to be gone."""
    for topic, word in (
        ("zigbee2mqtt/bridge/state", '{"state": "offline"}'),
        ("tele/oven/LWT", "Offline"),
        ("dualloop/home/availability", "offline"),
    ):
        await bus.hear(topic, lambda said, word=word: said.text == word, since=since)  # type: ignore[misc]  # bound now


@contextlib.asynccontextmanager
async def home_on(folder: Path, url: str) -> AsyncIterator[Home]:
    """Started and ended beside this loop: amqtt lets nobody go on while a subscriber, as the bus is, does not read."""
    running = running_home(folder, url)
    home = await asyncio.to_thread(running.__enter__)
    try:
        yield home
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)


async def test_a_home_lives_on_it_and_is_missed_when_it_is_killed_and_when_it_goes(tmp_path: Path) -> None:
    with broker(tmp_path) as process:
        url = running_broker(tmp_path)
        assert url is not None
        async with wire(url) as bus:
            async with home_on(tmp_path, url) as home:
                await bus.hear("zigbee2mqtt/bridge/devices")
                home.hand("light.hall", power="on")
                await bus.hear("zigbee2mqtt/hall/lamp", lambda said: said.json["state"] == "ON")
                since = await bus.settled()
                home.process.kill()
                await missed(bus, since)
            async with home_on(tmp_path, url) as home:
                async with wire(url) as late:
                    assert (await late.hear("tele/oven/LWT")).text == "Online"
                    assert (await late.hear("zigbee2mqtt/hall/lamp")).json["state"] == "ON"
                since = await bus.settled()
                assert await asyncio.to_thread(home.end) == 0
                await missed(bus, since)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert running_broker(tmp_path) is None


async def test_it_ends_also_where_the_library_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends, told = amqtt.broker.Broker.shutdown, list[amqtt.broker.Broker]()

    async def goes_on(broker: amqtt.broker.Broker) -> None:
        told.append(broker)
        await asyncio.Event().wait()

    monkeypatch.setattr("amqtt.broker.Broker.shutdown", goes_on)
    monkeypatch.setattr("dualloop.broker.END_S", 0.01)
    serving = asyncio.create_task(_serve(Settings(state_dir=tmp_path, _env_file=None)))
    await eventually(lambda: running_broker(tmp_path) or serving.done())
    os.kill(os.getpid(), signal.SIGTERM)
    await serving
    await ends(*told)


def test_a_port_that_is_taken_is_told_in_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with broker(tmp_path, DUALLOOP_MQTT_PORT=str(port)) as process:
            assert process.wait(60) == 1
            assert process.stderr is not None
            said = process.stderr.read()
    assert said.startswith(f"Port {port} of 127.0.0.1 is taken. Choose another one in DUALLOOP_MQTT_PORT")
    assert said.count("\n") == 1


def found(**settings: str) -> list[tuple[str, str, str]]:
    """What the doctor finds: level, name, and what it says."""
    told = examined(Settings(_env_file=None, **settings))  # type: ignore[arg-type]  # as the environment has them
    return [(one.level, one.name, f"{one.detail} → {one.remedy}") for one in told]


def test_the_doctor_counts_who_has_announced_himself(tmp_path: Path, mqtt_url: str) -> None:
    assert [row[:2] for row in found(mqtt_url=mqtt_url)] == [("ok", "mqtt"), ("warn", "devices")]
    with running_home(tmp_path, mqtt_url):
        named = mqtt_url.replace("//", "//somebody:hunter2@")
        (mqtt, devices) = found(mqtt_url=named, state_dir=str(tmp_path / "empty"))
    assert mqtt[:2] == ("ok", "mqtt")
    assert "hunter2" not in mqtt[2]
    for known in ("6 by Zigbee2MQTT", "6 by Home Assistant", "6 by Tasmota"):
        assert known in devices[2]
    assert "; not in home.json: climate." in devices[2]
    assert ", and 8 more" in devices[2]


@pytest.mark.parametrize(
    ("settings", "level", "words"),
    [
        ({}, "ok", "none is reached"),
        ({"home_url": "http://house:1"}, "ok", "by HTTP, at http://house:1"),
        ({"mqtt_url": "http://house"}, "fail", "write mqtt://"),
        ({"mqtt_url": "mqtt://127.0.0.1:1"}, "fail", "does not let us in"),
    ],
)
def test_the_doctor_says_what_there_is_instead(
    tmp_path: Path, settings: dict[str, str], level: str, words: str
) -> None:
    ((found_level, name, said),) = found(state_dir=str(tmp_path), **settings)
    assert (found_level, name) == (level, "mqtt")
    assert words in said
