"""Run the benchmarks and print the table; exit code 1 if a floor is missed.

Usage: python -m tests.benchmarks [--quick] [--only NAME]... [--server NAME]... [--reps N] [--json FILE]
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from dualloop.redis_program import Program, bundled_program, on_path
from tests.benchmarks import accept, cost, drain, failover, fairness, idle, latency, report, rollout, voice
from tests.benchmarks.calm import QUIET, Others
from tests.benchmarks.figure import Benchmark, Figure, Sample, Size
from tests.benchmarks.stage import Stage, stage

ALL: Sequence[Benchmark] = (
    idle.IDLE,
    drain.FIVE,
    drain.NOOP,
    accept.ACCEPT,
    latency.LATENCY,
    rollout.ROLLOUT,
    fairness.FAIRNESS,
    cost.COST,
    failover.FAILOVER,
    voice.VOICE,
)
JUDGED = "redis-server"
SERVERS = (JUDGED, "bundled")


def main() -> int:
    """Parse, measure, tell."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that all that was started is ended
    wanted = _arguments()
    size = Size(wanted.quick, 1 if wanted.quick else wanted.reps)
    chosen = [one for one in ALL if not wanted.only or one.name in wanted.only]
    figures: list[Figure] = []
    for name in wanted.server or SERVERS[: 1 if wanted.quick else None]:
        program = _program(name)
        if program is None:
            sys.stderr.write(f"no {name} of version 7 or later here: its figures are left out\n")
            continue
        figures += _on(name, program, chosen, size)
    figures.sort(key=lambda figure: [row.name for one in ALL for row in one.rows].index(figure.row.name))
    report.table(figures)
    if wanted.json is not None:
        report.as_json(figures, wanted.json)
    missed = [figure.row.name for figure in figures if figure.verdict == "MISSED"]
    return 1 if missed else 0


def _on(name: str, program: Program, chosen: Sequence[Benchmark], size: Size) -> list[Figure]:
    """Every benchmark in turn, and all that again: what disturbs the machine for a while disturbs all alike."""
    judged, server = name == JUDGED and not size.quick, f"{program.brand} {program.version[0]}.{program.version[1]}"
    figures = {row.name: Figure(row, server, judged) for one in chosen for row in one.rows}
    with stage(program) as stand:
        for rep in range(size.reps):
            for one in chosen:
                if rep and one.once:
                    continue
                samples, disturbed = _undisturbed(one, stand, size)
                told = ", ".join(f"{key} {sample.ours:,.4g}/{sample.peer:,.4g}" for key, sample in samples.items())
                sys.stderr.write(f"{name} {rep + 1}/{size.reps} {told}; others {disturbed:.0%}\n")
                for key, sample in samples.items():
                    figures[key].samples.append(sample)
    return list(figures.values())


def _undisturbed(one: Benchmark, stand: Stage, size: Size) -> tuple[dict[str, Sample], float]:
    """The samples, and what share of the machine others used meanwhile; taken again, twice at most, if it was much."""
    tries = []
    for _ in range(1 if size.quick or one.once else 3):
        others = Others(stand.server.pid)
        samples = one.measure(stand, size)
        tries.append((others.share(), samples))
        if tries[-1][0] <= QUIET:
            break
    disturbed, samples = min(tries, key=lambda each: each[0])
    return samples, disturbed


def _program(name: str) -> Program | None:
    found = bundled_program() if name == "bundled" else on_path(name)
    return found if found is not None and found.version >= (7,) else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke of less than a minute; floors are not judged")
    parser.add_argument("--only", action="append", choices=[one.name for one in ALL], help="this one; may be repeated")
    parser.add_argument("--server", action="append", choices=SERVERS, help="on this one only; may be repeated")
    parser.add_argument("--reps", type=int, default=3, help="repetitions (3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
