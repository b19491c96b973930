"""Zigbee2MQTT: ``zigbee2mqtt/NAME`` tells, ``…/set`` takes and ``…/get`` asks, all in JSON; names may hold a ``/``.

What devices there are, and what each can do, stands in the retained ``bridge/devices``. After a ``…/set`` the bridge
publishes what was wanted before the device has said a word (`optimistic`, on by default), so only what follows a
``…/get`` says what is true. https://www.zigbee2mqtt.io/guide/usage/mqtt_topics_and_messages.html
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from pydantic_core import from_json

from backend_loop.devices.mqtt.dialects.described import (
    EXACT_MS,
    INSTANTS,
    LOCKS,
    LONGEST_WORD,
    ON_OFF,
    PERCENT,
    Described,
    Heard,
    Limits,
    Message,
    is_topic,
    level_of,
    mapping,
    number,
    percent,
    word,
)

TOLD, SETTABLE, ASKABLE = 1, 2, 4
"""The bits of ``access``."""

COMPOUND: Final = ("light", "switch", "lock", "climate", "cover")
PLAIN: Final = frozenset(
    {"temperature", "humidity", "contact", "battery", "occupancy", "illuminance", "volume", "playback", "position"}
)
"""What is taken over by its own name, outside of those."""

NAMES: Final = {
    "brightness": "brightness",
    "position": "position",
    "occupied_heating_setpoint": "temperature",
    "current_heating_setpoint": "temperature",
    "occupied_cooling_setpoint": "temperature",
    "local_temperature": "current_temperature",
    "system_mode": "mode",
    "volume": "volume",
    "playback": "playback",
}
MODES: Final = {"fan_only": "fan"}
THEIR_MODES: Final = {ours: theirs for theirs, ours in MODES.items()}
NO_CONVERTER: Final = re.compile(r"no converter|invalid|not supported|unsupported|unknown|refuse", re.IGNORECASE)
PUBLISH: Final = ("ublish 'set'", "ublish 'get'")
"""With a small letter or a capital, as the bridge's release has it."""


@dataclass(frozen=True)
class Feature:
    """One thing that a device exposes: our name for it, theirs, and how values translate.

    Attributes:
        most: of a level, what is 100 %.
        words: their words to ours.
    """

    name: str
    key: str
    access: int
    limits: Limits | None = None
    most: float | None = None
    words: tuple[tuple[Any, str], ...] = ()

    def ours(self, value: Any) -> Any:
        """A value of theirs; None: not to be understood."""
        if self.words:
            return next((word for theirs, word in self.words if theirs == value and type(theirs) is type(value)), None)
        if self.most is not None:
            return percent(value, self.most)
        if self.limits is not None and isinstance(self.limits[0], str):
            return value if value in self.limits else None
        return number(value) if not isinstance(value, str) else None

    def theirs(self, value: Any) -> Any:
        """A value of ours, which fits."""
        if self.words:
            return next(theirs for theirs, word in self.words if word == value)
        return value if self.most is None else level_of(value, self.most)


