"""A rollout of hundreds of gadgets must not be felt at the front: device commands beside it, and while idle."""

import contextlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_json

from dualloop.parts import free_port
from tests.benchmarks.calm import calm
from tests.benchmarks.client import Client
from tests.benchmarks.figure import Benchmark, Row, Sample, Size, percentile
from tests.benchmarks.latency import PAUSE_S, URGENT, WARM
from tests.benchmarks.stage import LOCAL, Stage

GADGETS: Final = 500
LIGHT: Final = "light.living_room"
LEAST: Final = 30
"""Commands that a rollout has to last for, if their times are to mean anything."""


def _measure(stage: Stage, size: Size) -> dict[str, Sample]:
    stage.empty()
    many = size.of(150)
    with _world(stage) as urls, stage.foreground() as (port, _), stage.background(**urls):
        stage.serves(port, "firmware.rollout")
        calm(size.patience_s)
        with Client(port) as client:
            switch, accept = _switching(client), _accepting(client)
            for _ in range(WARM):
                switch()
                accept()
            idle, idle_accept = _pairs(switch, accept, lambda n: n < many)
            root = client.accept(_rollout(size))[1]
            begun = time.perf_counter()
            busy, busy_accept = _pairs(switch, accept, lambda _: not _ended(stage, root))
            took_s = time.perf_counter() - begun
        document = json.loads(_result(stage, root) or b"null")
    if document is None or document["status"] != "SUCCEEDED":
        raise RuntimeError(f"the rollout ended badly: {document}")
    if len(busy) < LEAST and not size.quick:
        raise RuntimeError(f"the rollout was over after {len(busy)} commands")
    samples = {"rollout-rate": Sample(document["result"]["gadgets"] / took_s)}
    for share, name in ((0.5, "p50"), (0.95, "p95")):
        samples[f"rollout-urgent-{name}"] = Sample(percentile(busy, share) * 1e3, percentile(idle, share) * 1e3)
        samples[f"rollout-accept-{name}"] = Sample(
            percentile(busy_accept, share) * 1e3, percentile(idle_accept, share) * 1e3
        )
    return samples


@contextlib.contextmanager
def _world(stage: Stage) -> Iterator[dict[str, str]]:
    """A fresh home and fresh gadgets, and how a worker finds them."""
    folder = Path(tempfile.mkdtemp(prefix="dl-bench-world-"))
    ports = {name: free_port(LOCAL) for name in ("home", "outside")}
    env = {f"DUALLOOP_{name.upper()}_PORT": str(port) for name, port in ports.items()}
    try:
        with contextlib.ExitStack() as parts:
            for name, port in ports.items():
                process = parts.enter_context(stage.part(name, DUALLOOP_STATE_DIR=str(folder), **env))
                stage.answers(process, port, "/livez")
            yield {f"DUALLOOP_{name.upper()}_URL": f"http://{LOCAL}:{port}" for name, port in ports.items()}
    finally:
        shutil.rmtree(folder)


def _rollout(size: Size) -> bytes:
    where = {"prefix": "gadget.", "count": size.of(GADGETS)}
    # nobody waits for those that are offline: what is measured beside it is a rollout that works
    payload = {"version": "2.0.0", "gadgets": where, "patience_s": 0}
    return to_json({"type": "firmware.rollout", "payload": payload})


def _switching(client: Client) -> Callable[[], float]:
    """Seconds from a command to its result, the light being on and off in turn, so that each one acts."""
    commands = [
        to_json({"type": "device.control", "payload": {"entity": LIGHT, "action": action}})
        for action in ("turn_off", "turn_on")
    ]

    def once() -> float:
        commands.reverse()
        return client.finish(commands[0])

    return once


def _accepting(client: Client) -> Callable[[], float]:
    return lambda: client.accept(URGENT)[0]


def _pairs(
    first: Callable[[], float], second: Callable[[], float], going: Callable[[int], bool]
) -> tuple[list[float], list[float]]:
    """One of each in turn, after pauses, for as long as it is to go on."""
    ours, others = list[float](), list[float]()
    while going(len(ours)):
        time.sleep(PAUSE_S)
        ours.append(first())
        time.sleep(PAUSE_S)
        others.append(second())
    return ours, others


def _result(stage: Stage, root: str) -> Any:
    return stage.redis.get(f"dl:{{s0}}:result:{root}")


def _ended(stage: Stage, root: str) -> bool:
    return _result(stage, root) is not None


ROWS: Final = (
    Row("rollout-urgent-p50", f"device command, beside a rollout of {GADGETS}, p50", "ms", "idle", most=1.75),
    Row("rollout-urgent-p95", f"device command, beside a rollout of {GADGETS}, p95", "ms", "idle", most=2.5),
    Row("rollout-accept-p50", "  accept meanwhile, p50", "ms", "idle"),
    Row("rollout-accept-p95", "  accept meanwhile, p95", "ms", "idle"),
    Row("rollout-rate", "  gadgets meanwhile", "/s"),
)

ROLLOUT = Benchmark("rollout", ROWS, _measure)
