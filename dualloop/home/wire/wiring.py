"""All connections of the home to its broker: one for the Zigbee bridge, one a Tasmota device, one for the rest."""

import asyncio
from collections.abc import Iterator

from dualloop.home.demonstration import WIRES
from dualloop.home.house import House
from dualloop.home.wire import discovery, tasmota, zigbee2mqtt
from dualloop.home.wire.dialect import Dialect, Named
from dualloop.home.wire.station import Station


class Wiring:
    """The home's devices on a broker.

    Args:
        house: the devices.
        url: of the broker.
    """

    def __init__(self, house: House, url: str) -> None:
        """Connect to nothing yet."""
        self._stations = [Station(house, dialect, url) for dialect in _dialects(house)]
        house.watchers += self._stations

    async def run(self) -> None:
        """Speak until cancelled."""
        async with asyncio.TaskGroup() as group:
            for station in self._stations:
                group.create_task(station.run(), name=station.identifier)

    @property
    def missing(self) -> list[str]:
        """The connections that do not stand."""
        return [station.identifier for station in self._stations if not station.connected]


def _dialects(house: House) -> Iterator[Dialect]:
    by_prefix = dict[str, list[Named]]()
    for entity, wire in WIRES.items():
        prefix, _, name = wire.partition("/")
        by_prefix.setdefault(prefix, []).append(Named(name, house.device(entity)))
    yield zigbee2mqtt.Bridge(by_prefix[zigbee2mqtt.BASE])
    yield discovery.Discovery(by_prefix[discovery.PREFIX])
    yield from map(tasmota.Tasmota, by_prefix[tasmota.BASE])
