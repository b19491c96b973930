"""How many commands a second one foreground takes in, as a share of what a bare route answers on the same machine."""

from typing import Final

from dualloop.parts import free_port
from tests.benchmarks.calm import calm, cpu_s
from tests.benchmarks.figure import Benchmark, Row, Sample, Size
from tests.benchmarks.fill import announce
from tests.benchmarks.load import load
from tests.benchmarks.stage import LOCAL, Stage

SLICES: Final = 5
SLICE_S: Final = 1


def _measure(stage: Stage, size: Size) -> dict[str, Sample]:
    """All are up, and are pressed in turns of a second: what disturbs the machine disturbs all."""
    slices = 1 if size.quick else SLICES
    stage.empty()
    announce(stage.url)
    bare_port, checking_port = free_port(LOCAL), free_port(LOCAL)
    bare = stage.process("-m", "tests.benchmarks.bare", str(bare_port))
    checking = stage.process("-m", "tests.benchmarks.checking", str(checking_port), stage.url)
    with stage.foreground() as (port, front), bare as peer, checking as other:
        stage.serves(port, "test.noop")
        stage.listens(peer, bare_port)
        stage.listens(other, checking_port)
        ports = (port, bare_port, checking_port)
        for warm in ports:
            load(stage, warm, SLICE_S)
        calm(size.patience_s)
        pressed = (front, peer, other, stage.server)
        used = [cpu_s(process.pid) for process in pressed]
        rates, many = [0.0] * len(ports), [0] * len(ports)
        for _ in range(slices):
            for n, at in enumerate(ports):
                rate, answered = load(stage, at, SLICE_S)
                rates[n] += rate / slices
                many[n] += answered
        spent = [cpu_s(process.pid) - before for process, before in zip(pressed, used, strict=True)]
    each = [seconds / answered * 1e6 for seconds, answered in zip(spent, (*many, many[0]), strict=True)]
    return {
        "accept": Sample(rates[0], rates[2]),
        "accept-bare": Sample(rates[0], rates[1]),
        "accept-front": Sample(each[0], each[2]),
        "accept-redis": Sample(each[3]),
    }


ACCEPT = Benchmark(
    "accept",
    (
        Row("accept", "accepts, 64 connections", "/s", "checking route", least=0.6),
        Row("accept-bare", "  beside a route that checks nothing", "/s", "bare route"),
        Row("accept-front", "  processor of the foreground", "µs/command", "checking route"),
        Row("accept-redis", "  processor of Redis", "µs/command"),
    ),
    _measure,
)
