"""The devices of the demonstration home, as they stand at its first start, and by which wire each is reached."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from dualloop.home.model import Device, Limits
from shared.actions import MODES

_POWER: Final[Limits] = ["on", "off"]
_PERCENT: Final[Limits] = (0, 100)
_LIGHT: Final[dict[str, Limits]] = {"power": _POWER, "brightness": (1, 100)}
_CLIMATE: Final[dict[str, Limits]] = {"power": _POWER, "temperature": (16, 30), "mode": list(MODES)}
_AIR: Final[dict[str, Limits]] = {"temperature": (-40, 60), "humidity": _PERCENT}
_LIGHT_OFF: Final[dict[str, Any]] = {"power": "off", "brightness": 80}
_CLIMATE_OFF: Final[dict[str, Any]] = {"power": "off", "temperature": 24, "mode": "cool"}

WIRES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "light.living_room": "zigbee2mqtt/living_room/lamp",
        "light.bedroom": "zigbee2mqtt/bedroom/lamp",
        "light.kitchen": "tasmota/kitchen_lamp",
        "light.study": "tasmota/study_lamp",
        "light.hall": "zigbee2mqtt/hall/lamp",
        **{f"climate.{room}": f"homeassistant/dualloop_{room}_ac" for room in ("living_room", "bedroom", "study")},
        **{f"cover.{room}": f"homeassistant/dualloop_{room}_blind" for room in ("living_room", "bedroom", "kitchen")},
        "lock.front_door": "zigbee2mqtt/front_door/lock",
        "media_player.living_room": "zigbee2mqtt/living_room/speaker",
        "switch.oven": "tasmota/oven",
        **{f"sensor.{room}": f"tasmota/{room}_air" for room in ("living_room", "bedroom", "kitchen")},
        "sensor.front_door": "zigbee2mqtt/front_door/contact",
    }
)
"""What each is called over MQTT: the dialect, then the device's name in it."""


def demonstration() -> dict[str, Device]:
    """The devices, by entity."""
    devices = [
        *(
            Device(entity=f"light.{room}", limits=_LIGHT, value=_LIGHT_OFF)
            for room in ("living_room", "bedroom", "kitchen", "study", "hall")
        ),
        *(
            Device(entity=f"climate.{room}", limits=_CLIMATE, value=_CLIMATE_OFF)
            for room in ("living_room", "bedroom", "study")
        ),
        *(
            Device(entity=f"cover.{room}", limits={"position": _PERCENT}, value={"position": 0})
            for room in ("living_room", "bedroom", "kitchen")
        ),
        Device(entity="lock.front_door", limits={"lock": ["locked", "unlocked"]}, value={"lock": "locked"}),
        Device(
            entity="media_player.living_room",
            limits={"power": _POWER, "volume": _PERCENT, "playback": ["playing", "paused"]},
            value={"power": "off", "volume": 30, "playback": "paused"},
        ),
        Device(entity="switch.oven", limits={"power": _POWER}, value={"power": "off"}),
        Device(entity="sensor.living_room", limits=_AIR, value=_air(22.5, 45)),
        Device(entity="sensor.bedroom", limits=_AIR, value=_air(20.5, 50)),
        Device(entity="sensor.kitchen", limits=_AIR, value=_air(23.5, 40)),
        Device(entity="sensor.front_door", limits={"contact": ["open", "closed"]}, value={"contact": "closed"}),
    ]
    return {device.entity: device for device in devices}


def _air(temperature: float, humidity: float) -> dict[str, Any]:
    return {"temperature": temperature, "humidity": humidity}
