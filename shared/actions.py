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
