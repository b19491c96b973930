"""What a dialect makes of an announcement: a device, with all that is needed to hear, ask and tell it. Pure."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

Limits = tuple[str, ...] | tuple[float, float]
"""The words that a value may have, or the smallest and largest number."""

ON_OFF: Final[Limits] = ("on", "off")
PERCENT: Final[Limits] = (0.0, 100.0)
LOCKS: Final[Limits] = ("locked", "unlocked")
EXACT_MS: Final = 5
"""How far a time told in milliseconds may be off once it is put on our clock: it was rounded, here and there."""

LONGEST_TOPIC: Final = 1_000
MOST_LEVELS: Final = 100
"""Of a topic that a device names; mosquitto takes 200, with what stands before and behind it."""

NO_TOPIC: Final = re.compile(
    "[+#\\x00-\\x1f\\x7f-\\x9f\\ufdd0-\\ufdef"
    + "".join(rf"\U{plane:04x}fffe\U{plane:04x}ffff" for plane in range(17))
    + "]"
)
"""Wildcards, control characters, and what Unicode keeps from being a character: MQTT 3.1.1, 1.5.3 and 4.7."""

LONGEST: Final = 65_536
"""Characters of a message of one device; what is longer is none."""

LONGEST_WORD: Final = 500
"""Characters of what a device says about an act of ours: more is for its own log."""

LARGEST: Final = 1e12
"""No number of a device is larger: what is would only trip whoever calculates with it."""

INSTANTS: Final = range(7_258_118_400_000)
"""What may be a moment, in epoch milliseconds: from 1970 to 2199."""


def is_topic(text: Any) -> bool:
    """Whether one can publish there, and listen there alone."""
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TOPIC or text.startswith("$"):
        return False
    return text.count("/") < MOST_LEVELS and NO_TOPIC.search(text) is None


class Message(NamedTuple):
    """What is published, never retained: a retained command would be obeyed again by whoever reconnects."""

    topic: str
    payload: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What one message says of a device.

    Attributes:
        values: what it shows, of some names or all.
        available: whether it, its bridge or the broker says on this topic that it is there.
        told_at: when it says that this was so, epoch milliseconds on a clock of its own.
        within_ms: how exact that is.
        error: it was told something, and says no; a sentence.
        perhaps: that error leaves open whether something was done.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    available: bool | None = None
    told_at: int | None = None
    within_ms: int = EXACT_MS
    error: str | None = None
    perhaps: bool = False


class Unfit(ValueError):  # noqa: N818  what a device answers, not a fault of the program
    """The device cannot do that; the text is a sentence without its subject."""


@dataclass(frozen=True, kw_only=True)
class Described(ABC):
    """One device.

    Attributes:
        wire: its name across all dialects, as an inventory binds it: ``zigbee2mqtt/kitchen/lamp``.
        domain: what it is, the first half of an entity: ``light switch climate cover lock media_player sensor``.
        name: what people call it there.
        bridge: whose clock its times are told on.
        sets: the values that it can be told, each with its limits.
        shows: the values that it tells of itself.
        askable: those of them that it tells when it is asked; empty: it cannot be asked.
        any_way: it is there if it is so by any of the topics that say so; else by all.
    """

    wire: str
    domain: str
    name: str
    bridge: str
    sets: Mapping[str, Limits]
    shows: frozenset[str]
    askable: frozenset[str]
    any_way: bool = False

    @property
    def entity(self) -> str:
        """What it is called where no inventory names it."""
        return f"{self.domain}.{_slug(self.name) or _slug(self.wire)}"

    @property
    @abstractmethod
    def topics(self) -> tuple[str, ...]:
        """Where it speaks."""

    @abstractmethod
    def hear(self, topic: str, text: str) -> Heard | None:
        """What a message on one of these says; None: nothing of this device."""

    @abstractmethod
    def questions(self) -> tuple[Message, ...]:
        """What makes it say how it is now."""

    @abstractmethod
    def orders(self, values: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[Message, ...]:
        """What makes it show these values, which `fit`; `known` is what it shows as far as is known."""

    def fit(self, values: Mapping[str, Any]) -> None:
        """Whether it can be told to show these.

        Raises:
            Unfit: it cannot.
        """
        for name, value in values.items():
            limits = self.sets.get(name)
            if limits is None:
                raise Unfit(f"has no {name} that can be set")
            least, most = limits[0], limits[-1]
            if isinstance(least, str) or isinstance(most, str):
                if value not in limits:
                    raise Unfit(f"has no {name} {value}: it knows {', '.join(map(str, limits))}")
            elif isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
                raise Unfit(f"takes a {name} from {least:g} to {most:g}, not {value}")


def _slug(name: str) -> str:
    """Of a name in any script its letters and digits, joined; with their marks, which are vowels in some."""
    letters = ""
    for one in unicodedata.normalize("NFC", name.lower()):
        is_mark = letters[-1:] not in {"", "_"} and unicodedata.category(one).startswith("M")
        letters += one if one.isalnum() or is_mark else "_"
    return re.sub("_+", "_", letters).strip("_")


def document(text: str) -> Any:
    """A message as JSON; None: it is none, or longer than devices have reason to write."""
    if len(text) > LONGEST:
        return None
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return None


def mapping(text: str) -> Mapping[str, Any]:
    """A message that should be a JSON object; an empty one if it is not."""
    found = document(text)
    return found if isinstance(found, dict) else {}


def word(value: Any) -> str | None:
    """A text, which may be looked for among others; None: it is none."""
    return value if isinstance(value, str) else None


def number(value: Any) -> int | float | None:
    """A number, as one was sent or in digits; a whole one as such."""
    if isinstance(value, str):
        value = document(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not -LARGEST <= value <= LARGEST:
        return None
    return int(value) if value == int(value) else value


def percent(raw: Any, most: float) -> int | None:
    """A level of 0 to `most` in percent; what glows at all is at least 1."""
    level = number(raw)
    if level is None:
        return None
    return max(1, round(min(100.0, level * 100 / most))) if level > 0 else 0


def level_of(value: float, most: float) -> int:
    """The other way."""
    return round(value * most / 100)
