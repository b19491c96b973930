"""The running home: its devices, their gates and their memory on disk."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from dualloop.home import model
from dualloop.home.demonstration import demonstration
from dualloop.home.gate import Gate, Point
from dualloop.home.model import Device, Effect, Faults, Order, Reading
from dualloop.home.store import Store

SILENCE_S: Final = 120.0
"""How long a silent device keeps a request: longer than anybody waits."""

AHEAD_MS: Final = 100
"""So far ahead of the clock a device's time may run at most; by more, and the clock was set back."""


class Unreachable(Exception):  # noqa: N818  a device's state, not a fault of the program
    """The bridge cannot reach the device: nothing happened."""


class Silent(Exception):  # noqa: N818  as above
    """The device gave no answer; whether it acted is not known to the bridge."""


class KeyReused(Exception):  # noqa: N818  as above
    """The key belongs to another order."""


class NoDevice(Exception):  # noqa: N818  as above
    """There is no such device in this home."""


class Watcher(Protocol):
    """Who is told what the devices say by themselves; neither method may wait."""

    def shown(self, entity: str, reading: Reading, changed: frozenset[str]) -> None:
        """A device says how it is, and names the values that are new."""

    def present(self, entity: str, *, here: bool) -> None:
        """A device can be reached from now on, or not."""


class House:
    """The devices as one; every method that takes an entity may raise `NoDevice`.

    Args:
        store: its memory; devices that it does not know yet start as in the demonstration.
        now: the clock, in epoch milliseconds.
    """

    def __init__(self, store: Store, now: Callable[[], int]) -> None:
        """Find everything as it was left."""
        self.devices = demonstration() | store.devices()
        self._store = store
        self._clock, self._last = now, dict.fromkeys(self.devices, 0)
        self._gates = {entity: Gate() for entity in self.devices}
        self._loud = {entity: asyncio.Event() for entity in self.devices}
        self.watchers: list[Watcher] = []

    def _now(self, entity: str) -> int:
        """No moment twice: of two states of a device under one time, nobody could tell which is the later one."""
        now, last = self._clock(), self._last[entity]
        self._last[entity] = last + 1 if 0 <= last - now < AHEAD_MS else now
        return self._last[entity]

    def device(self, entity: str) -> Device:
        """It, as it stands."""
        if entity not in self.devices:
            raise NoDevice(f"there is no {entity} in this home")
        return self.devices[entity]

    def gate(self, entity: str) -> Gate:
        """Where its requests can be held."""
        return self._gates[self.device(entity).entity]

    def look(self, entity: str) -> Reading:
        """What a person before the device sees, whatever its faults."""
        device = self.device(entity).model_copy(update={"stale": None})
        return model.observe(device, self._clock())

    async def observe(self, entity: str) -> Reading:
        """Read through the bridge.

        Raises:
            Unreachable, Silent: as its faults say.
        """
        await self._reach(entity, Point.OBSERVE)
        reading = model.observe(self.devices[entity], self._now(entity))
        await self.gate(entity).pass_by(Point.OBSERVED)
        return reading

    async def act(self, entity: str, order: Order) -> None:
        """Act through the bridge, once per key.

        Raises:
            Unreachable, Silent: as its faults say.
            KeyReused, model.Fenced, model.Refused: nothing was done.
        """
        await self._reach(entity, Point.ACT)
        before = self.devices[entity]
        self._carry_out(entity, order)
        await self._answer(before, model.asked(before, order))

    async def meddle(self, entity: str, values: dict[str, Any]) -> None:
        """Act through the bridge without a key, as an app does that is none of ours.

        Raises:
            Unreachable, Silent: as its faults say.
            model.Refused: nothing was done.
        """
        await self._reach(entity, Point.ACT)
        before = self.devices[entity]
        device, effect = model.meddle(before, values, self._now(entity))
        self._keep(device, effect)
        await self._answer(before, values)

    def hand(self, entity: str, values: dict[str, Any]) -> None:
        """A person's hand on the device.

        Raises:
            model.Refused: it has no such value.
        """
        before = self.device(entity)
        device, effect = model.hand(before, values, self._now(entity))
        self._keep(device, effect)
        self._show(before)

    def break_down(self, entity: str, faults: Faults) -> None:
        """Give it these faults; one that comes back says how it is."""
        before = self.device(entity)
        self._keep(model.break_down(before, faults, self._now(entity)))
        self._loud[entity].set()  # whoever waits in silence looks again
        self._loud[entity] = asyncio.Event()
        if before.faults.offline != faults.offline:
            for watcher in self.watchers:
                watcher.present(entity, here=not faults.offline)
            self._show(before, all_new=True)

    def journal(self, entity: str) -> list[Effect]:
        """What physically happened to it, in order."""
        return self._store.journal(self.device(entity).entity)

    async def _reach(self, entity: str, point: Point) -> None:
        await self.gate(entity).pass_by(point)
        await asyncio.sleep(self.devices[entity].faults.latency_ms / 1000)
        if self.devices[entity].faults.silent:
            try:
                async with asyncio.timeout(SILENCE_S):
                    await self._loud[entity].wait()
            except TimeoutError:
                pass
            raise Silent(f"{entity} did not answer")
        if self.devices[entity].faults.offline:
            raise Unreachable(f"{entity} is offline")

    async def _answer(self, before: Device, values: dict[str, Any]) -> None:
        """What follows an effect: the device's word that it obeyed, and how it says that it is now."""
        entity = before.entity
        await self.gate(entity).pass_by(Point.ACTED)
        faults = self.devices[entity].faults
        await asyncio.sleep(faults.act_latency_ms / 1000)
        if faults.lose_answer:
            raise Silent(f"{entity} did not answer in time")
        self._show(before, values if faults.lie else {})

    def _show(self, before: Device, pretended: dict[str, Any] | None = None, *, all_new: bool = False) -> None:
        device = self.devices[before.entity]
        if device.faults.offline or device.faults.silent:
            return
        reading = model.observe(device, self._now(device.entity))
        reading = reading.model_copy(update={"value": reading.value | (pretended or {})})
        new = {name for name, value in reading.value.items() if all_new or before.value[name] != value}
        for watcher in self.watchers:
            watcher.shown(device.entity, reading, frozenset(new))

    def _carry_out(self, entity: str, order: Order) -> None:
        known = self._store.order(order.key)
        if known is not None:
            self._repeat(entity, order, known)
            return
        device, effect = model.apply(self.devices[entity], order, self._now(entity))
        self._keep(device, effect, order)

    def _repeat(self, entity: str, order: Order, known: tuple[str, Order]) -> None:
        if known != (entity, order.model_copy(update={"fence": known[1].fence})):
            raise KeyReused(f"key {order.key!r} was used for another order")
        if order.fence > self.devices[entity].fence:
            device = self.devices[entity].model_copy(update={"fence": order.fence, "fenced_at": self._now(entity)})
            self._keep(device)

    def _keep(self, device: Device, effect: Effect | None = None, order: Order | None = None) -> None:
        self._store.save(device, effect, order)
        self.devices[device.entity] = device
