"""Devices announced as Home Assistant's MQTT discovery wants it, so that it finds them by itself, as does Dual Loop.

Each value has topics of its own, plain text. https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dualloop.home.model import Device, Reading
from dualloop.home.wire.dialect import Again, Get, Heard, Message, Named, Set, Unclear, text_of

PREFIX: Final = "homeassistant"
OURS: Final = "dualloop/home"
"""Where the topics of these devices begin."""

BIRTH: Final = f"{PREFIX}/status"
ONLINE, OFFLINE = "online", "offline"

_MODES: Final = {"fan": "fan_only"}
"""Where Home Assistant has another word for a mode than we have."""
_OWN_MODES: Final = {theirs: ours for ours, theirs in _MODES.items()}


class Discovery:
    """All devices of the home that are announced this way, which share a connection."""

    prefix = PREFIX
    will = Message(f"{OURS}/availability", OFFLINE, retain=True)

    def __init__(self, devices: Sequence[Named]) -> None:
        """Know them by their unique ids."""
        self.devices = tuple(devices)
        self._by_name = {named.name: named.device for named in devices}

    def subscriptions(self) -> list[str]:
        """See `Dialect`."""
        verbs = [f"{OURS}/{named.name}/{verb}" for named in self.devices for verb in ("get", "+/set")]
        return [BIRTH, *verbs]

    def hello(self, here: Mapping[str, bool]) -> list[Message]:
        """See `Dialect`."""
        return [
            *(self._config(named) for named in self.devices),
            *(message for name, there in here.items() for message in self.presence(name, here=there)),
            Message(f"{OURS}/availability", ONLINE, retain=True),
        ]

    def presence(self, name: str, *, here: bool) -> list[Message]:
        """See `Dialect`."""
        return [Message(f"{OURS}/{name}/availability", ONLINE if here else OFFLINE, retain=True)]

    def report(self, named: Named, reading: Reading, changed: frozenset[str]) -> list[Message]:
        """See `Dialect`: nothing is said of what stays as it was."""
        topics = _shown(reading.value)
        wanted = {topic for name in changed for topic in _TOPICS_OF[name]}
        return [
            Message(f"{OURS}/{named.name}/{topic}", topics[topic], retain=True) for topic in topics if topic in wanted
        ]

    def answer(self, get: Get, named: Named, reading: Reading) -> list[Message]:  # noqa: ARG002  there is one question
        """See `Dialect`."""
        return self.report(named, reading, frozenset(reading.value))

    def failed(self, name: str, sentence: str, *, here: bool) -> list[Message]:  # noqa: ARG002  it has no words for it
        """See `Dialect`."""
        return []

    def hear(self, topic: str, payload: bytes) -> Heard:
        """See `Dialect`."""
        if topic == BIRTH:
            return Again() if payload == ONLINE.encode() else None
        name, _, verb = topic.removeprefix(f"{OURS}/").partition("/")
        if name not in self._by_name:
            return None
        if verb == "get":
            return Get(name)
        try:
            return Set(name, _told(self._by_name[name], verb.removesuffix("/set"), text_of(payload).strip()))
        except ValueError as fault:
            return Unclear(name, str(fault))

    def _config(self, named: Named) -> Message:
        kind, _, room = named.device.entity.partition(".")
        base = f"{OURS}/{named.name}"
        words = f"{room.replace('_', ' ').capitalize()} {_NOUNS[kind]}"
        config = {
            "name": words,
            "unique_id": named.name,
            "device": {"identifiers": [named.name], "name": words, "manufacturer": "Dual Loop", "model": "Simulated"},
            "origin": {"name": "Dual Loop"},
            "availability": [{"topic": f"{OURS}/availability"}, {"topic": f"{base}/availability"}],
            "availability_mode": "all",
            "dualloop": {"get": f"{base}/get"},
            **(_climate(base, named.device) if kind == "climate" else _cover(base)),
        }
        return Message(f"{PREFIX}/{kind}/{named.name}/config", json.dumps(config), retain=True)


_NOUNS: Final = {"climate": "air conditioner", "cover": "blind"}
_TOPICS_OF: Final = {
    "power": ("mode",),
    "mode": ("mode",),
    "temperature": ("temperature",),
    "position": ("position", "state"),
}


def _climate(base: str, device: Device) -> dict[str, Any]:
    modes, span = device.limits["mode"], device.limits["temperature"]
    return {
        "modes": ["off", *(_MODES.get(str(mode), mode) for mode in modes)],
        "mode_state_topic": f"{base}/mode",
        "mode_command_topic": f"{base}/mode/set",
        "power_command_topic": f"{base}/power/set",
        "payload_on": "ON",
        "payload_off": "OFF",
        "temperature_state_topic": f"{base}/temperature",
        "temperature_command_topic": f"{base}/temperature/set",
        "temperature_unit": "C",
        "min_temp": span[0],
        "max_temp": span[1],
        "temp_step": 1,
    }


def _cover(base: str) -> dict[str, Any]:
    return {
        "device_class": "blind",
        "command_topic": f"{base}/command/set",
        "payload_open": "OPEN",
        "payload_close": "CLOSE",
        "payload_stop": None,
        "state_topic": f"{base}/state",
        "position_topic": f"{base}/position",
        "set_position_topic": f"{base}/position/set",
        "position_open": 100,
        "position_closed": 0,
    }


def _shown(value: Mapping[str, Any]) -> dict[str, str]:
    """What stands on each topic of a device."""
    if "position" in value:
        return {"position": f"{value['position']:g}", "state": "open" if value["position"] else "closed"}
    mode = str(value["mode"])
    return {
        "mode": "off" if value["power"] == "off" else _MODES.get(mode, mode),
        "temperature": f"{value['temperature']:g}",
    }


def _told(device: Device, what: str, text: str) -> dict[str, Any]:
    """What a device is to show.

    Raises:
        ValueError: it is not to be understood.
    """
    if "position" in device.limits:
        ends = {("command", "OPEN"): 100, ("command", "CLOSE"): 0}
        return {"position": ends[what, text] if (what, text) in ends else _number(what, "position", text)}
    if what == "power" and text in {"ON", "OFF"}:
        return {"power": text.lower()}
    if what == "mode":
        return {"power": "off"} if text == "off" else {"power": "on", "mode": _OWN_MODES.get(text, text)}
    return {"temperature": _number(what, "temperature", text)}


def _number(what: str, wanted: str, text: str) -> float:
    if what != wanted:
        raise ValueError(f"{text!r} is no {what}")
    number = float(text)
    return int(number) if number.is_integer() else number
