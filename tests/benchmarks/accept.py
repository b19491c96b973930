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
    """Both are up, and are pressed in turns of a second: what disturbs the machine disturbs both."""
    slices = 1 if size.quick else SLICES
    stage.empty()
    announce(stage.url)
    bare_port = free_port(LOCAL)
    bare = stage.process("-m", "tests.benchmarks.bare", str(bare_port))
    with stage.foreground() as (port, front), bare as peer:
        stage.serves(port, "test.noop")
        stage.listens(peer, bare_port)
        for warm in (port, bare_port):
            load(stage, warm, SLICE_S)
        calm()
        used = [cpu_s(process.pid) for process in (front, peer, stage.server)]
        ours = theirs = 0.0
        ours_many = theirs_many = 0
        for _ in range(slices):
            rate, many = load(stage, port, SLICE_S)
            ours, ours_many = ours + rate / slices, ours_many + many
            rate, many = load(stage, bare_port, SLICE_S)
            theirs, theirs_many = theirs + rate / slices, theirs_many + many
        front_s, bare_s, redis_s = (
            cpu_s(process.pid) - before for process, before in zip((front, peer, stage.server), used, strict=True)
        )
    return {
        "accept": Sample(ours, theirs),
        "accept-front": Sample(front_s / ours_many * 1e6, bare_s / theirs_many * 1e6),
        "accept-redis": Sample(redis_s / ours_many * 1e6),
    }


ACCEPT = Benchmark(
    "accept",
    (
        Row("accept", "accepts, 64 connections", "/s", "a bare ASGI route", least=0.6),
        Row("accept-front", "  processor of the foreground", "µs/command", "a bare ASGI route"),
        Row("accept-redis", "  processor of Redis", "µs/command"),
    ),
    _measure,
)
