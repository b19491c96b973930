"""The background process."""

import asyncio
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

import httpx
import uvloop

from backend_loop import debugger, registry
from backend_loop.devices.configured import device_of
from backend_loop.devices.http import http_client
from backend_loop.devices.mqtt.device import MqttDevices
from backend_loop.inventory import HomeBook
from backend_loop.mission import DefinitionError
from backend_loop.mission_type import MissionType
from backend_loop.missions.speech_transcribe import POOL
from backend_loop.model import model_of
from backend_loop.services import Services
from backend_loop.speech.ears import Ears
from backend_loop.speech.voices import Voices
from backend_loop.trial import fault
from backend_loop.worker import LoopWorker
from shared import garbage, health, logs, redis_url, telemetry
from shared.fleet import FleetMismatchError
from shared.settings import Settings

log = logs.get(__name__)


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
        redis_url.options(settings.redis_url, settings.redis_timeout_s)  # before arq says it in its own way
    except redis_url.RedisUrlError as error:
        raise SystemExit(str(error)) from error
    types = _types(settings.missions)
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    client = http_client()
    worker = _worker(types, settings, settings.redis_url, client)
    voices = _voices(worker)
    serving = loop.create_task(
        health.serve(worker.checks, settings.host, settings.health_port, _port_file(settings, worker.instance))
    )
    garbage.settle()
    debugger.prepare()
    try:
        loop.run_until_complete(asyncio.sleep(0))  # the first step of serving, which takes the port or fails
        if serving.done() and (fault := serving.exception()) is not None:
            where = f"{settings.host}:{settings.health_port}"
            sys.exit(f"health cannot be served on {where} ({fault}): set DUALLOOP_HEALTH_PORT to a free port, or to 0")
        serving.add_done_callback(_ended)
        worker.run()
    except FleetMismatchError as error:
        sys.exit(str(error))
    finally:
        serving.cancel()
        loop.run_until_complete(asyncio.wait({serving}))
        if isinstance(worker.device, MqttDevices):
            loop.run_until_complete(worker.device.close())
        if voices is not None:
            loop.run_until_complete(voices.close())
        if worker.ears is not None:
            loop.run_until_complete(worker.ears.close())
        loop.run_until_complete(client.aclose())
        telemetry.shutdown()
        loop.close()


def _worker(types: dict[str, MissionType], settings: Settings, redis_url: str, client: httpx.AsyncClient) -> LoopWorker:
    """The worker, with all ways to the outside that are configured.

    Raises:
        SystemExit: one of them is configured wrongly.
    """
    home = HomeBook()
    services = Services(settings.outside_url, client) if settings.outside_url else None
    try:
        model = model_of(settings, client)
        device = device_of(settings, client, lambda: home.current().bindings())
        ears = Ears(settings, client, home.current)
    except ValueError as error:
        raise SystemExit(str(error)) from error
    worker = LoopWorker(types, settings, redis_url, device=device, services=services, model=model, ears=ears, home=home)
    if isinstance(device, MqttDevices):
        worker.loops.add(device.loop)
    return worker


def _voices(worker: LoopWorker) -> Voices | None:
    """What listens to people as they speak, where this worker serves the pool that does."""
    if worker.ears is None or POOL not in worker.settings.pools:
        return None
    voices = Voices(worker.settings, worker.redis_url, worker.instance, worker.ears, worker.home.current)
    worker.loops.add(voices.loop)
    return voices


def _types(paths: Iterable[str]) -> dict[str, MissionType]:
    """The mission types.

    Raises:
        SystemExit: EX_CONFIG, they cannot be had; a second try would be of no use.
    """
    try:
        return registry.load(paths)
    except Exception as error:
        if not isinstance(error, (DefinitionError, SyntaxError)):
            traceback.print_exc()
        sys.stderr.write(f"{fault(error)}\n")
        raise SystemExit(os.EX_CONFIG) from error


def _port_file(settings: Settings, instance: str) -> Path:
    """Where a background process writes its health port."""
    return settings.state_dir / f"background-{instance}.port"


def _ended(serving: asyncio.Task[None]) -> None:
    if not serving.cancelled() and (fault := serving.exception()) is not None:
        log.error("health is served no more", error=str(fault))
