"""A device with Tasmota on it: a connection of its own, ``cmnd/TOPIC/…`` to it, ``stat/`` and ``tele/TOPIC/…`` from it.

https://tasmota.github.io/docs/MQTT/; what it announces of itself is what `tasmota/discovery/MAC/config` has.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from dualloop.home.model import Reading
from dualloop.home.wire.dialect import Get, Heard, Message, Named, Set, Unclear, text_of
from shared.clock import rfc3339

BASE: Final = "tasmota"
ONLINE, OFFLINE = "Online", "Offline"
RELAY, LIGHT = 1, 2
"""What may stand at each of a device's eight outputs."""

_POWER: Final = {"ON": "on", "1": "on", "OFF": "off", "0": "off"}
_SENSOR: Final = "AM2301"


class Tasmota:
    """One device."""

    prefix = BASE

    def __init__(self, named: Named) -> None:
        """Know it by its topic."""
        self.devices: tuple[Named, ...] = (named,)
        self._topic, self._limits = named.name, named.device.limits
        self.will = Message(f"tele/{named.name}/LWT", OFFLINE, retain=True)

    def subscriptions(self) -> list[str]:
        """See `Dialect`."""
        return [f"cmnd/{self._topic}/+"]

    def hello(self, here: Mapping[str, bool]) -> list[Message]:
        """See `Dialect`."""
        at = f"{BASE}/discovery/{_mac(self._topic)}"
        sensors = {"sn": self._sensed(self.devices[0].device.value) if "humidity" in self._limits else {}, "ver": 1}
        return [
            Message(f"{at}/config", json.dumps(self._config()), retain=True),
            Message(f"{at}/sensors", json.dumps(sensors), retain=True),
            *self.presence(self._topic, here=here[self._topic]),
        ]

    def presence(self, name: str, *, here: bool) -> list[Message]:
        """See `Dialect`."""
        return [Message(f"tele/{name}/LWT", ONLINE if here else OFFLINE, retain=True)]

    def report(self, named: Named, reading: Reading, changed: frozenset[str]) -> list[Message]:  # noqa: ARG002  all is said
        """See `Dialect`."""
        if "power" not in reading.value:
            sensed = {"Time": _time(reading)} | self._sensed(reading.value)
            return [Message(f"tele/{named.name}/SENSOR", json.dumps(sensed))]
        state = _state(reading.value)
        return [self._result(state), Message(f"stat/{named.name}/POWER", state["POWER"])]

    def answer(self, get: Get, named: Named, reading: Reading) -> list[Message]:
        """See `Dialect`."""
        if get.what == "STATUS":
            sensed = {"Time": _time(reading)}
            sensed |= self._sensed(reading.value) if "humidity" in reading.value else {}
            return [Message(f"stat/{named.name}/STATUS8", json.dumps({"StatusSNS": sensed}))]
        if get.what == "STATE":
            state = _state(reading.value) if "power" in reading.value else {}
            return [self._result({"Time": _time(reading), "UptimeSec": 3_600, **state, "Wifi": {"RSSI": 100}})]
        return self.report(named, reading, frozenset())

    def failed(self, name: str, sentence: str, *, here: bool) -> list[Message]:  # noqa: ARG002  it has no words for why
        """See `Dialect`."""
        return [self._result({"Command": "Error"})] if here else []

    def hear(self, topic: str, payload: bytes) -> Heard:
        """See `Dialect`."""
        command = topic.rpartition("/")[2].upper()
        try:
            text = text_of(payload).strip()
            return self._heard(command, text)
        except ValueError as fault:
            return Unclear(self._topic, str(fault))

    def _heard(self, command: str, text: str) -> Heard:
        if command == "STATE":
            return Get(self._topic, "STATE")
        if command == "STATUS":
            return Get(self._topic, "STATUS") if text in {"8", "10"} else None
        if command in {"POWER", "POWER1", "DIMMER"} and not text:
            return Get(self._topic, "POWER")
        steps = text.split(";") if command == "BACKLOG" else [f"{command} {text}"]
        values = dict[str, Any]()
        for step in steps:
            values |= self._told(*step.strip().partition(" ")[::2])
        return Set(self._topic, values)

    def _told(self, command: str, text: str) -> dict[str, Any]:
        match command.upper():
            case "POWER" | "POWER1" if "power" in self._limits and text.upper() in _POWER:
                return {"power": _POWER[text.upper()]}
            case "DIMMER" if "brightness" in self._limits:
                percent = int(text)
                return {"power": "on", "brightness": percent} if percent else {"power": "off"}
        raise ValueError(f"{command} {text} is no command of it")

    def _config(self) -> dict[str, Any]:
        outputs = [LIGHT if "brightness" in self._limits else RELAY] if "power" in self._limits else []
        words = self._topic.replace("_", " ").capitalize()
        return {
            "ip": "127.0.0.1",
            "dn": words,
            "fn": [words, *[None] * 7],
            "hn": f"tasmota-{self._topic}",
            "mac": _mac(self._topic),
            "md": "Simulated",
            "ty": 0,
            "ofln": OFFLINE,
            "onln": ONLINE,
            "state": ["OFF", "ON", "TOGGLE", "HOLD"],
            "sw": "14.3.0",
            "t": self._topic,
            "ft": "%prefix%/%topic%/",
            "tp": ["cmnd", "stat", "tele"],
            "rl": [*outputs, *[0] * (8 - len(outputs))],
            "lt_st": int("brightness" in self._limits),
            "ver": 1,
        }

    @staticmethod
    def _sensed(values: Mapping[str, Any]) -> dict[str, Any]:
        return {_SENSOR: {"Temperature": values["temperature"], "Humidity": values["humidity"]}, "TempUnit": "C"}

    def _result(self, told: dict[str, Any]) -> Message:
        return Message(f"stat/{self._topic}/RESULT", json.dumps(told))


def _state(values: Mapping[str, Any]) -> dict[str, Any]:
    state = {"POWER": values["power"].upper()}
    return state | ({"Dimmer": round(values["brightness"])} if "brightness" in values else {})


def _time(reading: Reading) -> str:
    """Whole seconds, and no word of the zone: so these devices tell it."""
    return rfc3339(reading.observed_at)[:19]


def _mac(topic: str) -> str:
    return "02" + hashlib.sha256(topic.encode()).hexdigest()[:10].upper()
