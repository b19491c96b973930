"""What the background is doing must not be felt at the front: accept, and urgent work, beside the same while idle."""

import time
from collections.abc import Callable
from typing import Final

from pydantic_core import to_json

from tests.benchmarks.calm import calm
from tests.benchmarks.client import Client
from tests.benchmarks.figure import Benchmark, Row, Sample, Size, percentile
from tests.benchmarks.fill import fill
from tests.benchmarks.stage import Stage

URGENT: Final = to_json({"type": "test.noop", "payload": {"n": 1}, "priority": "urgent"})
PAUSE_S: Final = 0.005
WARM: Final = 10
SLOW_S: Final = 0.2
"""What a mission of the slow bulk work takes: with all slots taken some 500 a second."""

BACKLOG: Final = 6_000


def _measure(stage: Stage, size: Size) -> dict[str, Sample]:
    many = size.of(300)
    stage.empty()
    with stage.foreground() as (port, _):
        with stage.background():
            stage.serves(port, "test.noop")
            calm(size.patience_s)
            idle, idle_urgent = _accepts(port, many), _finishes(port, many // 2)
            # slow work for twice as long as is measured, whatever the machine makes of it
            fill(stage.url, "test.slow", BACKLOG, payload={"seconds": SLOW_S}, priority="bulk")
            time.sleep(2 * SLOW_S)
            busy, busy_urgent = _accepts(port, many), _finishes(port, many // 2)
            if not stage.waiting("bulk"):
                raise RuntimeError("the slow work was done before the measurement was")
        stopped = _accepts(port, many)
    samples = {}
    for share, name in ((0.5, "p50"), (0.95, "p95")):
        base, urgent = percentile(idle, share) * 1e3, percentile(idle_urgent, share) * 1e3
        samples[f"latency-stopped-{name}"] = Sample(percentile(stopped, share) * 1e3, base)
        samples[f"latency-busy-{name}"] = Sample(percentile(busy, share) * 1e3, base)
        samples[f"latency-urgent-{name}"] = Sample(percentile(busy_urgent, share) * 1e3, urgent)
    return samples


def _accepts(port: int, many: int) -> list[float]:
    with Client(port) as client:
        return times(lambda: client.accept(URGENT)[0], many)


def _finishes(port: int, many: int) -> list[float]:
    with Client(port) as client:
        return times(lambda: client.finish(URGENT), many)


def times(once: Callable[[], float], many: int) -> list[float]:
    """So many, each after a pause, so that each meets processes that sleep; the first few are not told."""
    taken = []
    for _ in range(WARM + many):
        time.sleep(PAUSE_S)
        taken.append(once())
    return taken[WARM:]


def _rows() -> tuple[Row, ...]:
    told = {
        "stopped": "accept, background stopped",
        "busy": "accept, background full of slow bulk",
        "urgent": "urgent to result, behind that bulk",
    }
    return tuple(
        Row(f"latency-{name}-{share}", f"{what}, {share}", "ms", "idle")
        for name, what in told.items()
        for share in ("p50", "p95")
    )


LATENCY = Benchmark("latency", _rows(), _measure)
