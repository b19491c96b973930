"""How fast one worker process empties a full lane, against arq as it comes."""

import subprocess
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.benchmarks import arq_peer
from tests.benchmarks.calm import apart, calm, cpu_s
from tests.benchmarks.figure import Benchmark, Row, Sample, Size
from tests.benchmarks.fill import fill
from tests.benchmarks.stage import Stage

LOOK_S: Final = 0.004
PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Drained:
    """Missions per second, and processor µs a mission took of the worker and of Redis."""

    rate: float
    worker_us: float
    redis_us: float


def drain(stage: Stage, worker: AbstractContextManager[subprocess.Popen[bytes]], missions: int, runs: int) -> Drained:
    """Start the worker and wait for the last handler run; time counts from the first one that is seen."""
    goal, seen, first = missions * runs, 0, 0
    begun, used = 0.0, (0.0, 0.0)
    with worker as process, apart(stage.server.pid, process.pid), stage.tally.open("rb") as tally:
        give_up = time.monotonic() + PATIENCE_S
        while seen < goal:
            seen += tally.read().count(b"\n")
            now = time.perf_counter()
            if seen and not first:
                first, begun, used = seen, now, (cpu_s(process.pid), cpu_s(stage.server.pid))
            if time.monotonic() > give_up or process.poll() is not None:
                raise RuntimeError(f"only {seen} of {goal} handler runs: see {stage.folder / 'log'}")
            time.sleep(LOOK_S)
        seconds = now - begun
        per_mission = 1e6 * runs / (goal - first)
        return Drained(
            (goal - first) / runs / seconds,
            (cpu_s(process.pid) - used[0]) * per_mission,
            (cpu_s(stage.server.pid) - used[1]) * per_mission,
        )


def _measure(stage: Stage, size: Size, *, name: str, runs: int, ours: int, peers: int) -> dict[str, Sample]:
    stage.empty()
    fill(stage.url, f"test.{name}", size.of(ours))
    calm(size.patience_s)
    mine = drain(stage, stage.part("background"), size.of(ours), runs)
    stage.empty()
    arq_peer.fill(stage.redis, name, size.of(peers))
    calm(size.patience_s)
    arq = stage.process("-m", "tests.benchmarks.arq_peer", str(stage.socket))
    peer = drain(stage, arq, size.of(peers), runs)
    return {
        name: Sample(mine.rate, peer.rate),
        f"{name}-worker": Sample(mine.worker_us, peer.worker_us),
        f"{name}-redis": Sample(mine.redis_us, peer.redis_us),
    }


def _rows(name: str, what: str, least: float) -> tuple[Row, ...]:
    return (
        Row(name, what, "missions/s", "arq", least=least),
        Row(f"{name}-worker", "  processor of the worker", "µs/mission", "arq"),
        Row(f"{name}-redis", "  processor of Redis", "µs/mission", "arq"),
    )


FIVE = Benchmark(
    "five",
    _rows("five", "five committed states", 5.0),
    partial(_measure, name="five", runs=5, ours=12_000, peers=1_500),
)
NOOP = Benchmark(
    "noop", _rows("noop", "no-op missions", 7.0), partial(_measure, name="noop", runs=1, ours=24_000, peers=3_000)
)
