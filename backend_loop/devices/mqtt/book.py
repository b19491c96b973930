"""Which devices there are, by what the broker has retained of their announcements. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from backend_loop.devices.mqtt.dialects import discovery, tasmota, zigbee2mqtt
from backend_loop.devices.mqtt.dialects.described import Described, is_topic, mapping

LONGEST: Final = 16 * 1024 * 1024
"""Characters of an announcement: a bridge lists all of its devices in one."""


class Book:
    """All devices that were announced.

    Args:
        bases: where Zigbee2MQTT bridges speak.
        prefix: where Home Assistant's discovery is.
    """

    def __init__(self, bases: Sequence[str], prefix: str) -> None:
        """Nothing was announced yet."""
        self._bases, self._prefix = tuple(bases), prefix
        self._zigbee = dict[str, list[zigbee2mqtt.ZigbeeDevice]]()
        self._parts = dict[str, dict[str, Mapping[str, Any]]]()
        self._tasmota = dict[str, list[tasmota.TasmotaDevice]]()
        self._discovered = dict[str, discovery.DiscoveredDevice]()

    @property
    def topics(self) -> list[tuple[str, ...]]:
        """Where announcements are made, those of each kind together."""
        kinds = [f"{self._prefix}/{component}" for component in discovery.COMPONENTS]
        configs = [(f"{kind}/+/config", f"{kind}/+/+/config") for kind in kinds]
        bridges = tuple(f"{base}/bridge/devices" for base in self._bases)
        return [(*bridges, f"{tasmota.BASE}/discovery/+/+"), *configs]

    def hear(self, topic: str, text: str) -> bool:
        """A message; whether it was an announcement."""
        if len(text) > LONGEST:
            return False
        base = topic.removesuffix("/bridge/devices")
        if base != topic and base in self._bases:
            devices = zigbee2mqtt.announced(base, text)
            if devices is not None:
                self._zigbee[base] = [one for one in devices if _is_addressable(one)]
            return True
        if (found := tasmota.CONFIG.fullmatch(topic)) is not None:
            parts = self._parts.get(found["mac"], {}) | {found["part"]: mapping(text)}
            self._parts[found["mac"]] = parts
            # here, and not once all are listed: what trips us is to cost its own announcement, and no other device
            outputs = tasmota.announced(parts.get("config", {}), parts.get("sensors", {}))
            self._tasmota[found["mac"]] = [one for one in outputs if _is_addressable(one)]
            if not any(parts.values()):
                del self._parts[found["mac"]], self._tasmota[found["mac"]]
            return True
        if topic.startswith(f"{self._prefix}/") and topic.endswith("/config"):
            device = discovery.announced(self._prefix, topic, text)
            if device is None or not _is_addressable(device):
                self._discovered.pop(topic, None)
            else:  # in its old place: of two with one id the first has it, however often either is announced
                self._discovered[topic] = device
            return True
        return False

    def devices(self) -> dict[str, Described]:
        """By wire name. Bridges that announce their devices to Home Assistant besides are not heard twice."""
        own: dict[str, Described] = {device.wire: device for device in self._own()}
        taken = {topic for device in own.values() for topic in device.topics}
        for device in self._discovered.values():
            if taken.isdisjoint(one.topic for one in device.told):
                own.setdefault(device.wire, device)
        return own

    def _own(self) -> Iterator[Described]:
        for zigbee in self._zigbee.values():
            yield from zigbee
        for relays in self._tasmota.values():
            yield from relays


def _is_addressable(device: Described) -> bool:
    """Whether each of its topics is one: for any other a broker drops who listens there, and he loses the home."""
    return all(map(is_topic, (device.wire, *device.topics)))


def entities(devices: Mapping[str, Described], bindings: Mapping[str, str]) -> dict[str, str]:
    """Wire name by entity: as the inventory binds them, else by what they are and are called; the first one has it.

    What the inventory binds is nobody else's while that one is away: a lock is not to be opened in another one's name.
    """
    bound = {entity: wire for wire, entity in bindings.items() if wire in devices}
    named, taken = set(bound.values()), set(bindings.values())
    for wire, device in sorted(devices.items()):
        if wire not in named and device.entity not in taken:
            bound.setdefault(device.entity, wire)
    return bound
