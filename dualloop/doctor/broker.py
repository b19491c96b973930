"""What the doctor finds at the MQTT broker: whether it lets in, how fast it is, and which devices it tells of."""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import aiomqtt
from pydantic_core import from_json

from backend_loop.devices.mqtt.book import Book, entities
from backend_loop.devices.mqtt.dialects import tasmota
from dualloop.address import running_broker
from dualloop.doctor.finding import Finding, fail, ok, warn
from shared.home import EMPTY, Inventory, InventoryError, read
from shared.logs import redact_url
from shared.mqtt import MqttUrl, MqttUrlError, connect, trouble
from shared.settings import Settings

ANSWER_S: Final = 3.0
SLOW_MS: Final = 30.0
"""A round trip that takes longer, on one machine or in one house, is held back by somebody."""

ROUNDS: Final = 3
MOST_NAMED: Final = 10
"""Devices that are named of those that the inventory does not know."""


def unnamed(book: Book, home: Inventory) -> str:
    """The first devices that are announced and that this home has no entry for, with their wire names; '': none."""
    known = {entry.entity for entry in home.devices}
    bound = entities(book.devices(), home.bindings())
    left = [f"{entity} ({wire})" for entity, wire in sorted(bound.items()) if entity not in known]
    more = [f"and {len(left) - MOST_NAMED} more"] if len(left) > MOST_NAMED else []
    return ", ".join([*left[:MOST_NAMED], *more])


def broker(settings: Settings, served: Inventory | None = None) -> Iterator[Finding]:
    """The broker of the devices; `served`: the inventory that all processes go by now, as far as it is known."""
    url = running_broker(settings.state_dir) if settings.mqtt_url is None else settings.mqtt_url.get_secret_value()
    if url is None:
        where = (
            "none is reached"
            if settings.home_url is None
            else f"they are reached by HTTP, at {redact_url(settings.home_url)}"
        )
        yield ok("mqtt", f"no broker of devices is named, and none runs on {settings.state_dir.absolute()}: {where}")
        return
    try:
        at = MqttUrl.parse(url)
    except MqttUrlError as error:
        yield fail("mqtt", str(error), "put DUALLOOP_MQTT_URL right")
        return
    try:
        yield from asyncio.run(_look(at, settings, served))
    except (aiomqtt.MqttError, OSError, TimeoutError) as error:
        why = trouble(error) if isinstance(error, aiomqtt.MqttError) else error
        yield fail("mqtt", f"{at} does not let us in: {why}", "start it, or set DUALLOOP_MQTT_URL and who may come in")


class _Census:
    """Counts the devices that messages announce, by dialect, and knows how they are called."""

    def __init__(self, settings: Settings) -> None:
        self._bridges = [f"{base}/bridge/devices" for base in settings.zigbee2mqtt_topic]
        self._prefix = settings.discovery_prefix
        self.topics = [*self._bridges, f"{tasmota.BASE}/discovery/+/+", f"{self._prefix}/#"]
        self.book = Book(settings.zigbee2mqtt_topic, settings.discovery_prefix)
        self._found = dict[str, set[str]]()

    def take(self, topic: str, payload: bytes) -> None:
        """See what is retained on a topic."""
        with suppress(UnicodeDecodeError):
            self.book.hear(topic, payload.decode())
        if topic in self._bridges:
            with suppress(ValueError):
                listed = from_json(payload)
                for one in listed if isinstance(listed, list) else ():
                    if isinstance(one, dict) and one.get("type") != "Coordinator":
                        self._found.setdefault("Zigbee2MQTT", set()).add(f"{topic}/{one.get('friendly_name')}")
        elif topic.endswith("/config"):
            kind = "Home Assistant" if topic.startswith(f"{self._prefix}/") else "Tasmota"
            self._found.setdefault(kind, set()).add(topic)

    def __str__(self) -> str:
        return ", ".join(f"{len(names)} by {kind}" for kind, names in self._found.items())


async def _look(at: MqttUrl, settings: Settings, served: Inventory | None) -> list[Finding]:
    census = _Census(settings)
    async with connect(at, wait_s=ANSWER_S) as client, asyncio.timeout(ANSWER_S):
        mark = f"dualloop/doctor/{os.getpid()}"
        await client.subscribe([(topic, 1) for topic in (*census.topics, mark)])
        took_ms = [await _round(client, mark, census) for _ in range(ROUNDS)]
    best = min(took_ms[1:])  # with the first one comes what is retained
    finding = ok("mqtt", f"{at} answers in {best:.1f} ms")
    if best > SLOW_MS:
        remedy = "let it send small packets at once: in mosquitto, set_tcp_nodelay true"
        finding = warn("mqtt", finding.detail, remedy)
    if not str(census):
        return [finding, warn("devices", "none has announced itself there", "see that their bridges are connected")]
    return [finding, ok("devices", f"announced there: {census}{missing(census.book, served, settings.home_path)}")]


def missing(book: Book, served: Inventory | None, file: Path) -> str:
    """Which announced devices the home does not have, for the end of a sentence.

    Where no inventory is served, by its file; one that is damaged says nothing of what was in it.
    """
    try:
        home = served or read(file.read_bytes())
    except FileNotFoundError:
        home = EMPTY
    except (OSError, InventoryError):
        return f"; which of them are in {file.name} nobody knows, as it cannot be read"
    left = unnamed(book, home)
    return f"; not in {file.name if served is None else 'the home'}: {left}" if left else ""


async def _round(client: aiomqtt.Client, mark: str, census: _Census) -> float:
    begun = time.monotonic()
    await client.publish(mark, b"", qos=1)
    async for message in client.messages:
        if message.topic.value == mark:
            break
        if isinstance(message.payload, bytes) and message.payload:
            census.take(message.topic.value, message.payload)
    return (time.monotonic() - begun) * 1000
