"""The vocabulary of devices: what each action asks for, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a device can be told.

    Attributes:
        aspect: what it is about; a newer command replaces an older one of the same aspect only.
        sets: the values that a device shows once it has obeyed.
        field: the value that the command's own value goes to, if it takes one.
        between: smallest and largest value of a number; the device may be narrower.
        choices: the words allowed, where the value is a word.
    """

    aspect: str
    sets: Mapping[str, Any] = field(default_factory=dict)
    field: str | None = None
    between: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """More or less of a value: what is to be so is only known once the device has been seen.

    Attributes:
        action: what it comes to.
        most: the largest amount, up or down.
    """

    action: str
    most: float


_ON: Final = {"power": "on"}
_OFF: Final = {"power": "off"}
_PERCENT: Final = (0, 100)
MODES: Final = ("auto", "cool", "heat", "dry", "fan")

ACTIONS: Final[Mapping[str, Action]] = MappingProxyType(
    {
        "turn_on": Action("power", _ON),
        "turn_off": Action("power", _OFF),
        # a lamp told its brightness lights, an air conditioner told its temperature starts: that is what people mean
        "set_brightness": Action("brightness", _ON, "brightness", between=(1, 100)),
        "set_temperature": Action("temperature", _ON, "temperature", between=(5, 35)),
        "set_mode": Action("mode", _ON, "mode", choices=MODES),
        "open": Action("position", {"position": 100}),
        "close": Action("position", {"position": 0}),
        "set_position": Action("position", field="position", between=_PERCENT),
        "lock": Action("lock", {"lock": "locked"}),
        "unlock": Action("lock", {"lock": "unlocked"}),
        "set_volume": Action("volume", field="volume", between=_PERCENT),
        "play": Action("playback", {"playback": "playing"}),
        "pause": Action("playback", {"playback": "paused"}),
    }
)


CHANGES: Final[Mapping[str, Change]] = MappingProxyType(
    {
        "change_brightness": Change("set_brightness", 100),
        "change_temperature": Change("set_temperature", 10),
        "change_position": Change("set_position", 100),
        "change_volume": Change("set_volume", 100),
    }
)


NO_LIMITS: Final[Mapping[str, tuple[float, float]]] = MappingProxyType({})


def wanted(action: str, value: Any = None) -> dict[str, Any]:
    """The values a device shows once it has done this.

    Raises:
        ValueError: no such action, or a value that does not belong to it; the sentence says which.
    """
    known = ACTIONS.get(action)
    if known is None:
        raise ValueError(f"{action!r} is no action; there are {', '.join(ACTIONS)}")
    if known.field is None:
        if value is not None:
            raise ValueError(f"{action} takes no value")
        return dict(known.sets)
    if known.choices and value not in known.choices:
        raise ValueError(f"{action} takes one of {', '.join(known.choices)}, not {value!r}")
    if known.between is not None:
        low, high = known.between
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"{action} takes a number from {low} to {high}, not {value!r}")
    return {**known.sets, known.field: value}


def check(action: str, value: Any = None) -> None:
    """An action that there is, and a value that belongs to it; also of a change.

    Raises:
        ValueError: as `wanted`.
    """
    if (change := CHANGES.get(action)) is None:
        wanted(action, value)
    elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < abs(value) <= change.most:
        raise ValueError(f"{action} takes a number from -{change.most} to {change.most} and not 0, not {value!r}")


def settled(
    action: str, by: float, shown: Mapping[str, Any], limits: Mapping[str, tuple[float, float]] = NO_LIMITS
) -> tuple[str, Any]:
    """What a change comes to for a device that shows this: an action of its own, and its value.

    What is off has no brightness: brighter lights it by so much, and darker leaves it off. An air conditioner that is
    off is left off: warmer or cooler than what it does not do is nothing, and nobody has asked for it to start.

    Args:
        action: a change.
        by: how much, up or down.
        shown: by the device.
        limits: the device's own, where it tells them; what is at one stays there, and is never moved the other way.

    Raises:
        ValueError: the device does not show what is to be changed.
    """
    told = CHANGES[action].action
    known = ACTIONS[told]
    field, (low, high) = known.field or "", known.between or _PERCENT
    off = known.sets.get("power") == "on" and shown.get("power") == "off"
    dark = off and field == "brightness"
    if off and (by < 0 or not dark):
        return "turn_off", None
    now = 0 if dark else shown.get(field)
    if isinstance(now, bool) or not isinstance(now, int | float):
        raise ValueError(f"it does not show its {field}")  # noqa: TRY004  the caller's arguments are right
    least, most = limits.get(field, (low, high))
    reached = min(max(now + by, least), most)
    if (reached - now) * by < 0:
        reached = now
    return told, min(high, max(low, reached))
