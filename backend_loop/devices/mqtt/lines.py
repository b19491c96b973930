"""All devices as this process hears them: who was announced, who is announced no more, and to whom a topic belongs.

That somebody is gone is a word and no proof: anybody may publish an empty list, and a bridge may have lost its own. So
who is announced no more stays known, for as long as this process runs.
"""

from collections.abc import Mapping
from typing import Final

from backend_loop.devices.mqtt.bridge_clock import BridgeClock
from backend_loop.devices.mqtt.dialects.described import Described
from backend_loop.devices.mqtt.line import Line

CHANGES: Final = "dualloop/changes"
"""Where workers tell each other who changed what of a device, by its wire name."""

MOST_GONE: Final = 1_000
"""Devices that are announced no more and known still; beyond it, who has gone first is forgotten."""


class Lines:
    """They."""

    def __init__(self) -> None:
        """Nobody was announced yet."""
        self.by_wire = dict[str, Line]()
        """By wire name, who is there first."""
        self.routes = dict[str, list[Line]]()
        """By each topic that they speak on."""
        self._clocks = dict[str, BridgeClock]()

    def take_in(self, devices: Mapping[str, Described], now: int) -> bool:
        """These are announced: new ones are taken in, the gone are known as such, the rest stay as they are.

        Args:
            devices: all of them, by wire name.
            now: epoch milliseconds.

        Returns:
            Whether anything is new.
        """
        if devices == {wire: line.described for wire, line in self.by_wire.items() if line.gone_at is None}:
            return False
        lines = dict[str, Line]()
        for wire, device in devices.items():
            line = self.by_wire.get(wire)
            if line is None:
                line = Line(device, self._clocks.setdefault(device.bridge, BridgeClock()))
            line.appear(device)
            lines[wire] = line
        self.by_wire, self.routes = lines | self._gone(devices, now), {}
        bridges = {line.described.bridge for line in self.by_wire.values()}
        self._clocks = {bridge: clock for bridge, clock in self._clocks.items() if bridge in bridges}
        for line in self.by_wire.values():
            for topic in spoken(line):
                self.routes.setdefault(topic, []).append(line)
        return True

    def _gone(self, devices: Mapping[str, Described], now: int) -> dict[str, Line]:
        """Who is announced no more, but those who speak by another name now."""
        gone = {wire: line for wire, line in self.by_wire.items() if wire not in devices}
        if gone:
            heard = {topic for device in devices.values() for topic in device.topics}
            gone = {wire: line for wire, line in gone.items() if line.described.topics[0] not in heard}
        for line in gone.values():
            line.vanish(now)
        newest = sorted(gone.items(), key=lambda one: one[1].gone_at or 0, reverse=True)
        return dict(newest[:MOST_GONE])


def spoken(line: Line) -> tuple[str, ...]:
    """The topics on which a device is spoken of, by itself and by workers."""
    return (f"{CHANGES}/{line.described.wire}", *line.described.topics)