@dataclass(frozen=True, kw_only=True)
class ZigbeeDevice(Described):
    """One device, or one endpoint of it."""

    base: str
    friendly: str
    features: tuple[Feature, ...]

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """See `Described`."""
        at = f"{self.base}/{self.friendly}"
        return (at, f"{at}/availability", f"{self.base}/bridge/state", f"{self.base}/bridge/logging")

    def hear(self, topic: str, text: str) -> Heard | None:
        """See `Described`."""
        if topic == f"{self.base}/bridge/logging":
            # a bridge logs each message that it sends, and each of its devices hears all of it
            return self._failed(mapping(text)) if "failed: " in text else None
        if topic in {f"{self.base}/{self.friendly}/availability", f"{self.base}/bridge/state"}:
            said = word(mapping(text).get("state", text))
            return Heard(available=said == "online") if said in {"online", "offline"} else None
        told = mapping(text)
        values = {one.name: found for one in self.features if (found := one.ours(told.get(one.key))) is not None}
        if values.get("brightness") == 0:  # an unlit lamp has no brightness of its own
            del values["brightness"]
        if "mode" in values or (self.domain == "climate" and told.get("system_mode") == "off"):
            values["power"] = "on" if "mode" in values else "off"
        if not values:
            return None
        told_at, within_ms = _instant(told.get("last_seen"))
        return Heard(values, told_at=told_at, within_ms=within_ms)

    def _failed(self, told: Mapping[str, Any]) -> Heard | None:
        if told.get("level") != "error":
            return None
        # by hand: a pattern went back and forth in what another one had made long, for seconds, and for each device
        what, failed, why = (word(told.get("message")) or "").partition(f" to '{self.friendly}' failed: '")
        if not failed or not any(one in what for one in PUBLISH):
            return None
        why = why.rpartition("'")[0][:LONGEST_WORD]
        return Heard(error=why, perhaps=NO_CONVERTER.search(why) is None)

    def questions(self) -> tuple[Message, ...]:
        """See `Described`."""
        keys = {feature.key: "" for feature in self.features if feature.access & ASKABLE}
        return (Message(f"{self.base}/{self.friendly}/get", json.dumps(keys)),) if keys else ()

    def orders(self, values: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[Message, ...]:
        """See `Described`."""
        told = {
            one.key: one.theirs(values[one.name])
            for one in self.features
            if one.name in values and one.access & SETTABLE
        }
        if self.domain == "climate" and "power" in values and "mode" not in values:
            mode = next((one for one in self.features if one.name == "mode"), None)
            if mode is not None and values["power"] == "off":
                told[mode.key] = "off"
            elif mode is not None and known.get("power") != "on":
                told[mode.key] = mode.theirs(known.get("mode") or mode.words[0][1])
        return (Message(f"{self.base}/{self.friendly}/set", json.dumps(told)),)


def announced(base: str, text: str) -> list[ZigbeeDevice] | None:
    """The devices of a ``bridge/devices``; None: it is not to be understood."""
    try:
        listed = from_json(text, allow_inf_nan=False)
    except ValueError:
        return None
    if not isinstance(listed, list):
        return None
    return [device for one in listed if isinstance(one, dict) for device in _devices(base, one)]


def _devices(base: str, told: Mapping[str, Any]) -> Iterator[ZigbeeDevice]:
    friendly, definition = told.get("friendly_name"), told.get("definition")
    if not isinstance(friendly, str) or not is_topic(friendly) or not isinstance(definition, dict):
        return
    if told.get("type") == "Coordinator" or told.get("disabled") is True:
        return
    exposes = [one for one in _list(definition.get("exposes")) if isinstance(one, dict)]
    compound = [one for one in exposes if one.get("type") in COMPOUND]
    plain = [feature for one in exposes if one not in compound and (feature := _plain(one)) is not None]
    if not compound:
        if plain:
            yield _device(base, friendly, "", "sensor", plain)
        return
    for number_, one in enumerate(compound):
        endpoint = str(one["endpoint"]) if one.get("endpoint") else ""
        features = [*_features(one), *(plain if number_ == 0 else [])]
        yield _device(base, friendly, endpoint if number_ else "", str(one["type"]), features)


def _device(base: str, friendly: str, endpoint: str, domain: str, features: Iterable[Feature]) -> ZigbeeDevice:
    one_each = {feature.name: feature for feature in reversed([*features])}
    sets = {name: one.limits for name, one in one_each.items() if one.access & SETTABLE and one.limits is not None}
    shows, askable = {*one_each}, {name for name, one in one_each.items() if one.access & ASKABLE}
    if domain == "climate" and "mode" in one_each:
        shows.add("power")
        if "mode" in sets:
            sets["power"] = ON_OFF
        if "mode" in askable:
            askable = askable - {"mode"} | {"power"}  # one that is off tells no mode
    if {"volume", "playback"} & sets.keys():
        domain = "media_player"
    elif not sets:
        domain = "sensor"
    if domain == "light":
        askable -= {"brightness"}  # one that is off may tell none
    ending = f"/{endpoint}" if endpoint else ""
    return ZigbeeDevice(
        wire=f"{base}/{friendly}{ending}",
        domain=domain,
        name=f"{friendly} {endpoint}".strip(),
        bridge=base,
        sets=sets,
        shows=frozenset(shows),
        askable=frozenset(askable),
        base=base,
        friendly=friendly,
        features=tuple(one_each.values()),
    )


def _features(compound: Mapping[str, Any]) -> Iterator[Feature]:
    domain = compound["type"]
    for one in _list(compound.get("features")):
        if not isinstance(one, dict):
            continue
        name, key, access = word(one.get("name")), one.get("property"), one.get("access")
        if name is None or not isinstance(key, str) or not isinstance(access, int):
            continue
        if name == "state" and domain in {"light", "switch"}:
            words = ((one.get("value_on", "ON"), "on"), (one.get("value_off", "OFF"), "off"))
            yield Feature("power", key, access, ON_OFF, words=words)
        elif name == "state" and domain == "lock":
            words = ((one.get("value_on", "LOCK"), "locked"), (one.get("value_off", "UNLOCK"), "unlocked"))
            yield Feature("lock", key, access, LOCKS, words=words)
        elif name == "system_mode":
            known = [word for word in _list(one.get("values")) if isinstance(word, str) and word != "off"]
            if modes := tuple((word, MODES.get(word, word)) for word in known):
                yield Feature("mode", key, access, tuple(ours for _, ours in modes), words=modes)
        elif name in NAMES:
            yield _numeric(NAMES[name], key, access, one)


def _plain(one: Mapping[str, Any]) -> Feature | None:
    name, key, access = word(one.get("name")), one.get("property"), one.get("access")
    if name is None or name not in PLAIN or not isinstance(key, str) or not isinstance(access, int):
        return None
    if one.get("type") == "binary":
        on: tuple[Any, str] = (one.get("value_on", True), "on")
        off: tuple[Any, str] = (one.get("value_off", False), "off")
        if name == "contact":
            on, off = (True, "closed"), (False, "open")
        return Feature(name, key, access, (on[1], off[1]), words=(on, off))
    if one.get("type") == "enum":
        listed = tuple(word for word in _list(one.get("values")) if isinstance(word, str))
        return Feature(name, key, access, listed) if listed else None
    return _numeric(name, key, access, one)


def _numeric(name: str, key: str, access: int, one: Mapping[str, Any]) -> Feature:
    least, most = number(one.get("value_min")), number(one.get("value_max"))
    if name in {"brightness", "position", "volume"} and (least or 0) == 0:
        limits: Limits = (1.0, 100.0) if name == "brightness" else PERCENT
        return Feature(name, key, access, limits, most=most if most is not None and 0 < most != 100 else None)
    span = (float(least), float(most)) if least is not None and most is not None else (-1e9, 1e9)
    return Feature(name, key, access, span)


def _instant(last_seen: Any) -> tuple[int | None, int]:
    """``last_seen`` in epoch milliseconds, and how exact it is; it is told in either of three ways, or not at all."""
    if isinstance(last_seen, int) and not isinstance(last_seen, bool):
        return last_seen if last_seen in INSTANTS else None, EXACT_MS
    if isinstance(last_seen, str):
        try:
            at = datetime.fromisoformat(last_seen)
        except ValueError:
            return None, EXACT_MS
        if at.tzinfo is not None and (told := round(at.timestamp() * 1000)) in INSTANTS:
            return told, EXACT_MS if "." in last_seen else 1000 + EXACT_MS
    return None, EXACT_MS


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
