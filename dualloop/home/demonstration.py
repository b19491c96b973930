"""The devices of the demonstration home, as they stand at its first start."""

from typing import Any, Final

from dualloop.home.model import Device, Limits
from shared.actions import MODES

_POWER: Final[Limits] = ["on", "off"]
_PERCENT: Final[Limits] = (0, 100)
_LIGHT: Final[dict[str, Limits]] = {"power": _POWER, "brightness": (1, 100)}
_CLIMATE: Final[dict[str, Limits]] = {"power": _POWER, "temperature": (16, 30), "mode": list(MODES)}
_LIGHT_OFF: Final[dict[str, Any]] = {"power": "off", "brightness": 80}


def demonstration() -> dict[str, Device]:
    """The devices, by entity."""
    devices = [
        *(
            Device(entity=f"light.{room}", limits=_LIGHT, value=_LIGHT_OFF)
            for room in ("living_room", "bedroom", "kitchen", "study", "hall")
        ),
        *(
            Device(entity=f"climate.{room}", limits=_CLIMATE, value={"power": "off", "temperature": 24, "mode": "cool"})
            for room in ("living_room", "bedroom")
        ),
        Device(entity="cover.living_room", limits={"position": _PERCENT}, value={"position": 0}),
        Device(entity="lock.front_door", limits={"lock": ["locked", "unlocked"]}, value={"lock": "locked"}),
        Device(
            entity="media_player.living_room",
            limits={"power": _POWER, "volume": _PERCENT, "playback": ["playing", "paused"]},
            value={"power": "off", "volume": 30, "playback": "paused"},
        ),
        Device(
            entity="sensor.living_room", limits={"temperature": (-40, 60), "humidity": _PERCENT}, value=_air(22.5, 45)
        ),
        Device(entity="sensor.bedroom", limits={"temperature": (-40, 60), "humidity": _PERCENT}, value=_air(20.5, 50)),
        Device(entity="sensor.front_door", limits={"contact": ["open", "closed"]}, value={"contact": "closed"}),
    ]
    return {device.entity: device for device in devices}


def _air(temperature: float, humidity: float) -> dict[str, Any]:
    return {"temperature": temperature, "humidity": humidity}
