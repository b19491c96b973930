"""What the background needs of a device, whatever the device speaks: look, and act."""

from collections.abc import Mapping
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field


class Command(BaseModel):
    """What a device is told."""

    model_config = ConfigDict(frozen=True)

    entity: str
    action: str
    value: Any = None


class Change(BaseModel):
    """The last change of one value: by whom (``command``, or ``hand`` for a person), and which."""

    model_config = ConfigDict(frozen=True)

    by: str
    version: str
    at: int = Field(description="epoch milliseconds, on this machine's clock")


class Reading(BaseModel):
    """What a device showed at one moment.

    ``version`` differs after every physical change and stays while nothing changes; ``observed_at`` says when the
    device itself was read, so that an old answer cannot pass for a new one. ``changes`` has, per value, its last
    change, where the device tells. ``limits`` has, per value that is a number, the least and the most that the device
    takes, where it tells; it is not kept.
    """

    model_config = ConfigDict(frozen=True)

    value: Mapping[str, Any]
    version: str
    observed_at: int = Field(description="epoch milliseconds, on this machine's clock")
    source: str
    changes: Mapping[str, Change] = Field(default_factory=dict)
    limits: Mapping[str, tuple[float, float]] = Field(default_factory=dict, exclude=True, repr=False)


def numeric(limits: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Those limits that are two numbers, the lesser one first; words that may be chosen, and nonsense, are left out."""
    return {
        name: (ends[0], ends[1])
        for name, ends in limits.items()
        if isinstance(ends, list | tuple) and len(ends) == 2 and all(map(_is_number, ends)) and ends[0] <= ends[1]
    }


def _is_number(end: Any) -> bool:
    return isinstance(end, int | float) and not isinstance(end, bool)


class DeviceFault(Exception):  # noqa: N818  each of these words is used as it stands in events and texts
    """Something between us and the device went wrong; the text is a sentence for a person."""


class DeviceUnreachable(DeviceFault):
    """The device could not be asked, or was surely not told: nothing happened, trying again is safe."""


class ActUnknown(DeviceFault):
    """The command was sent and its answer was lost: it may have happened. Look before going on."""


class DeviceRefused(DeviceFault):
    """The device said no, and will say so again."""


class UnknownEntity(DeviceRefused):
    """There is no such device: no more will come of trying again than of what a device refuses."""

    def __init__(self, entity: str) -> None:
        """With what to do."""
        super().__init__(f"there is no {entity} in this home; see what there is: dualloop home ls")


class OldFence(DeviceFault):
    """The device has obeyed a later holder of this target: the caller has lost its lease and must stop."""


class Device(Protocol):
    """The way to one device or to many; MQTT or HTTP is the adapter's business."""

    async def observe(self, entity: str, *, deadline: float, traceparent: str | None = None) -> Reading:
        """Read the device now.

        Args:
            entity: which one.
            deadline: the moment, on ``time.monotonic``'s scale, after which an answer is of no use.
            traceparent: W3C trace context to hand on.

        Raises:
            DeviceUnreachable: no answer in time.
            UnknownEntity: no such device.
        """

    async def act(
        self, command: Command, *, key: str, fence: int, deadline: float, traceparent: str | None = None
    ) -> None:
        """Tell the device; returns once it says that it obeyed, which is not yet proof.

        Args:
            command: what to do.
            key: the same for every try of one act: a device that knows it does nothing a second time.
            fence: rises from one holder of the target to the next: a device that has seen a later one refuses.
            deadline: as for `observe`; nothing is sent after it.
            traceparent: W3C trace context to hand on.

        Raises:
            DeviceUnreachable: surely not done.
            ActUnknown: may have been done.
            DeviceRefused, UnknownEntity: the device will not.
            OldFence: a later holder was here.
        """
