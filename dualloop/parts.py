"""The processes of one stack, as data for the supervisor."""

import contextlib
import errno
import random
import socket
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dualloop.address import LOCAL, local_broker_url, local_url
from dualloop.embedded import HeldRedis
from dualloop.errors import Refusal
from dualloop.supervisor import Part
from shared.settings import Settings

RELOAD_GRACE_S = 6.0
"""Grace of a worker whose code is edited, unless the settings name one: nobody waits gladly for old code."""


LEAST_GRACE_S = 5.0
"""However short the drain is: to end takes a busy machine as long."""
SERVER_PORTS: Final = range(15_000, 32_000)
"""Where a port is looked for that nobody named: Linux gives clients those from 32,768 on, others later ones."""
TRIES: Final = 20
OTHER_PORT = "Choose another one, here and where commands are sent: export DUALLOOP_PORT=8001."
OTHER_MQTT_PORT = "Choose another one in DUALLOOP_MQTT_PORT, or name who listens there in DUALLOOP_MQTT_URL."


@dataclass(frozen=True)
class Plan:
    """What one ``up`` runs."""

    settings: Settings
    """As the parts get them: every address settled."""
    held: HeldRedis | None = None
    """The embedded Redis, if it is ours to run."""
    own_home: bool = True
    """The simulated home is ours to run, and the broker that it speaks by."""
    own_outside: bool = True
    workers: int = 1
    reload: bool = False
    """Whoever runs missions begins anew when their modules are edited."""
    verbose: bool = False
    """The parts write to the terminal instead of their logs."""

    @property
    def url(self) -> str:
        """Where the foreground listens, for a client on this machine."""
        return local_url(self.settings.host, self.settings.port)


def stages(plan: Plan) -> list[list[Part]]:
    """Foreground, background, what is simulated, the broker, Redis: so they stop; a long drain is shared among them.

    The home says good-bye by the broker, so that goes after it.
    """
    settings, drain = plan.settings, plan.settings.drain_s
    common = _common(settings)

    def python(command: str, share: float, ready: str, name: str = "", **more: str) -> Part:
        grace_s = max(LEAST_GRACE_S, share * drain)
        # what it was given, and not all of the least grace; and it is done a little before it would be killed
        own_s = min(share * drain, max(grace_s - 1, grace_s / 2))
        env = common | more | {"DUALLOOP_DRAIN_S": str(own_s)}
        log = None if plan.verbose else log_path(settings.state_dir, name or command)
        return Part(name or command, (sys.executable, "-m", "dualloop", command), env, ready, log, grace_s)

    def worker(number: int) -> Part:
        port = settings.health_port + number if settings.health_port else free_port(LOCAL)
        name = "background" if plan.workers == 1 else f"background-{number + 1}"
        share, more = 0.7, {"DUALLOOP_HEALTH_PORT": str(port)}
        if plan.reload:
            more["PYTHONDONTWRITEBYTECODE"] = "1"  # Python takes old bytecode for new, if that is of the same second
            if "drain_s" not in settings.model_fields_set:
                share = min(share, RELOAD_GRACE_S / drain)
        return replace(python("background", share, f"http://{LOCAL}:{port}/readyz", name, **more), missions=True)

    built = [
        [python("foreground", 0.15, f"{plan.url}/readyz", DUALLOOP_PORT=str(settings.port))],
        [worker(number) for number in range(plan.workers)],
    ]
    simulated = []
    if plan.own_home:
        simulated.append(python("home", 0.1, f"{settings.home_url}/readyz", DUALLOOP_HOME_PORT=str(settings.home_port)))
    if plan.own_outside:
        there = {"DUALLOOP_OUTSIDE_PORT": str(settings.outside_port), "DUALLOOP_URL": plan.url}
        simulated.append(python("outside", 0.1, f"{settings.outside_url}/livez", **there))
    if simulated:
        built.append(simulated)
    if plan.own_home:
        url = local_broker_url(settings.mqtt_port)
        built.append([python("broker", 0.05, url, DUALLOOP_MQTT_PORT=str(settings.mqtt_port))])
    if plan.held is not None:
        built.append([_redis(plan.held, log_path(settings.state_dir, "redis"))])
    return built


def _common(settings: Settings) -> dict[str, str]:
    """What all parts get."""
    common = {"DUALLOOP_STATE_DIR": str(settings.state_dir), "PYTHONUNBUFFERED": "1"}
    mqtt_url = None if settings.mqtt_url is None else settings.mqtt_url.get_secret_value()
    where = {"REDIS": settings.redis_url, "HOME": settings.home_url, "MQTT": mqtt_url, "OUTSIDE": settings.outside_url}
    common |= {f"DUALLOOP_{name}_URL": url for name, url in where.items() if url is not None}
    if settings.log_format == "auto" and sys.stdout.isatty():
        common["DUALLOOP_LOG_FORMAT"] = "terminal"  # a person reads these logs
    return common


def _redis(held: HeldRedis, log: Path) -> Part:
    return Part("redis", held.argv, ready=held.url, log=log, base=True, inherited=held.inherited, on_ready=held.record)


def log_path(state_dir: Path, name: str) -> Path:
    """Where a part writes."""
    return state_dir / "logs" / f"{name}.log"


def free_port(host: str, wanted: int = 0, remedy: str = OTHER_PORT) -> int:
    """``wanted`` if it is free, or a free one for 0.

    The latter is none of those that a system gives to clients: one of them could have it before the server does, and
    again whenever that is started anew.

    Raises:
        Refusal: it is taken, or this machine has no such address.
    """
    if wanted:
        return _free(host, wanted, remedy)
    for port in random.SystemRandom().sample(SERVER_PORTS, TRIES):  # two stacks that start together never agree
        with contextlib.suppress(Refusal):
            return _free(host, port, remedy)
    return _free(host, 0, remedy)


def _free(host: str, port: int, remedy: str) -> int:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server will; it ignores TIME_WAIT
            probe.bind(address)
            return int(probe.getsockname()[1])
    except OSError as error:
        why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be had: {error.strerror}"
        raise Refusal(f"Port {port} of {host} {why}. {remedy}") from error
