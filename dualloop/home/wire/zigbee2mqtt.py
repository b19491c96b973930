"""Zigbee devices behind a bridge, as Zigbee2MQTT tells of them.

State on ``zigbee2mqtt/NAME``, told by ``…/set`` and asked by ``…/get``, both in JSON; all devices and what they can be
in ``bridge/devices``; what went wrong in ``bridge/logging``. https://www.zigbee2mqtt.io/guide/usage/mqtt_topics_and_messages.html
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_core import from_json

from dualloop.home.model import Device, Reading
from dualloop.home.wire.dialect import Get, Heard, Message, Named, Set, Unclear, text_of
from shared.clock import rfc3339

BASE: Final = "zigbee2mqtt"
BRIGHTEST: Final = 254
READ, SET, ASK = 1, 2, 4
"""The bits of ``access``."""

_ON_OFF: Final = {"power": ("ON", "OFF"), "lock": ("LOCK", "UNLOCK")}
_WORDS: Final = {
    "ON": ("power", "on"),
    "OFF": ("power", "off"),
    "LOCK": ("lock", "locked"),
    "UNLOCK": ("lock", "unlocked"),
}
_MODELS: Final = {
    "light": ("LED bulb, dimmable", "Router"),
    "lock": ("Door lock", "EndDevice"),
    "media_player": ("Speaker", "Router"),
    "sensor": ("Contact sensor", "EndDevice"),
}


class Bridge:
    """All Zigbee devices of the home, which share the bridge's connection."""

    prefix = BASE
    will = Message(f"{BASE}/bridge/state", json.dumps({"state": "offline"}), retain=True)

    def __init__(self, devices: Sequence[Named]) -> None:
        """Know them by their friendly names."""
        self.devices = tuple(devices)
        self._by_name = {named.name: named for named in devices}

    def subscriptions(self) -> list[str]:
        """See `Dialect`."""
        return [f"{BASE}/{named.name}/{verb}" for named in self.devices for verb in ("set", "get")]

    def hello(self, here: Mapping[str, bool]) -> list[Message]:
        """See `Dialect`."""
        coordinator = {"ieee_address": _address(0), "type": "Coordinator", "friendly_name": "Coordinator"}
        known = [coordinator, *(_described(number, named) for number, named in enumerate(self.devices, 1))]
        return [
            Message(f"{BASE}/bridge/devices", json.dumps(known), retain=True),
            *(message for name, there in here.items() for message in self.presence(name, here=there)),
            Message(f"{BASE}/bridge/state", json.dumps({"state": "online"}), retain=True),
        ]

    def presence(self, name: str, *, here: bool) -> list[Message]:
        """See `Dialect`."""
        state = json.dumps({"state": "online" if here else "offline"})
        return [Message(f"{BASE}/{name}/availability", state, retain=True)]

    def report(self, named: Named, reading: Reading, changed: frozenset[str]) -> list[Message]:  # noqa: ARG002  all is said
        """See `Dialect`."""
        return [Message(f"{BASE}/{named.name}", json.dumps(_state(reading)), retain=True)]

    def answer(self, get: Get, named: Named, reading: Reading) -> list[Message]:  # noqa: ARG002  as above
        """See `Dialect`."""
        return self.report(named, reading, frozenset())

    def failed(self, name: str, sentence: str, *, here: bool) -> list[Message]:  # noqa: ARG002  the bridge is
        """See `Dialect`."""
        told = {"level": "error", "message": f"z2m: Publish 'set' to '{name}' failed: '{sentence}'"}
        return [Message(f"{BASE}/bridge/logging", json.dumps(told))]

    def hear(self, topic: str, payload: bytes) -> Heard:
        """See `Dialect`."""
        name, _, verb = topic.removeprefix(f"{BASE}/").rpartition("/")
        if name not in self._by_name or verb not in {"set", "get"}:
            return None
        if verb == "get":
            return Get(name)
        try:
            return Set(name, _values(self._by_name[name].device, text_of(payload)))
        except ValueError as fault:
            return Unclear(name, str(fault))


