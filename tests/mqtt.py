"""A real mosquitto for every test that wants one, and a client of it that plays devices by a script.

async with wire(mqtt_url) as lamp:
    lamp.on("zigbee2mqtt/lamp/set", lambda asked: [("zigbee2mqtt/lamp", asked)])
    await lamp.say("zigbee2mqtt/lamp", {"state": "OFF"}, retain=True)
    await lamp.hear("zigbee2mqtt/lamp/set")
"""

import asyncio
import contextlib
import getpass
import json
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
from paho.mqtt.client import topic_matches_sub

from dualloop.lifeline import ends_with_parent
from shared.mqtt import connect
from tests.ports import unused_port
from tests.waiting import until

LOCAL = "127.0.0.1"
CONFIG = """
listener {port} 127.0.0.1
set_tcp_nodelay true
persistence false
max_queued_messages 0
log_type error
log_type warning
"""
SWEEP = "tests/sweep"

Payload = dict[str, Any] | list[Any] | str | bytes | None
Said = tuple[str, Payload] | tuple[str, Payload, bool]
"""Topic, payload, and whether the broker shall retain it."""


def mosquitto_program() -> str:
    """Where it is installed: Debian has it where only root looks."""
    program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
    assert program is not None, "these tests want a mosquitto: apt-get install mosquitto"
    return program


class Broker:
    """A mosquitto that a test may do anything to; one that is started again has forgotten what it retained."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.port = unused_port()
        self.url = f"mqtt://{LOCAL}:{self.port}"
        self._config = folder / "mosquitto.conf"
        # of root's it makes another user's process, which would not end with the tests where they are killed
        own = {"allow_anonymous": "true", "user": getpass.getuser(), **settings}
        lines = "".join(f"{name} {value}\n" for name, value in own.items())
        self._config.write_text(CONFIG.format(port=self.port) + lines)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.process = subprocess.Popen(
            [mosquitto_program(), "-c", self._config],
            preexec_fn=ends_with_parent(),  # noqa: PLW1509  fixtures run in the main thread
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        process = self.process
        until(lambda: process.poll() is not None or self._listens(), what="mosquitto listens")
        assert process.poll() is None, f"mosquitto exited with {process.returncode}"

    def stop(self) -> None:
        """Kill it: its clients lose their connections."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def restart(self) -> None:
        """Kill it and start it again, at the same port."""
        self.stop()
        self.start()

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((LOCAL, self.port), timeout=1):
            return True
        return False


@contextlib.contextmanager
def running_mosquitto(**settings: str) -> Iterator[Broker]:
    """One for this block, with further settings as its configuration has them."""
    folder = Path(tempfile.mkdtemp(prefix="dl-mqtt-"))
    broker = Broker(folder, **settings)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def mosquitto() -> Iterator[Broker]:
    """The session's broker; tests neither stop it nor rely on what it retains: see `mqtt_url`.

    Whoever keeps devices on a broker for a whole module starts one for it with `running_mosquitto` (20 ms).
    """
    with running_mosquitto() as broker:
        yield broker


@pytest.fixture
def mqtt_url(mosquitto: Broker) -> str:
    """URL of the session's broker, which retains nothing."""
    asyncio.run(_forget(mosquitto.url))
    return mosquitto.url


@pytest.fixture
def own_mosquitto() -> Iterator[Broker]:
    """A broker for this test alone, to stop and start again."""
    with running_mosquitto() as broker:
        yield broker


async def _forget(url: str) -> None:
    """Retained messages are sent on subscribing, before anything that is published later."""
    async with connect(url, wait_s=30) as client:
        await client.subscribe("#")
        await client.publish(SWEEP)
        async for message in client.messages:
            if message.topic.value == SWEEP:
                return
            if message.retain:
                await client.publish(message.topic.value, b"", qos=1, retain=True)


@dataclass(frozen=True)
class Heard:
    """One message that came."""

    topic: str
    text: str
    retained: bool

    @property
    def json(self) -> Any:
        return json.loads(self.text) if self.text else None


