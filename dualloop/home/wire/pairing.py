"""Which announced act a device's set belongs to. Pure: the clock, in epoch milliseconds, is handed in.

An act is announced on ``dualloop/acts/…`` with its key, its fence and the values that it wants, and then told in the
device's own dialect, in one message or in several. So what belongs to it is collected until all of it is there, and
carried out once. What nobody announced is somebody else's doing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

YOUNG_MS: Final = 10_000
"""An announcement that nothing has followed for so long is forgotten."""

AGAIN_MS: Final = 2_000
"""What is told once more within this time, and was part of an act, is that act again: brokers may deliver twice."""

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Announced:
    """What an act's announcement says."""

    key: str
    fence: int
    values: Values


@dataclass(frozen=True, slots=True)
class Due:
    """What is to be carried out now; ``act`` is None for what nobody announced."""

    act: Announced | None
    values: Values


@dataclass(slots=True)
class Pairing:
    """The acts of one device: what is announced and not yet complete, and the one before."""

    act: Announced | None = None
    announced_at: int = 0
    got: dict[str, Any] = field(default_factory=dict)
    last: Due | None = None
    last_at: int = 0

    def announce(self, act: Announced, now: int) -> Due | None:
        """An act is coming; what has come of the one before it is due."""
        due = self.give_up(self.act, now)
        self.act, self.announced_at, self.got = act, now, {}
        return due

    def take(self, values: Values, shown: Values, now: int) -> Due | None:
        """A set came, while the device shows this; None: its act waits for the rest."""
        act = self.act if now - self.announced_at < YOUNG_MS else None
        if act is None or not _belongs(values, act.values):
            last = self.last
            again = last is not None and now - self.last_at < AGAIN_MS and _belongs(values, last.values)
            return last if again else Due(None, values)
        self.got |= values
        missing = act.values.keys() - self.got.keys()
        if any(name not in shown or shown[name] != act.values[name] for name in missing):
            return None
        return self._done(act, now)

    def give_up(self, act: Announced | None, now: int) -> Due | None:
        """Nothing more comes for this act; what has come is due."""
        if act is None or act is not self.act or not self.got:
            return None
        return self._done(act, now)

    def _done(self, act: Announced, now: int) -> Due:
        due = Due(act, self.got)
        self.act, self.got, self.last, self.last_at = None, {}, due, now
        return due


def _belongs(told: Values, wanted: Values) -> bool:
    common = told.keys() & wanted.keys()
    return bool(common) and all(told[name] == wanted[name] for name in common)
