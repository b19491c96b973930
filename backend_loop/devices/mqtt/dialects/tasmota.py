"""Tasmota: ``cmnd/TOPIC/…`` takes and asks, ``stat/TOPIC/…`` answers, ``tele/TOPIC/…`` tells by itself.

What a device is stands in the retained ``tasmota/discovery/MAC/config``, what it senses in ``…/sensors``. It tells its
own time in whole seconds of a zone that it does not name. https://tasmota.github.io/docs/MQTT/
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from backend_loop.devices.mqtt.dialects.described import (
    EXACT_MS,
    INSTANTS,
    ON_OFF,
    Described,
    Heard,
    Limits,
    Message,
    is_topic,
    mapping,
    number,
    word,
)

BASE: Final = "tasmota"
CONFIG: Final = re.compile(r"tasmota/discovery/(?P<mac>[0-9A-Fa-f]+)/(?P<part>config|sensors)")
RELAY, LIGHT, SHUTTER = 1, 2, 3
"""What may stand at each of a device's outputs."""

MOST_OUTPUTS: Final = 64

SENSED: Final = {"Temperature": "temperature", "Humidity": "humidity", "Illuminance": "illuminance"}
SECOND_MS: Final = 1000 + EXACT_MS


@dataclass(frozen=True, kw_only=True)
class TasmotaDevice(Described):
    """One output of a device, the first one with all that it senses.

    Attributes:
        key: of its power, ``POWER`` or ``POWER2``.
        dimmer: of its brightness; None: it has none.
        online, offline: the words of its last will.
    """

    topic: str
    format: str
    prefixes: tuple[str, str, str]
    key: str
    dimmer: str | None
    online: str
    offline: str

    def _at(self, prefix: str, ending: str) -> str:
        return self.format.replace("%prefix%", prefix).replace("%topic%", self.topic) + ending

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """See `Described`."""
        _, stat, tele = self.prefixes
        told = ("LWT", "STATE", "SENSOR") if self.sensed else ("LWT", "STATE")
        answered = ("RESULT", "STATUS8", "STATUS10") if self.sensed else ("RESULT",)
        return (*(self._at(tele, one) for one in told), *(self._at(stat, one) for one in answered))

    @property
    def sensed(self) -> bool:
        """Whether it has sensors."""
        return not self.shows.isdisjoint(SENSED.values())

    def hear(self, topic: str, text: str) -> Heard | None:
        """See `Described`."""
        ending = topic.rpartition("/")[2]
        if ending == "LWT":
            return Heard(available=text == self.online) if text in {self.online, self.offline} else None
        told = mapping(text)
        if word(told.get("Command")) in {"Unknown", "Error"}:
            return Heard(error=f"it answered {told['Command']}")
        if ending.startswith("STATUS"):
            told = told.get("StatusSNS", {})
        values = self._values(told if isinstance(told, dict) else {})
        if not values:
            return None
        told_at = _instant(told.get("Time"))
        return Heard(values) if told_at is None else Heard(values, told_at=told_at, within_ms=SECOND_MS)

    def _values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        values = dict[str, Any]()
        power = word(told.get(self.key, told.get("POWER1") if self.key == "POWER" else None))
        if power in {"ON", "OFF"}:
            values["power"] = str(power).lower()
        if self.dimmer is not None and (level := number(told.get(self.dimmer))):
            values["brightness"] = level
        if self.sensed:
            values |= sensed(told)
        return {name: value for name, value in values.items() if name in self.shows}

    def questions(self) -> tuple[Message, ...]:
        """See `Described`."""
        command = self.prefixes[0]
        asks = [Message(self._at(command, "STATE"), "")] if "power" in self.shows else []
        return (*asks, *((Message(self._at(command, "STATUS"), "8"),) if self.sensed else ()))

    def orders(self, values: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[Message, ...]:  # noqa: ARG002  of the base
        """See `Described`: a lamp that is told its brightness lights by that."""
        if "brightness" in values:
            return (Message(self._at(self.prefixes[0], str(self.dimmer)), str(round(values["brightness"]))),)
        return (Message(self._at(self.prefixes[0], self.key), str(values["power"]).upper()),)


def announced(config: Mapping[str, Any], sensors: Mapping[str, Any]) -> list[TasmotaDevice]:
    """The devices of one announcement: an output each, or only what is sensed; none, if it is not to be understood."""
    topic, prefixes = config.get("t"), config.get("tp", ["cmnd", "stat", "tele"])
    if not (isinstance(prefixes, list) and len(prefixes) == 3):
        return []
    if not all(is_topic(one) for one in (topic, config.get("ft", "%prefix%/%topic%/"), *prefixes)):
        return []
    found = sensors.get("sn")
    shown = frozenset(sensed(found)) if isinstance(found, dict) else frozenset[str]()
    relays = config.get("rl")
    kinds = [number(one) for one in relays[:MOST_OUTPUTS]] if isinstance(relays, list) else []
    outputs = [(number_, kind) for number_, kind in enumerate(kinds, 1) if kind in {RELAY, LIGHT}]
    if not outputs:
        return [_device(config, "sensor", 0, 0, shown)] if shown else []
    return [
        _device(
            config, "light" if kind == LIGHT else "switch", number_, len(outputs), shown if place == 0 else frozenset()
        )
        for place, (number_, kind) in enumerate(outputs)
    ]


def _device(config: Mapping[str, Any], domain: str, output: int, outputs: int, shown: frozenset[str]) -> TasmotaDevice:
    topic, names = str(config["t"]), config.get("fn")
    first = output <= 1 or outputs == 1
    named = names[output - 1] if output and isinstance(names, list) and len(names) >= output else config.get("dn")
    dims = domain == "light" and bool(config.get("lt_st"))
    sets: dict[str, Limits] = {"power": ON_OFF} if output else {}
    if dims:
        sets["brightness"] = (1.0, 100.0)
    cmnd, stat, tele = config.get("tp", ("cmnd", "stat", "tele"))
    askable = {*shown} | ({"power"} if output else set())
    return TasmotaDevice(
        wire=f"{BASE}/{topic}" if first else f"{BASE}/{topic}/{output}",
        domain=domain,
        name=named if isinstance(named, str) and named else topic,
        bridge=f"{BASE}/{topic}",
        sets=sets,
        shows=frozenset({*sets, *shown}),
        askable=frozenset(askable),
        topic=topic,
        format=str(config.get("ft", "%prefix%/%topic%/")),
        prefixes=(cmnd, stat, tele),
        key="POWER" if outputs <= 1 else f"POWER{output}",
        dimmer="Dimmer" if dims else None,
        online=str(config.get("onln", "Online")),
        offline=str(config.get("ofln", "Offline")),
    )


def sensed(told: Mapping[str, Any]) -> dict[str, Any]:
    """What the sensors of a device say, the first of each kind."""
    values = dict[str, Any]()
    for name, value in _sensors(told):
        if name not in values:
            values[name] = value
    if told.get("TempUnit") == "F" and "temperature" in values:
        values["temperature"] = round((values["temperature"] - 32) / 1.8, 1)
    return values


def _sensors(told: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for sensor in told.values():
        if isinstance(sensor, dict):
            for theirs, ours in SENSED.items():
                if (value := number(sensor.get(theirs))) is not None:
                    yield ours, value


def _instant(time: Any) -> int | None:
    """As if its zone were UTC: what matters is how it moves."""
    try:
        at = datetime.fromisoformat(time) if isinstance(time, str) else None
    except ValueError:
        return None
    if at is None:
        return None
    told = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return told if told in INSTANTS else None
