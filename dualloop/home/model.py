"""The physics of the simulated home: what a device is, what changes it, and how it misbehaves.

Pure: no I/O, and the clock (epoch milliseconds) is handed in. Every function answers with the device as it is
afterwards and, where something physical was done to it, with the line for the journal.
"""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.actions import ACTIONS, wanted

FENCE_MEMORY_MS: Final = 60_000
"""How long a fence is remembered: ten leases, so longer than a worker that lost its own is likely to be frozen, yet
a Redis that began anew, and counts from 1 again, is obeyed soon."""

SET: Final = "set"
"""The action of an order whose value is what the device is to show, by name: so bridges are told by MQTT."""

Limits = list[str] | tuple[float, float]
"""The words that a value may have, or the smallest and largest number."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Change(_Part):
    """The last change of one value."""

    by: str
    version: int
    at: int


class Reading(_Part):
    """What a device shows."""

    value: dict[str, Any]
    version: int
    observed_at: int
    changes: dict[str, Change]


class Faults(_Part):
    """How a device misbehaves until it is told otherwise.

    ``offline`` answers 503 at once; ``silent`` gives no answer in time and does nothing; ``refuse`` says no;
    ``lie`` claims success and does nothing; ``lose_answer`` obeys and answers 504; ``observe_stale`` goes on showing
    what it showed when the fault began. ``latency_ms`` passes before anything happens, ``act_latency_ms`` between
    the effect and its answer.

    By MQTT an offline device is told to be away and a silent one is not; one that lies says at once that it is as
    wanted, and shows the truth when it is read; with ``duplicate`` it says everything twice, and what nobody asked it
    for comes ``late_ms`` after it was so.
    """

    offline: bool = False
    silent: bool = False
    refuse: bool = False
    lie: bool = False
    lose_answer: bool = False
    observe_stale: bool = False
    latency_ms: int = Field(0, ge=0, le=600_000)
    act_latency_ms: int = Field(0, ge=0, le=600_000)
    duplicate: bool = False
    late_ms: int = Field(0, ge=0, le=600_000)


class Device(_Part):
    """One device: what it can be (``limits``), what it is, who changed it last, and its faults."""

    entity: str
    limits: dict[str, Limits]
    value: dict[str, Any]
    version: int = 1
    changes: dict[str, Change] = Field(default_factory=dict)
    fence: int = 0
    fenced_at: int = 0
    faults: Faults = Faults()
    stale: Reading | None = None

    @property
    def actions(self) -> list[str]:
        """The actions that this device knows: those that ask only for values it has."""
        return [
            name
            for name, action in ACTIONS.items()
            if {*action.sets, *([action.field] if action.field else [])} <= self.limits.keys()
        ]


class Order(_Part):
    """What a bridge is told to do with a device."""

    action: str
    value: Any = None
    key: str = Field(min_length=1, max_length=512)
    fence: int = Field(ge=0)


class Effect(_Part):
    """One line of the journal: something done to a device, even if it changed nothing (``changed`` is empty then)."""

    entity: str
    at: int
    by: Literal["command", "hand"]
    changed: dict[str, Any]
    version: int
    order: Order | None = None


class Refused(Exception):  # noqa: N818  a device's answer, not a fault of the program
    """The device says no; the text is its sentence."""


class Fenced(Exception):  # noqa: N818  as above
    """A later holder has acted on the device."""


def observe(device: Device, now: int) -> Reading:
    """What the device shows now, or goes on showing."""
    if device.stale is not None:
        return device.stale
    return Reading(value=device.value, version=device.version, observed_at=now, changes=device.changes)


def apply(device: Device, order: Order, now: int) -> tuple[Device, Effect | None]:
    """Do what is ordered; a device that lies does nothing and has no effect to tell.

    Raises:
        Fenced: the order's fence is older than one the device remembers.
        Refused: the device cannot or will not do it.
    """
    if order.fence < device.fence and now - device.fenced_at < FENCE_MEMORY_MS:
        raise Fenced(f"fence {order.fence} is older than {device.fence}")
    if device.faults.refuse:
        raise Refused("the device refuses")
    values = asked(device, order)
    _check(device, values)
    held = device.model_copy(update={"fence": order.fence, "fenced_at": now})
    if device.faults.lie:
        return held, None
    return _change(held, values, "command", now, order)


def asked(device: Device, order: Order) -> dict[str, Any]:
    """What the device is to show by this order.

    Raises:
        Refused: it does not know the action, or the action not the value.
    """
    if order.action == SET:
        if not isinstance(order.value, dict) or not order.value:
            raise Refused(f"{SET} takes the values that the device is to show, by name")
        return order.value
    if order.action not in device.actions:
        raise Refused(f"{device.entity} does not know {order.action!r}; it knows {', '.join(device.actions) or 'none'}")
    try:
        return wanted(order.action, order.value)
    except ValueError as fault:
        raise Refused(str(fault)) from fault


def meddle(device: Device, values: dict[str, Any], now: int) -> tuple[Device, Effect | None]:
    """A person's other app sets it: as a hand, but through the bridge, so that it is subject to faults.

    Raises:
        Refused: the device cannot or will not do it.
    """
    if device.faults.refuse:
        raise Refused("the device refuses")
    _check(device, values)
    return (device, None) if device.faults.lie else _change(device, values, "hand", now)


def hand(device: Device, values: dict[str, Any], now: int) -> tuple[Device, Effect]:
    """A person changes the device, whatever its faults: switches work offline.

    Raises:
        Refused: the device has no such value.
    """
    _check(device, values)
    return _change(device, values, "hand", now)


def break_down(device: Device, faults: Faults, now: int) -> Device:
    """Give the device these faults, in place of those it has."""
    stale = (device.stale or observe(device, now)) if faults.observe_stale else None
    return device.model_copy(update={"faults": faults, "stale": stale})


def _check(device: Device, values: dict[str, Any]) -> None:
    for name, value in values.items():
        limits = device.limits.get(name)
        if limits is None:
            raise Refused(f"{device.entity} has no {name}")
        if isinstance(limits, list):
            if value not in limits:
                raise Refused(f"{name} of {device.entity} is one of {', '.join(limits)}")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not limits[0] <= value <= limits[1]:
            raise Refused(f"{name} of {device.entity} lies between {limits[0]:g} and {limits[1]:g}")


def _consequences(device: Device, values: dict[str, Any]) -> dict[str, Any]:
    """The values, and what comes with them: nothing plays without power."""
    if {"power", "playback"} <= device.limits.keys():
        if values.get("power") == "off":
            return {**values, "playback": "paused"}
        if values.get("playback") == "playing":
            return {"power": "on", **values}
    return values


def _change(
    device: Device, values: dict[str, Any], by: Literal["command", "hand"], now: int, order: Order | None = None
) -> tuple[Device, Effect]:
    changed = {name: value for name, value in _consequences(device, values).items() if device.value[name] != value}
    version = device.version + bool(changed)
    changes = dict.fromkeys(changed, Change(by=by, version=version, at=now))
    after = device.model_copy(
        update={"value": device.value | changed, "version": version, "changes": device.changes | changes}
    )
    return after, Effect(entity=device.entity, at=now, by=by, changed=changed, version=version, order=order)
