"""What each lane gets of a worker that is never done: no lane starves, however much stands in the better ones."""

import time
from typing import Final

from tests.benchmarks.calm import calm
from tests.benchmarks.figure import Benchmark, Row, Sample, Size
from tests.benchmarks.fill import fill
from tests.benchmarks.stage import Stage

LANES: Final = ("urgent", "normal", "bulk")
LEFT: Final = 0.25
"""Measured until so much of the urgent lane is left, so that all three are full all the time."""

PATIENCE_S: Final = 60.0
LOOK_S: Final = 0.002


def _measure(stage: Stage, size: Size) -> dict[str, Sample]:
    stage.empty()
    each = size.of(6_000)
    for priority in LANES:
        fill(stage.url, "test.noop", each, priority=priority)
    calm(size.patience_s)
    give_up = time.monotonic() + PATIENCE_S
    with stage.part("background", DUALLOOP_SLOTS="8", DUALLOOP_URGENT_SLOTS="0"):
        while (waiting := {lane: stage.waiting(lane) for lane in LANES})["urgent"] > LEFT * each:
            if time.monotonic() > give_up:
                raise RuntimeError(f"still {waiting} waiting: see {stage.folder / 'log'}")
            time.sleep(LOOK_S)
    served = {lane: each - left for lane, left in waiting.items()}
    return {f"share-{lane}": Sample(served[lane], sum(served.values())) for lane in LANES[1:]}


FAIRNESS = Benchmark(
    "fairness",
    (
        Row("share-normal", "normal missions served beside full lanes", "missions", "all served", least=0.9 * 3 / 32),
        Row("share-bulk", "  bulk missions", "missions", "all served", least=0.9 / 32),
    ),
    _measure,
)
"""Floors: a tenth below what P9 promises of the ordinary slots, an eighth kept from urgent, and a quarter of that from
normal, since a run is cut off somewhere."""
