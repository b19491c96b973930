"""The way to devices that is configured: MQTT, else the home's own HTTP."""

import contextlib
from asyncio import create_task, wait
from collections.abc import AsyncIterator

import httpx

from backend_loop.devices.http import HttpDevice
from backend_loop.devices.mqtt.device import Bindings, MqttDevices
from backend_loop.devices.protocol import Device
from shared.settings import Settings


def device_of(settings: Settings, client: httpx.AsyncClient, bindings: Bindings) -> MqttDevices | HttpDevice | None:
    """The way; None: there is none. With a broker and a home's URL both, the broker is taken.

    Args:
        settings: of the process.
        client: for HTTP.
        bindings: entity by wire name, as the inventory has it now.

    Raises:
        MqttUrlError: no broker can be reached by the URL.
    """
    devices = MqttDevices.of(settings, bindings)
    if devices is not None:
        return devices
    return HttpDevice(settings.home_url, client) if settings.home_url else None


@contextlib.asynccontextmanager
async def kept(device: MqttDevices | HttpDevice | None) -> AsyncIterator[Device | None]:
    """Within the block, with its loop running where it has one; a worker runs that among its own instead."""
    if not isinstance(device, MqttDevices):
        yield device
        return
    running = create_task(device.loop.run(), name="loop mqtt")
    try:
        yield device
    finally:
        running.cancel()
        await wait({running})
        await device.close()
