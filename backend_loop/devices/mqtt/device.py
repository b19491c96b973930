"""A `Device` for everything behind one MQTT broker."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import aiomqtt

from backend_loop.devices.mqtt.book import entities
from backend_loop.devices.mqtt.bridge_clock import TICKS_MS
from backend_loop.devices.mqtt.dialects.described import Described, Unfit
from backend_loop.devices.mqtt.hub import ACTS, Hub
from backend_loop.devices.mqtt.line import Line, Look, Order
from backend_loop.devices.protocol import (
    ActUnknown,
    Command,
    DeviceRefused,
    DeviceUnreachable,
    OldFence,
    Reading,
    UnknownEntity,
)
from shared.actions import wanted
from shared.clock import now_ms, rfc3339
from shared.loop import Loop
from shared.mqtt import MqttUrl, MqttUrlError
from shared.settings import Settings

SHORT_S: Final = 0.3
"""How long who is said to be away, or gave no answer last time, is waited for."""

STALE_S: Final = 0.3
"""How long a fresh answer is waited for once a bridge has told what it remembers."""

DOUBT_S: Final = (TICKS_MS + 100) / 1000
"""After how long one is asked again whose answer is late, or whose clock was set back: by then it shows which."""

WORD_S: Final = 0.5
"""How long a device may take to say something to an act; then it is looked at all the same."""

MOST_LOOKS: Final = 64
"""Devices that are asked at a time; who takes longer than `SHORT_S` to answer keeps no other from being asked."""

MOST_ASKS: Final = 5
"""How often a device is asked for one reading: one that is moved again and again is believed in the end."""

CONNECT: Final = 0.9
"""Share of the time there is that a connection may take."""

Bindings = Callable[[], Mapping[str, str]]
"""Entity by wire name, as an inventory has it now."""


def _unbound() -> Mapping[str, str]:
    return {}


class _Turn:
    """A place among those who ask, from its taking on; it ends once."""

    def __init__(self, among: asyncio.Semaphore) -> None:
        self._among, self._mine = among, True

    def end(self) -> None:
        if self._mine:
            self._mine = False
            self._among.release()


class MqttDevices:
    """The devices behind one broker. Whoever makes it runs its `loop`, and closes it after that has ended.

    Args:
        hub: the connection.
        bindings: how devices are called; those that it does not name are called by what they are and say of themselves.
    """

    def __init__(self, hub: Hub, bindings: Bindings = _unbound) -> None:
        """Nothing is opened yet."""
        self._hub, self._bindings = hub, bindings
        self._looks = asyncio.Semaphore(MOST_LOOKS)
        self._entities = dict[str, str]()
        self._of: tuple[int, Mapping[str, str]] = (-1, {})

    @classmethod
    def of(cls, settings: Settings, bindings: Bindings = _unbound) -> "MqttDevices | None":
        """As it is configured; None: there is no broker.

        Raises:
            MqttUrlError: no broker can be reached by the URL.
        """
        if settings.mqtt_url is None:
            return None
        try:
            url = MqttUrl.parse(settings.mqtt_url.get_secret_value())
        except MqttUrlError as error:
            raise MqttUrlError(f"DUALLOOP_MQTT_URL: {error}") from None
        return cls(Hub(url, settings.zigbee2mqtt_topic, settings.discovery_prefix), bindings)

    @property
    def loop(self) -> Loop:
        """What keeps the connection."""
        return self._hub.loop

    async def close(self) -> None:
        """Leave the broker."""
        await self._hub.close()

    async def observe(self, entity: str, *, deadline: float, traceparent: str | None = None) -> Reading:  # noqa: ARG002  of the protocol
        """See `Device.observe`; a device that cannot be asked shows what it said last, with its age."""
        line = await self._line(entity, deadline)
        if not line.described.askable:
            return self._reported(entity, line)
        try:
            async with asyncio.timeout(_left(deadline)):
                await self._looks.acquire()
        except TimeoutError:
            raise DeviceUnreachable(f"{entity} was not asked in time: many are asked at once") from None
        turn = _Turn(self._looks)
        ending = asyncio.get_running_loop().call_later(SHORT_S, turn.end)
        try:
            return await self._asked(entity, line, deadline)
        finally:
            ending.cancel()
            turn.end()

    async def act(
        self, command: Command, *, key: str, fence: int, deadline: float, traceparent: str | None = None
    ) -> None:
        """See `Device.act`."""
        entity = command.entity
        line = await self._line(entity, deadline)
        values = _fitting(line.described, command)
        _newest(entity, line, fence)
        order = Order(key, values)
        line.orders.add(order)
        try:
            await self._announce(entity, line, _announcement(order, fence, traceparent), deadline)
            _newest(entity, line, fence)  # who has slept meanwhile hears of the one who took over before he acts
            if not _left(deadline):  # or may have slept past the time for it
                raise DeviceUnreachable(f"{entity} was not told: the time for it was over before it could be sent")
            order.sent = True
            await self._send(entity, line, values)
            try:
                async with asyncio.timeout(min(WORD_S, _left(deadline))):
                    await order.heard.wait()
            except TimeoutError:
                return
        finally:
            line.orders.discard(order)
        if order.fault is not None:
            raise type(order.fault)(str(order.fault).replace("{entity}", entity, 1))

    def _named(self) -> dict[str, str]:
        bindings = self._bindings()
        if self._of != (self._hub.revision, bindings):
            lines = self._hub.lines.items()
            there = {wire: line.described for wire, line in lines if line.gone_at is None}
            gone = {wire: line.described for wire, line in lines if line.gone_at is not None}
            self._entities = entities(gone, bindings) | entities(there, bindings)  # who is there has the name
            self._of = (self._hub.revision, dict(bindings))
        return self._entities

    async def _line(self, entity: str, deadline: float) -> Line:
        if not await self._hub.ready(CONNECT * _left(deadline)):
            raise DeviceUnreachable(
                f"{entity} cannot be reached: the MQTT broker at {self._hub.url} is not there ({self._hub.trouble})"
            )
        wire = self._named().get(entity)
        if wire is None and entity in self._bindings().values():
            raise DeviceUnreachable(f"{entity} has not been announced to the MQTT broker")
        if wire is None:
            raise UnknownEntity(entity)
        line = self._hub.lines[wire]
        if not await self._hub.hears(line, CONNECT * _left(deadline)):
            raise DeviceUnreachable(f"{entity} was announced just now, and is not heard yet")
        return line

    def _reported(self, entity: str, line: Line) -> Reading:
        if line.offline or (line.gone_at is not None and line.silent):
            raise _unreachable(entity, line)
        if not line.tracker.values:
            raise DeviceUnreachable(f"{entity} cannot be asked, and has said nothing yet")
        if line.reported_at is not None:
            return line.reading(line.reported_at)
        newest = self._hub.connected_at - 1  # of what the broker had retained
        return line.reading(newest if line.remembered_at is None else min(newest, line.remembered_at))

    async def _asked(self, entity: str, line: Line, deadline: float) -> Reading:
        look, asked = Look(line.described.askable, now_ms()), 0
        look.posed = line.exact
        until = time.monotonic() + min(_left(deadline), SHORT_S if line.silent or line.offline else _left(deadline))
        line.looks.add(look)
        try:
            while not look.done and asked <= MOST_ASKS and (left := until - time.monotonic()) > 0:
                look.news.clear()  # before asking: the answer may be quick
                if not asked or look.again:
                    asked, look.again = asked + 1, False
                    await self._ask(entity, line, look)
                wait_s = min(left, DOUBT_S) if look.doubtful else left
                try:
                    async with asyncio.timeout(wait_s):
                        await look.news.wait()
                except TimeoutError:
                    if wait_s == left:
                        break
                    look.doubtful, look.again = False, True
                    asked -= 1  # no surprise
                    continue
                if look.lost:
                    raise DeviceUnreachable(f"{entity} gave no answer: the MQTT broker was lost while it was asked")
                if look.stale_at is not None:
                    until = min(until, time.monotonic() + STALE_S)
        finally:
            line.looks.discard(look)
            self._hub.forget(look)
        return self._answer(entity, line, look, asked)

    def _answer(self, entity: str, line: Line, look: Look, asked: int) -> Reading:
        if look.done and look.observed_at is not None:
            return line.reading(look.observed_at)
        if look.stale_at is not None:
            return line.reading(look.stale_at)
        if asked > MOST_ASKS:
            return line.reading(now_ms())
        line.silent = True
        raise _unreachable(entity, line)

    async def _ask(self, entity: str, line: Line, look: Look) -> None:
        try:
            await self._hub.ask(look, line.described.questions())
        except aiomqtt.MqttError as error:
            raise DeviceUnreachable(f"{entity} cannot be asked: {error}") from error

    async def _announce(self, entity: str, line: Line, announcement: str, deadline: float) -> None:
        try:
            async with asyncio.timeout(_left(deadline)):
                await self._hub.publish(f"{ACTS}/{line.described.wire}", announcement, qos=1)
        except (aiomqtt.MqttError, TimeoutError) as error:
            raise DeviceUnreachable(f"{entity} was not told: the MQTT broker does not answer") from error

    async def _send(self, entity: str, line: Line, values: Mapping[str, Any]) -> None:
        """Tell it now or not at all: with a higher QoS a broker would keep the order for a device that is away."""
        try:
            for message in line.described.orders(values, line.tracker.values):
                await self._hub.publish(message.topic, message.payload, qos=0)
        except aiomqtt.MqttError as error:
            raise ActUnknown(f"{entity} may have been told: {error}") from error


def _unreachable(entity: str, line: Line) -> DeviceUnreachable:
    """Of one that does not answer, with what is known about why."""
    if line.gone_at is not None:
        since = rfc3339(line.gone_at)
        return DeviceUnreachable(
            f"{entity} has not been announced to the MQTT broker since {since}, and does not answer"
        )
    return DeviceUnreachable(
        f"{entity} is offline, says {line.offline}" if line.offline else f"{entity} gave no answer"
    )


def _newest(entity: str, line: Line, fence: int) -> None:
    """Refuse to act for who was taken over.

    Raises:
        OldFence: a later holder has announced an act.
    """
    if fence < (newest := line.tracker.newest_fence(now_ms())):
        raise OldFence(f"{entity} has been taken over: fence {fence} is older than {newest}")


def _fitting(described: Described, command: Command) -> dict[str, Any]:
    """What the device shall show.

    Raises:
        DeviceRefused: it cannot.
    """
    try:
        values = wanted(command.action, command.value)
        described.fit(values)
    except Unfit as fault:
        raise DeviceRefused(f"{command.entity} {fault}") from fault
    except ValueError as fault:
        raise DeviceRefused(str(fault)) from fault
    return values


def _announcement(order: Order, fence: int, traceparent: str | None) -> str:
    """An act, so that every worker knows it for ours, and a device that wants to may refuse an old one."""
    told = {"key": order.key, "fence": fence, "values": order.values, "at": rfc3339(now_ms())}
    return json.dumps(told if traceparent is None else told | {"traceparent": traceparent})


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
