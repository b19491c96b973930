"""The MQTT broker that comes along: `amqtt`, for this machine alone.

It forgets what it retained when it ends, so whoever speaks by it says everything again after each connect. A real
home has a broker of its own: `DUALLOOP_MQTT_URL` names it, and this one is not started.
"""

import asyncio
import contextlib
import logging
import signal
from typing import Final

from amqtt.broker import Broker  # type: ignore[import-untyped]

from dualloop.address import BROKER_FILE, LOCAL, local_broker_url
from dualloop.parts import OTHER_MQTT_PORT, free_port
from dualloop.state_folder import state_folder, write_whole
from shared import logs
from shared.settings import Settings

log = logs.get(__name__)

MOST: Final = 1_000
"""Connections at a time."""
END_S: Final = 1.0
"""How long the library may take to end: it waits for its readers, which may not have heard (3.11) that they shall."""


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT, then exit 0; its URL stands in ``<state_dir>/mqtt.url`` while it runs.

    Raises:
        Refusal: the configured port is taken.
    """
    logs.configure(settings, "broker")
    for chatty in ("amqtt", "transitions"):  # a line for each connection and each step of its handshake
        logging.getLogger(chatty).setLevel(logging.WARNING)
    asyncio.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    port = free_port(LOCAL, settings.mqtt_port, OTHER_MQTT_PORT)
    broker = Broker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"{LOCAL}:{port}", "max_connections": MOST}},
            "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
        }
    )
    await broker.start()
    url = state_folder(settings.state_dir) / BROKER_FILE
    write_whole(url, local_broker_url(port))
    try:
        await stop.wait()
    finally:
        url.unlink(missing_ok=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await broker.shutdown()
