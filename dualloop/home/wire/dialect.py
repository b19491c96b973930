"""What a dialect of MQTT is to the simulated home: topics and payloads in, values out, and the other way round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from dualloop.home.model import Device, Reading

LONGEST: Final = 10_000
"""Bytes of a message that are read; what is longer is no command for a lamp."""


class Message(NamedTuple):
    """What is published."""

    topic: str
    payload: str
    retain: bool = False


class Named(NamedTuple):
    """A device under the name that it has in its dialect."""

    name: str
    device: Device


@dataclass(frozen=True, slots=True)
class Set:
    """A device is told to show these values."""

    name: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Get:
    """A device is asked how it is; ``what`` is the question's name, where a dialect has several."""

    name: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Unclear:
    """A device was told something that it does not understand; the sentence says what."""

    name: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Again:
    """Somebody has just come who wants to hear all announcements."""


Heard = Set | Get | Unclear | Again | None


class Dialect(Protocol):
    """The devices that share one connection, as one bridge or one device would have it."""

    prefix: str
    """Of the names by which the rest of the system knows these devices: ``prefix/name``."""
    will: Message
    """What the broker says once the connection is lost."""
    devices: tuple[Named, ...]

    def subscriptions(self) -> list[str]:
        """The topics to listen on."""

    def hello(self, here: Mapping[str, bool]) -> list[Message]:
        """What is said after each connect: who there is, and who of them can be reached."""

    def presence(self, name: str, *, here: bool) -> list[Message]:
        """A device is there, or is not."""

    def report(self, named: Named, reading: Reading, changed: frozenset[str]) -> list[Message]:
        """How a device says by itself that it is now."""

    def answer(self, get: Get, named: Named, reading: Reading) -> list[Message]:
        """How it answers a question."""

    def failed(self, name: str, sentence: str, *, here: bool) -> list[Message]:
        """How it is said that a device did not do what it was told; one that is not ``here`` cannot say so itself."""

    def hear(self, topic: str, payload: bytes) -> Heard:
        """What a message means; None: nothing to these devices."""


def text_of(payload: bytes) -> str:
    """A payload as text.

    Raises:
        ValueError: it is none, or far too long for a device.
    """
    if len(payload) > LONGEST:
        raise ValueError("the message is too long")
    return payload.decode()
