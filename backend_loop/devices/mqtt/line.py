"""One device as this process hears it: what it said last, who waits for its word, and whether it can be reached."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from backend_loop.devices.mqtt.bridge_clock import BridgeClock, Succession
from backend_loop.devices.mqtt.dialects.described import EXACT_MS, LONGEST_WORD, Described, Heard
from backend_loop.devices.mqtt.tracker import HAND, Seen, Tracker
from backend_loop.devices.protocol import (
    ActUnknown,
    DeviceFault,
    DeviceRefused,
    DeviceUnreachable,
    OldFence,
    Reading,
    numeric,
)

SOURCE: Final = "mqtt"


class Look:
    """Somebody has asked the device, and waits for its answer.

    No answer says to what it is one. So what the broker had before the question is none, which is known by a mark that
    went to it before the question, and comes back before any answer. What may be an act's echo is none; neither is, the
    first time, what differs by a person's hand from all that was known: it may be an old state that was late. Then the
    device is asked again.
    """

    def __init__(self, names: frozenset[str], asked_at: int) -> None:
        """These names are asked for, from this moment (epoch milliseconds) on."""
        self.left, self._asked_at = {*names}, asked_at
        self.observed_at: int | None = None
        """When the device was read of whom all is told: the earliest moment that any of it was so."""
        self.stale_at: int | None = None
        """It was told what was so before the question, at this moment: a bridge's memory, or a report that was late."""
        self.again = self.posed = False
        """Whether it is to be asked again; whether what comes now was said after the broker had the question."""
        self.doubtful = False
        """Something came that is late, or whose clock was set back: only what comes some time later tells which."""
        self.lost = False
        """Whether the connection was lost since, and with it the question or the answer."""
        self.news = asyncio.Event()

    @property
    def done(self) -> bool:
        """Whether all is answered."""
        return not self.left

    def take(self, seen: Seen, heard: Heard, at: int) -> None:
        """The device said this, which was so at that moment; one that tells no time may have read itself long before.

        But not before it was asked, if this is its answer.
        """
        if heard.told_at is None:
            at = self._asked_at
        if at < self._asked_at - heard.within_ms:
            self.stale_at = at
        elif HAND in seen.moved.values():
            self.again = True
        else:
            self.again |= bool(self.left & (heard.values.keys() - seen.proved))
            self.left -= seen.proved
            at = max(at, self._asked_at)
            self.observed_at = at if self.observed_at is None else min(self.observed_at, at)
        self.news.set()


class Order:
    """Somebody has told the device something, and waits for a word of it, though that will prove nothing."""

    def __init__(self, key: str, values: Mapping[str, Any]) -> None:
        """Nothing was sent yet."""
        self.key, self.values = key, values
        self.sent = False
        self.fault: DeviceFault | None = None
        self.heard = asyncio.Event()

    def end(self, fault: DeviceFault | None = None) -> None:
        """The word has come."""
        if self.sent and not self.heard.is_set():
            self.fault = fault
            self.heard.set()


