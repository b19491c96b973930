"""Home Assistant's discovery: retained ``homeassistant/COMPONENT/[NODE/]OBJECT/config`` say which topics a device has.

It knows no question. A device whose config has ``"dualloop": {"get": TOPIC}`` (Home Assistant passes over what it does
not know) is asked there with an empty message, and answers on its state topics; of others the newest report counts.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from backend_loop.devices.mqtt.dialects.described import (
    LOCKS,
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
from backend_loop.devices.mqtt.dialects.discovery_config import Reader, reader, spelled_out

BASE: Final = "homeassistant"
CONFIG: Final = re.compile(r"(?P<component>[a-z_]+)(/[A-Za-z0-9_-]+)?/(?P<object>[A-Za-z0-9_-]+)/config")
COMPONENTS: Final = {
    "light": "light",
    "switch": "switch",
    "climate": "climate",
    "cover": "cover",
    "lock": "lock",
    "sensor": "sensor",
    "binary_sensor": "sensor",
}
MODES: Final = {"fan_only": "fan", "heat_cool": "auto"}
DOORS: Final = frozenset({"door", "window", "garage_door", "opening"})
MEASURED: Final = frozenset({"temperature", "humidity", "battery", "illuminance"})


@dataclass(frozen=True)
class Told:
    """One value on one topic: how it is read there, and what its words are."""

    name: str
    topic: str
    reader: Reader
    words: Mapping[str, Any] = field(default_factory=dict)
    span: tuple[float, float] | None = None

    def read(self, text: str) -> Any:
        """The value; None: not to be understood."""
        raw = self.reader(text)
        if self.words:
            return self.words.get(str(raw))
        if self.name == "brightness":
            return percent(raw, self.span[1] if self.span else 255) or None
        level = number(raw)
        if self.span is None or level is None:
            return level
        shut, most = self.span
        return round(min(100.0, max(0.0, (level - shut) * 100 / (most - shut))))


@dataclass(frozen=True, kw_only=True)
class DiscoveredDevice(Described):
    """One device; `config` is its own, with whole words."""

    component: str
    config: Mapping[str, Any]
    told: tuple[Told, ...]
    availability: tuple[tuple[str, Reader, str, str], ...]
    get: str | None

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """See `Described`."""
        return tuple(dict.fromkeys([*(one.topic for one in self.told), *(topic for topic, *_ in self.availability)]))

    def hear(self, topic: str, text: str) -> Heard | None:
        """See `Described`."""
        for at, read, here, away in self.availability:
            if at == topic and (said := word(read(text))) in {here, away}:
                return Heard(available=said == here)
        if self._json_light and topic == self.config.get("state_topic"):
            return self._from_json(mapping(text))
        values = dict[str, Any]()
        for one in self.told:
            if one.topic == topic and (value := one.read(text)) is not None:
                values[one.name] = value
        if self.component == "climate" and "mode" in values:
            values["power"] = "off" if values["mode"] == "off" else "on"
            if values["mode"] == "off":
                del values["mode"]
        return Heard(values) if values else None

    @property
    def _json_light(self) -> bool:
        return self.component == "light" and self.config.get("schema") == "json"

    @property
    def _brightest(self) -> float:
        return number(self.config.get("brightness_scale")) or 255

    def _from_json(self, told: Mapping[str, Any]) -> Heard | None:
        values = dict[str, Any]()
        if (state := word(told.get("state"))) in {"ON", "OFF"}:
            values["power"] = str(state).lower()
        if "brightness" in self.sets and (level := percent(told.get("brightness"), self._brightest)):
            values["brightness"] = level
        return Heard(values) if values else None

    def questions(self) -> tuple[Message, ...]:
        """See `Described`."""
        return () if self.get is None else (Message(self.get, ""),)

    def orders(self, values: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[Message, ...]:
        """See `Described`."""
        return tuple(_ORDERS[self.component](self, values, known))

    def said(self, name: str, otherwise: str) -> str:
        """A word that the config may change."""
        return str(self.config.get(name, otherwise))

    def to(self, name: str, payload: Any) -> Message:
        """A message to the topic of this name."""
        return Message(str(self.config[name]), str(payload))


def _light(one: DiscoveredDevice, values: Mapping[str, Any], _known: Mapping[str, Any]) -> Iterator[Message]:
    level = level_of(values["brightness"], one._brightest) if "brightness" in values else None  # noqa: SLF001  of this file
    if one._json_light:  # noqa: SLF001  of this file
        told = {"state": str(values.get("power", "on")).upper()} | ({} if level is None else {"brightness": level})
        yield one.to("command_topic", json.dumps(told))
        return
    if "power" in values:
        yield from _switch(one, values, _known)
    if level is not None:
        yield one.to("brightness_command_topic", level)


def _switch(one: DiscoveredDevice, values: Mapping[str, Any], _known: Mapping[str, Any]) -> Iterator[Message]:
    on = values["power"] == "on"
    yield one.to("command_topic", one.said("payload_on", "ON") if on else one.said("payload_off", "OFF"))


def _lock(one: DiscoveredDevice, values: Mapping[str, Any], _known: Mapping[str, Any]) -> Iterator[Message]:
    shut = values["lock"] == "locked"
    yield one.to("command_topic", one.said("payload_lock", "LOCK") if shut else one.said("payload_unlock", "UNLOCK"))


def _cover(one: DiscoveredDevice, values: Mapping[str, Any], _known: Mapping[str, Any]) -> Iterator[Message]:
    to = values["position"]
    if to in {0, 100} and "command_topic" in one.config:
        yield one.to("command_topic", one.said("payload_open", "OPEN") if to else one.said("payload_close", "CLOSE"))
        return
    shut, most = _span(one.config)
    yield one.to("set_position_topic", round(shut + to * (most - shut) / 100))


def _climate(one: DiscoveredDevice, values: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[Message]:
    starts = values.get("power") == "on" and known.get("power") != "on"
    if values.get("power") == "off":
        if "power_command_topic" in one.config:
            yield one.to("power_command_topic", one.said("payload_off", "OFF"))
        else:
            yield one.to("mode_command_topic", "off")
    elif starts and "mode" not in values:
        if "power_command_topic" in one.config:
            yield one.to("power_command_topic", one.said("payload_on", "ON"))
        else:
            modes = one.sets["mode"]
            mode = known["mode"] if known.get("mode") in modes else modes[0]
            yield one.to("mode_command_topic", _their_mode(one, str(mode)))
    if "mode" in values:
        yield one.to("mode_command_topic", _their_mode(one, values["mode"]))
    if "temperature" in values:
        yield one.to("temperature_command_topic", f"{values['temperature']:g}")
    if values.get("power") == "on" and not starts and len(values) == 1:  # told anew all the same
        yield from _climate(one, values, {})


_ORDERS: Final = {"light": _light, "switch": _switch, "lock": _lock, "cover": _cover, "climate": _climate}


def _their_mode(one: DiscoveredDevice, mode: str) -> str:
    listed = [str(theirs) for theirs in _listed(one.config.get("modes"))]
    return next((theirs for theirs in listed if MODES.get(theirs, theirs) == mode), mode)


def announced(prefix: str, topic: str, text: str) -> DiscoveredDevice | None:
    """The device of a config; None: there is none, or none of a kind that is known here."""
    found = CONFIG.fullmatch(topic.removeprefix(f"{prefix}/"))
    config = spelled_out(mapping(text))
    if found is None or found["component"] not in COMPONENTS or not config:
        return None
    component = found["component"]
    unique = config.get("unique_id") or found["object"]
    told, sets = [*_told(component, config)], dict(_sets(component, config))
    shows = {one.name for one in told} | ({"power"} if component == "climate" and "mode" in sets else set())
    if component == "light" and config.get("schema") == "json":
        shows |= sets.keys()
        told = (
            [Told("power", str(config["state_topic"]), Reader())] if isinstance(config.get("state_topic"), str) else []
        )
    own = config.get("dualloop")
    get = own.get("get") if isinstance(own, dict) else None
    topics = [unique, *(value for name, value in config.items() if name.endswith("_topic")), *([get] if get else [])]
    if not told or not isinstance(unique, str) or not all(map(is_topic, topics)):
        return None
    return DiscoveredDevice(
        wire=f"{BASE}/{unique}",
        domain=COMPONENTS[component],
        name=_name(config, unique),
        bridge=f"{BASE}/{unique}",
        sets=sets,
        shows=frozenset(shows),
        # one that is off tells no mode, and may tell no brightness
        askable=frozenset(shows - {"mode", "brightness"} if get else ()),
        any_way=config.get("availability_mode") == "any",
        component=component,
        config=config,
        told=tuple(told),
        availability=tuple(_availability(config)),
        get=get if isinstance(get, str) else None,
    )


def _name(config: Mapping[str, Any], unique: str) -> str:
    device = config.get("device")
    own, whole = config.get("name"), device.get("name") if isinstance(device, dict) else None
    named = [one for one in (whole, own) if isinstance(one, str) and one]
    return " ".join(dict.fromkeys(named)) or unique


def _told(component: str, config: Mapping[str, Any]) -> Iterator[Told]:
    for name, topic_key, template_key, words, span in _values(component, config):
        topic, read = config.get(topic_key), reader(config.get(template_key))
        if isinstance(topic, str) and topic and read is not None:
            yield Told(name, topic, read, words, span)


Row = tuple[str, str, str, Mapping[str, Any], tuple[float, float] | None]


def _values(component: str, config: Mapping[str, Any]) -> Iterator[Row]:
    """Name, the keys of its topic and its template, its words, its span where that is no percentage."""
    on, off = str(config.get("payload_on", "ON")), str(config.get("payload_off", "OFF"))
    switched = {str(config.get("state_on", on)): "on", str(config.get("state_off", off)): "off"}
    kind = word(config.get("device_class"))
    match component:
        case "light":
            yield "power", "state_topic", "state_value_template", switched, None
            scale = (0.0, float(number(config.get("brightness_scale")) or 255))
            yield "brightness", "brightness_state_topic", "brightness_value_template", {}, scale
        case "switch":
            yield "power", "state_topic", "value_template", switched, None
        case "lock":
            locked, unlocked = config.get("state_locked", "LOCKED"), config.get("state_unlocked", "UNLOCKED")
            words = {str(locked): "locked", str(unlocked): "unlocked"}
            yield "lock", "state_topic", "value_template", words, None
        case "cover":
            yield "position", "position_topic", "position_template", {}, _span(config)
        case "climate":
            modes = {str(one): MODES.get(str(one), str(one)) for one in _listed(config.get("modes"))} | {"off": "off"}
            yield "mode", "mode_state_topic", "mode_state_template", modes, None
            yield "temperature", "temperature_state_topic", "temperature_state_template", {}, None
            yield "current_temperature", "current_temperature_topic", "current_temperature_template", {}, None
        case "binary_sensor":
            names = ("open", "closed") if kind in DOORS else ("on", "off")
            name = "contact" if kind in DOORS else str(kind or "state")
            yield name, "state_topic", "value_template", {on: names[0], off: names[1]}, None
        case "sensor" if kind in MEASURED:
            yield str(kind), "state_topic", "value_template", {}, None


def _sets(component: str, config: Mapping[str, Any]) -> Iterator[tuple[str, Limits]]:
    match component:
        case "light" | "switch" if "command_topic" in config:
            yield "power", ON_OFF
            as_json = config.get("schema") == "json"
            if component == "light" and (config.get("brightness") if as_json else "brightness_command_topic" in config):
                yield "brightness", (1.0, 100.0)
        case "lock" if "command_topic" in config:
            yield "lock", LOCKS
        case "cover" if "set_position_topic" in config:
            yield "position", PERCENT
        case "climate":
            modes = tuple(MODES.get(str(one), str(one)) for one in _listed(config.get("modes")) if one != "off")
            if "mode_command_topic" in config and modes:
                yield "mode", modes
                yield "power", ON_OFF
            if "temperature_command_topic" in config:
                least, most = number(config.get("min_temp")), number(config.get("max_temp"))
                yield "temperature", (float(7 if least is None else least), float(35 if most is None else most))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _span(config: Mapping[str, Any]) -> tuple[float, float]:
    shut, most = number(config.get("position_closed", 0)), number(config.get("position_open", 100))
    return (0.0, 100.0) if shut is None or most is None or shut == most else (float(shut), float(most))


def _availability(config: Mapping[str, Any]) -> Iterator[tuple[str, Reader, str, str]]:
    listed = config.get("availability")
    alone = {"topic": config.get("availability_topic"), "value_template": config.get("availability_template")}
    words = {name: config[name] for name in ("payload_available", "payload_not_available") if name in config}
    for one in listed if isinstance(listed, list) else [alone | words]:
        if not isinstance(one, dict) or not is_topic(one.get("topic")):
            continue
        read = reader(one.get("value_template"))
        if read is not None:
            here, away = one.get("payload_available", "online"), one.get("payload_not_available", "offline")
            yield one["topic"], read, str(here), str(away)
