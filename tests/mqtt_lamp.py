"""A lamp behind a Zigbee2MQTT bridge, as well or as badly behaved as a test wants it, on a real broker."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from backend_loop.devices.configured import kept
from backend_loop.devices.mqtt.device import Bindings, MqttDevices, _unbound
from backend_loop.devices.mqtt.dialects.described import Described
from backend_loop.devices.mqtt.hub import Hub
from backend_loop.mission_type import MissionType
from backend_loop.worker import LoopWorker
from shared.clock import now_ms, rfc3339
from shared.mqtt import MqttUrl
from shared.settings import Settings
from tests.device_commands import Door, opened_door
from tests.mqtt import Said, Wire, wire

BASE = "zigbee2mqtt"


def exposes(access: int = 7) -> list[dict[str, Any]]:
    """What a dimmable lamp can be told and asked."""
    state = {"type": "binary", "name": "state", "property": "state", "value_on": "ON", "value_off": "OFF"}
    level = {"type": "numeric", "name": "brightness", "property": "brightness", "value_min": 0, "value_max": 254}
    return [{"type": "light", "features": [state | {"access": access}, level | {"access": access}]}]


class Lamp:
    """The lamp, its bridge and its connection.

    Attributes:
        optimistic: the bridge publishes what is wanted before the lamp has obeyed.
        obeys: the lamp does what it is told.
        answers: it answers when it is asked; False: it is dead.
        reports: it says so when a hand switches it.
        seen: the bridge tells when it heard of it last.
        ahead_ms: so far the bridge's clock is ahead of ours.
        remembers: the bridge answers from what it knew, without asking the lamp.
    """

    def __init__(self, line: Wire, name: str = "kitchen/lamp", access: int = 7) -> None:
        self.line, self.name, self.access = line, name, access
        self.topic = f"{BASE}/{name}"
        self.state: dict[str, Any] = {"state": "OFF", "brightness": 203}
        self.optimistic = self.obeys = self.answers = self.reports = True
        self.seen = self.remembers = False
        self.ahead_ms = 0
        self._heard_at = now_ms()
        self.sets: list[dict[str, Any]] = []
        """What it was told, in order."""

    @property
    def entity(self) -> str:
        return f"light.{self.name.replace('/', '_')}"

    def shown(self, **state: Any) -> dict[str, Any]:
        """As the bridge publishes it."""
        told = {**self.state, "linkquality": 120, **state}
        return told | ({"last_seen": rfc3339(self._heard_at + self.ahead_ms)} if self.seen else {})

    def described(self) -> dict[str, Any]:
        definition = {"model": "LED1836G9", "vendor": "IKEA", "exposes": exposes(self.access)}
        return {"ieee_address": "0x1", "type": "Router", "friendly_name": self.name, "definition": definition}

    async def begin(self, *others: "Lamp") -> None:
        """Be there, and let the bridge list all of them."""
        for lamp in (self, *others):
            lamp.line.on(f"{lamp.topic}/set", lamp._told)
            lamp.line.on(f"{lamp.topic}/get", lamp._asked)
        listed = [lamp.described() for lamp in (self, *others)]
        await self.line.say(f"{BASE}/bridge/devices", listed, retain=True)

    async def hand(self, **state: Any) -> None:
        """A person switches it."""
        self.state |= state
        if self.reports:
            self._heard_at = now_ms()
            await self.line.say(self.topic, self.shown())

    def _told(self, wanted: dict[str, Any]) -> list[Said]:
        self.sets.append(wanted)
        before = dict(self.state)
        if self.obeys:
            self.state |= wanted
        if not self.optimistic:
            return []
        told = self.shown(**{**before, **wanted})  # of the bridge's own making: the lamp has not been heard
        return [(self.topic, told)]

    def _asked(self, _: Any) -> list[Said]:
        if not self.answers:
            return []
        if not self.remembers:
            self._heard_at = now_ms()
        return [(self.topic, self.shown())]

    def asked(self) -> int:
        """How often it was asked."""
        return len(self.line.on_topic(f"{self.topic}/get"))


@contextlib.asynccontextmanager
async def lamp_on(url: str, **more: Any) -> AsyncIterator[Lamp]:
    """A lamp on this broker."""
    async with wire(url) as line:
        lamp = Lamp(line, **more)
        await lamp.begin()
        yield lamp


@contextlib.asynccontextmanager
async def devices_on(url: str, bindings: Bindings = _unbound) -> AsyncIterator[MqttDevices]:
    """The adapter, as a worker runs it."""
    async with kept(MqttDevices(Hub(MqttUrl.parse(url), [BASE], "homeassistant"), bindings)) as devices:
        assert isinstance(devices, MqttDevices)
        yield devices


def known(devices: MqttDevices) -> dict[str, Described]:
    """Who is announced to it now, by entity."""
    lines = devices._hub.lines
    named = {entity: lines[wire] for entity, wire in devices._named().items() if wire in lines}
    return {entity: line.described for entity, line in named.items() if line.gone_at is None}


@contextlib.asynccontextmanager
async def served(
    redis_url: str, mqtt_url: str, folder: Path, *types: MissionType, **settings: Any
) -> AsyncIterator[Door]:
    """A door, with a worker of these types behind it that goes to devices on this broker."""
    chosen = Settings(redis_url=redis_url, state_dir=folder, mqtt_url=SecretStr(mqtt_url), _env_file=None, **settings)
    known = {definition.kind: definition for definition in types}
    devices = MqttDevices.of(chosen)
    assert devices is not None
    async with opened_door(redis_url, None) as door:
        worker = LoopWorker(known, chosen, redis_url, device=devices, handle_signals=False)
        worker.loops.add(devices.loop)
        running = asyncio.create_task(worker.main())
        try:
            yield door
        finally:
            worker.stop()
            await running
            await worker.close()
            await devices.close()


def soon(seconds: float = 30.0) -> float:
    """The moment in so many seconds, as devices take a deadline."""
    return time.monotonic() + seconds


@pytest.fixture
async def lamp(mqtt_url: str) -> AsyncIterator[Lamp]:
    """One on the session's broker."""
    async with lamp_on(mqtt_url) as lamp:
        yield lamp


@pytest.fixture
async def devices(mqtt_url: str, lamp: Lamp) -> AsyncIterator[MqttDevices]:  # noqa: ARG001  it is announced before
    """The adapter, on the same broker."""
    async with devices_on(mqtt_url) as devices:
        yield devices