Script = Callable[[Any], Iterable[Said]]


class Wire:
    """A client that hears everything but what brokers say of themselves, and answers by its scripts."""

    def __init__(self, client: aiomqtt.Client, url: str) -> None:
        self._client, self.url = client, url
        self._scripts: dict[str, Script] = {}
        self._came = asyncio.Condition()
        self._read = 0
        self.heard: list[Heard] = []
        """All that came, in order."""

    async def say(self, topic: str, payload: Payload, *, retain: bool = False) -> None:
        """Publish it; returns once the broker has it."""
        await self._client.publish(topic, encoded(payload), qos=1, retain=retain)

    def on(self, topic: str, script: Script) -> None:
        """Answer each message on a topic (``+`` and ``#`` allowed) that is not retained.

        The script gets the payload, read as JSON if it is some, and gives what to say.
        """
        self._scripts[topic] = script

    def off(self, topic: str) -> None:
        """Answer there no more."""
        self._scripts.pop(topic, None)

    def on_topic(self, topic: str) -> list[Heard]:
        """What came there so far."""
        return [one for one in self.heard if topic_matches_sub(topic, one.topic)]

    async def hear(
        self, topic: str, where: Callable[[Heard], bool] = lambda _: True, *, within: float = 30.0, since: int = 0
    ) -> Heard:
        """The first message on a topic from number `since` on, which may yet be to come."""

        def found() -> Heard | None:
            fitting = (one for one in self.heard[since:] if topic_matches_sub(topic, one.topic) and where(one))
            return next(fitting, None)

        async with self._came:
            try:
                async with asyncio.timeout(within):
                    await self._came.wait_for(lambda: found() is not None)
            except TimeoutError:
                came = [(one.topic, one.text) for one in self.heard[since:]]
                raise AssertionError(f"nothing on {topic} within {within} s, but {came}") from None
        heard = found()
        assert heard is not None
        return heard

    async def settled(self) -> int:
        """All that was said before has come; how many messages that are."""
        mark = f"{SWEEP}/{id(self)}/{len(self.heard)}"
        await self.say(mark, None)
        await self.hear(mark)
        return len(self.heard)

    def drop(self) -> None:
        """Lose the connection without a word, so that the broker speaks the will."""
        connection = self._client._client.socket()
        assert isinstance(connection, socket.socket)
        connection.shutdown(socket.SHUT_RDWR)

    async def listen(self) -> None:
        """Take in what comes, for as long as the connection stands."""
        async for message in self._client.messages:
            raw = message.payload if isinstance(message.payload, bytes) else b""
            heard = Heard(message.topic.value, raw.decode(errors="replace"), message.retain)
            async with self._came:
                self.heard.append(heard)
                self._came.notify_all()
            if not heard.retained:
                for topic, script in list(self._scripts.items()):
                    if topic_matches_sub(topic, heard.topic):
                        await self._answer(script, heard)

    async def _answer(self, script: Script, heard: Heard) -> None:
        try:
            asked = heard.json
        except json.JSONDecodeError:
            asked = heard.text
        for said in script(asked):
            await self.say(said[0], said[1], retain=len(said) == 3 and said[2])


def encoded(payload: Payload) -> bytes:
    if payload is None:
        return b""
    if isinstance(payload, bytes):
        return payload
    return (payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)).encode()


@contextlib.asynccontextmanager
async def wire(url: str, *, will: Said | None = None) -> AsyncIterator[Wire]:
    """A connected client that hears everything."""
    testament = None if will is None else aiomqtt.Will(will[0], encoded(will[1]), 1, len(will) == 3 and will[2])
    with contextlib.suppress(aiomqtt.MqttError):  # one that was dropped, or whose broker ended, has nothing to leave
        async with connect(url, will=testament, wait_s=30) as client:
            await client.subscribe("#", qos=1)
            one = Wire(client, url)
            listening = asyncio.create_task(one.listen())
            try:
                yield one
            finally:
                listening.cancel()
                await asyncio.wait({listening})
