"""How long a fleet goes without a leader: killed, and stopped; until the first step of another one in the audit."""

import signal
import subprocess
import time
from typing import Final

from backend_loop.loops.audit import OFFICE
from shared import keys
from tests.benchmarks.figure import Benchmark, Row, Sample, Size
from tests.benchmarks.stage import Stage
from tests.waiting import until

TERMS: Final = keys.prefix(0) + "terms"
"""Under which term the audit has last been at work, by office."""
LOOK_S: Final = 0.002


def _measure(stage: Stage, size: Size) -> dict[str, Sample]:
    term_s = 1.0 if size.quick else 6.0
    return {
        "failover": Sample(_gap(stage, term_s, signal.SIGKILL), term_s),
        "failover-stop": Sample(_gap(stage, term_s, signal.SIGTERM), term_s),
    }


def _gap(stage: Stage, term_s: float, end: signal.Signals) -> float:
    """Seconds from the signal to the leader, in the middle of its work, to the first step of the other process."""
    stage.empty()
    env = {"DUALLOOP_LEASE_S": str(term_s), "DUALLOOP_AUDIT_S": "0.05"}
    with stage.background(**env) as leader:
        until(lambda: _term(stage), within=30, what="the first process leads")
        with stage.part("background", **env) as other:
            until(lambda: _owners(stage) == 2, within=30, what="the second process is there")
            term = _term(stage)
            leader.send_signal(end)
            begun = time.perf_counter()
            while _term(stage) == term:
                _alive(other)
                time.sleep(LOOK_S)
            return time.perf_counter() - begun


def _term(stage: Stage) -> int:
    return int(stage.redis.hget(TERMS, OFFICE) or 0)  # type: ignore[arg-type]  # its stub covers the asyncio client too


def _owners(stage: Stage) -> int:
    return int(stage.redis.zcard(keys.owners(0)))  # type: ignore[arg-type]  # likewise


def _alive(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        raise RuntimeError("the process that should lead next has ended")


FAILOVER = Benchmark(
    "failover",
    (
        Row("failover", "leader killed, to the next one's first step", "s", "term", most=1.1),
        Row("failover-stop", "  leader stopped", "s", "term", most=0.2),
    ),
    _measure,
)