class Line:
    """One device."""

    def __init__(self, described: Described, clock: BridgeClock) -> None:
        """Nothing was heard yet."""
        self.described, self._clock = described, clock
        self.tracker = self._tracker()
        self.silent = False
        """It gave no answer when it was asked last, and has not been heard since."""
        self.there = asyncio.Event()
        """What it says is heard: it would be of no use to ask it before."""
        self.looks = set[Look]()
        self.orders = set[Order]()
        self.reported_at: int | None = None
        """When it was so what it said last, since this process has its connection."""
        self.remembered_at: int | None = None
        """When it was so what the broker has retained of it, by the device's own clock, where it tells."""
        self._told = Succession(clock)
        self.exact = False
        """It tells when what it says was so, which says more than any mark."""
        self.gone_at: int | None = None
        """Since when it is announced no more (epoch milliseconds). It is asked even so: who answers is there."""
        self._available = dict[str, bool]()

    def _tracker(self) -> Tracker:
        return Tracker(self.described.sets, optimistic=bool(self.described.askable))

    @property
    def offline(self) -> str | None:
        """The topic on which it is said not to be there: its own, or that of its bridge; None: nobody says so."""
        away = [topic for topic, here in self._available.items() if not here]
        return away[0] if away and (len(away) == len(self._available) or not self.described.any_way) else None

    def appear(self, described: Described) -> None:
        """It is announced: for the first time, again, or anew."""
        if self.gone_at is not None:
            self.gone_at, self.silent = None, False
        if described != self.described:
            self.redescribe(described)

    def vanish(self, now: int) -> None:
        """It is announced no more."""
        if self.gone_at is None:
            self.gone_at, self.silent = now, True

    def redescribe(self, described: Described) -> None:
        """It was announced anew, and is not quite what it was."""
        self.there.clear()
        same = (described.sets, described.askable) == (self.described.sets, self.described.askable)
        self.described = described
        if not same:
            self.tracker = self._tracker()

    def lose_touch(self) -> None:
        """The connection is lost: what was said of who is there, and by whom, holds no more."""
        self.there.clear()
        self._available.clear()
        self.reported_at = self.remembered_at = None
        for look in self.looks:
            look.lost = True
            look.news.set()

    def hear(self, topic: str, text: str, *, retained: bool, now: int) -> bool:
        """A message of it has come; whether somebody's change is to be told."""
        heard = self.described.hear(topic, text)
        if heard is None:
            return False
        if heard.available is not None:
            self._available[topic] = heard.available
        if heard.error is not None and not retained:
            self._refused(heard)
        if not heard.values:
            return False
        if retained:
            self.tracker.remember(heard.values)
            if heard.told_at is not None and heard.within_ms <= EXACT_MS:
                self.remembered_at = max(heard.told_at, self.remembered_at or 0)
            return False
        return self._live(heard, now)

    def _live(self, heard: Heard, now: int) -> bool:
        at, news = now, True
        looks = [look for look in self.looks if look.posed]
        self.exact = heard.told_at is not None and heard.within_ms <= EXACT_MS
        if heard.told_at is not None:
            news = self._is_news(heard)
            if self._told.overtaken(heard.told_at, now):
                for look in looks:
                    look.doubtful = True
                    look.news.set()
                return False
            at = self._clock.ours(heard.told_at, now)
        self.silent = False
        seen = self.tracker.see(heard.values if news else {}, at=at, answer=bool(looks))
        if seen.proved:
            self.reported_at = max(at, self.reported_at or 0)
        for look in looks:
            look.take(seen, heard, at)
        for order in self.orders:
            said = order.values.keys() & heard.values.keys()
            if said and all(heard.values[name] == order.values[name] for name in said):
                order.end()
        return bool(seen.moved)

    def _is_news(self, heard: Heard) -> bool:
        """Other values under the same time are of the bridge's own making: the device has not been heard since."""
        same = heard.told_at == self._told.last and heard.within_ms <= EXACT_MS
        return not same or heard.values.items() <= self.tracker.values.items()

    def _refused(self, heard: Heard) -> None:
        for order in self.orders:
            sentence = f"{{entity}} refused: {heard.error}"
            order.end(ActUnknown(sentence) if heard.perhaps else DeviceRefused(sentence))

    def answered(self, told: Mapping[str, Any]) -> None:
        """One of our own kind says what came of an act."""
        for order in self.orders:
            if order.key == told.get("key"):
                order.end(_fault(told))

    def reading(self, observed_at: int) -> Reading:
        """What it shows, read at this moment."""
        tracker = self.tracker
        return Reading(
            value=dict(tracker.values),
            version=tracker.version,
            observed_at=observed_at,
            source=SOURCE,
            changes=dict(tracker.changes),
            limits=numeric(self.described.sets),
        )


def _fault(told: Mapping[str, Any]) -> DeviceFault | None:
    detail = str(told.get("detail"))[:LONGEST_WORD]
    match told.get("code"):
        case "done":
            return None
        case "old_fence":
            return OldFence(f"{{entity}} has been taken over: {detail}")
        case "offline":
            return DeviceUnreachable(f"{{entity}} cannot be reached: {detail}")
        case "refused" | "key_reused":
            return DeviceRefused(f"{{entity}} refused: {detail}")
    return ActUnknown(f"{{entity}} was told, and what came of it is unknown: {detail}")
