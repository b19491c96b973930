"""Whose hand moved a device: what it showed, what acts wanted of it, and who changed each value last. Pure.

Every worker hears the same messages: acts announced before they are sent, and states. So each comes by itself to the
same changes, with the same versions; one that begins later takes over what the broker has retained of them.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from backend_loop.devices.protocol import Change

YOUNG_MS: Final[Mapping[str, int]] = {"position": 60_000}
"""How long after an act the device may still be on its way to what it wanted, by value."""

YOUNG_ELSE_MS: Final = 10_000
BESIDES_MS: Final = 1_000
"""What else moves within this time is a side effect: a lamp that is lit comes back with the brightness that it had."""

ECHO_MS: Final = 5_000
"""How long what merely repeats an act may be its echo, and proves nothing."""

ALIKE_MS: Final = 1_000
"""Times of one change that are no farther apart are those of two clocks or of two ways."""

FENCE_MS: Final = 60_000
"""How long a fence is remembered: a Redis that begins anew counts from 1 again, and is to be obeyed soon."""

MOST_ACTS: Final = 20
COMMAND, HAND = "command", "hand"


@dataclass(slots=True)
class Act:
    """An act that was announced; `left`: which of the values it has not reached yet. `at` in our epoch milliseconds."""

    key: str
    fence: int
    values: Mapping[str, Any]
    at: int
    left: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of one message.

    Attributes:
        proved: the values that it proves, so not what may be an act's echo.
        moved: those of them that differ from what was known, and by whom.
    """

    proved: frozenset[str]
    moved: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Known:
    value: Any
    at: int
    live: bool


@dataclass(slots=True)
class _Echo:
    """What an act wants, and was not so before; `came`: it has been said since."""

    value: Any
    since: int
    came: bool = False


class Tracker:
    """One device.

    Args:
        tracked: the values whose changes count: those that can be set.
        optimistic: its dialect repeats what was wanted before the device has obeyed, and the device can be asked: then
            only the answer counts.
    """

    def __init__(self, tracked: Collection[str], *, optimistic: bool) -> None:
        """Nothing is known yet."""
        self.values: dict[str, Any] = {}
        """The newest of each, from whatever source."""
        self.changes: dict[str, Change] = {}
        self._tracked, self._optimistic = frozenset(tracked), optimistic
        self._known: dict[str, _Known] = {}
        self._acts: list[Act] = []
        self._echo: dict[str, _Echo] = {}

    @property
    def version(self) -> str:
        """Of all that it shows: another after each change, and the same wherever the same was heard."""
        changes = {name: change.version for name, change in self.changes.items()}
        return _hashed([self.values, changes])

    def newest_fence(self, now: int) -> int:
        """Of the holders of this device whose acts are remembered; 0: there is none."""
        return max((act.fence for act in self._acts if now - act.at < FENCE_MS), default=0)

    def announce(self, key: str, fence: int, values: Mapping[str, Any], now: int) -> None:
        """An act is about to be sent, by whichever worker."""
        acts = [act for act in self._acts if act.key != key and now - act.at < max(FENCE_MS, *YOUNG_MS.values())]
        self._acts = [*acts, Act(key, fence, dict(values), now, {*values})][-MOST_ACTS:]
        if self._optimistic:
            self._echo = {name: _Echo(value, now) for name, value in values.items() if self.values.get(name) != value}

    def see(self, values: Mapping[str, Any], *, at: int, answer: bool) -> Seen:
        """The device shows these values now (`at`); `answer`: because it was asked.

        A change that comes to light because we ask was made at some time since the device was seen last; the earliest
        possible one is taken, so that it never passes for newer than a command that it may be older than.
        """
        proved = {name: value for name, value in values.items() if not self._echoes(name, value, at, answer=answer)}
        self.values |= proved
        by = dict[str, str]()
        for name in self._tracked & proved.keys():
            known = self._known.get(name)
            self._known[name] = _Known(proved[name], at, live=True)
            if known is not None and known.value != proved[name]:
                by[name] = self._mover(name, known.value, proved[name], at)
                unsure = by[name] == HAND and (answer or not known.live)
                self._change(name, proved[name], by[name], known.at if unsure else at)
        return Seen(frozenset(proved), by)

    def remember(self, values: Mapping[str, Any]) -> None:
        """The broker has retained these values: they are shown where nothing newer is known, and prove nothing."""
        self.values |= values
        for name in self._tracked & values.keys():
            self._known.setdefault(name, _Known(values[name], 0, live=False))

    def adopt(self, told: Mapping[str, tuple[Change, Any]]) -> bool:
        """Take over the changes that another worker, or an earlier one, has told, each with the value since.

        Returns:
            Whether what is known here is newer, and is to be told.
        """
        differ = False
        for name, (change, value) in told.items():
            mine = self.changes.get(name)
            if name not in self._tracked:
                continue
            if mine is not None and mine.version == change.version:
                if change.at < mine.at:  # who had asked knows that it may be older
                    self.changes[name] = change
                differ |= change.at - mine.at > ALIKE_MS
                continue
            if mine is not None and (mine.at, mine.version) > (change.at, change.version):
                differ = True
                continue
            self._take_over(name, change, value)
        return differ or not self.changes.keys() <= told.keys()

    def _take_over(self, name: str, change: Change, value: Any) -> None:
        known = self._known.get(name)
        self.changes[name] = change
        self._known[name] = _Known(value, change.at, live=False)
        if known is None or not known.live:
            self.values.setdefault(name, value)
        elif known.value == value or known.at >= change.at:
            self._known[name] = known
            if known.value != value:
                self._change(name, known.value, HAND, change.at)
        else:
            self.values[name] = value

    def told(self) -> dict[str, tuple[Change, Any]]:
        """The changes, as they are handed on."""
        return {name: (change, self._known[name].value) for name, change in self.changes.items()}

    def _echoes(self, name: str, value: Any, at: int, *, answer: bool) -> bool:
        """What merely repeats an act may be its echo: all of it until the device is asked, and once after that."""
        echo = self._echo.get(name)
        if echo is None:
            return False
        if at - echo.since > ECHO_MS or (answer and echo.came):
            del self._echo[name]
            return False
        if echo.value != value:
            return False
        echo.came = True
        return True

    def _mover(self, name: str, before: Any, now: Any, at: int) -> str:
        for act in reversed(self._acts):
            age = at - act.at
            if name not in act.values:
                if 0 <= age < BESIDES_MS:
                    return COMMAND
                continue
            if age >= YOUNG_MS.get(name, YOUNG_ELSE_MS) or name not in act.left:
                continue
            if now == act.values[name]:
                act.left.discard(name)
                return COMMAND
            if _nearer(before, now, act.values[name]):
                return COMMAND
        return HAND

    def _change(self, name: str, value: Any, by: str, at: int) -> None:
        before = self.changes.get(name)
        version = _hashed([before.version if before is not None else "", value, by])
        self.changes[name] = Change(by=by, version=version, at=at)


def _nearer(before: Any, now: Any, wanted: Any) -> bool:
    numbers = [one for one in (before, now, wanted) if isinstance(one, int | float) and not isinstance(one, bool)]
    return len(numbers) == 3 and abs(numbers[2] - numbers[1]) < abs(numbers[2] - numbers[0])


def _hashed(what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