def _values(device: Device, text: str) -> dict[str, Any]:
    """What a device is to show.

    Raises:
        ValueError: it is not to be understood.
    """
    told = from_json(text) if text.lstrip().startswith("{") else {"state": text}
    values = dict[str, Any]()
    for name, value in told.items():
        if name == "state":
            values |= _from_state(device, value)
        elif name == "brightness" and "brightness" in device.limits:
            values |= _from_brightness(value)
        elif name in {"volume", "playback"} & device.limits.keys():
            values[name] = value
        else:
            raise ValueError(f"no converter available for '{name}'")
    if told.get("state") == "OFF":
        values = {"power": "off"}
    return values


def _from_state(device: Device, word: Any) -> dict[str, Any]:
    name, value = _WORDS.get(word, ("", "")) if isinstance(word, str) else ("", "")
    if name not in device.limits:
        raise ValueError(f"{word!r} is no state of it")
    return {name: value}


def _from_brightness(raw: Any) -> dict[str, Any]:
    if isinstance(raw, bool) or not isinstance(raw, int | float) or not 0 <= raw <= BRIGHTEST:
        raise ValueError(f"brightness lies between 0 and {BRIGHTEST}")
    return {"power": "on", "brightness": max(1, round(raw * 100 / BRIGHTEST))} if raw else {"power": "off"}


def _state(reading: Reading) -> dict[str, Any]:
    state = dict[str, Any]()
    for name, value in reading.value.items():
        match name:
            case "power" | "lock":
                state["state"] = _ON_OFF[name][value in {"off", "unlocked"}]
                state |= {"lock_state": value} if name == "lock" else {}
            case "brightness":
                state[name] = round(value * BRIGHTEST / 100)
            case "contact":
                state |= {name: value == "closed", "battery": 100}
            case _:
                state[name] = value
    return state | {"linkquality": 120, "last_seen": rfc3339(reading.observed_at)}


def _described(number: int, named: Named) -> dict[str, Any]:
    model, kind = _MODELS[named.device.entity.partition(".")[0]]
    return {
        "ieee_address": _address(number),
        "type": kind,
        "friendly_name": named.name,
        "supported": True,
        "disabled": False,
        "interview_completed": True,
        "definition": {
            "model": f"DL-{number}",
            "vendor": "Dual Loop",
            "description": f"{model}, simulated",
            "exposes": [*_exposes(named.device), _numeric("linkquality", 0, 255, READ)],
        },
    }


def _exposes(device: Device) -> list[dict[str, Any]]:
    limits = device.limits
    if "lock" in limits:
        words = ["not_fully_locked", "locked", "unlocked"]
        lock_state = {"type": "enum", "name": "lock_state", "property": "lock_state", "values": words, "access": READ}
        return [{"type": "lock", "features": [_binary("state", "LOCK", "UNLOCK")]}, lock_state]
    if "contact" in limits:  # a real one sleeps and cannot be asked; this one is near a socket
        return [_binary("contact", on=False, off=True, access=READ | ASK), _numeric("battery", 0, 100, READ)]
    features = [_binary("state", "ON", "OFF")]
    if "brightness" in limits:
        return [{"type": "light", "features": [*features, _numeric("brightness", 0, BRIGHTEST)]}]
    playback = {"type": "enum", "name": "playback", "property": "playback", "values": limits["playback"]}
    return [
        {"type": "switch", "features": features},
        _numeric("volume", 0, 100),
        playback | {"access": READ | SET | ASK},
    ]


def _binary(name: str, on: Any, off: Any, access: int = READ | SET | ASK) -> dict[str, Any]:
    return {"type": "binary", "name": name, "property": name, "value_on": on, "value_off": off, "access": access}


def _numeric(name: str, least: int, most: int, access: int = READ | SET | ASK) -> dict[str, Any]:
    return {
        "type": "numeric",
        "name": name,
        "property": name,
        "value_min": least,
        "value_max": most,
        "access": access,
    }


def _address(number: int) -> str:
    return f"0x00124b0000{number:06x}"
