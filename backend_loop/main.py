"""The background process."""

import asyncio
import contextlib
import sys

import uvloop

from backend_loop import registry
from backend_loop.devices.http import HttpDevice, http_client
from backend_loop.mission import DefinitionError
from backend_loop.worker import LoopWorker, port_file
from shared import garbage, health, logs, telemetry
from shared.fleet import FleetMismatchError
from shared.settings import Settings


def run(settings: Settings) -> None:
    """Run a background process until SIGTERM or SIGINT; blocks.

    Raises:
        SystemExit: with a sentence, where the configuration is wrong.
    """
    logs.configure(settings, "background")
    telemetry.configure(settings, "dualloop-background")
    if settings.redis_url is None:
        raise SystemExit("DUALLOOP_REDIS_URL is not set: set it, or start everything with `dualloop up`")
    try:
        types = registry.load(settings.missions)
    except DefinitionError as error:
        raise SystemExit(str(error)) from error
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    client = http_client()
    device = HttpDevice(settings.home_url, client) if settings.home_url else None
    worker = LoopWorker(types, settings, settings.redis_url, device=device)
    serving = loop.create_task(
        health.serve(worker.checks, settings.host, settings.health_port, port_file(settings, worker.instance))
    )
    garbage.settle()
    try:
        worker.run()
    except FleetMismatchError as error:
        sys.exit(str(error))
    finally:
        serving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(serving)
        loop.run_until_complete(client.aclose())
        telemetry.shutdown()
        loop.close()
