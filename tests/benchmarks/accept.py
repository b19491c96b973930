"""How many commands a second one foreground takes in, as a share of what a bare route answers on the same server."""

from dualloop.parts import free_port
from tests.benchmarks.calm import calm, cpu_s
from tests.benchmarks.figure import Benchmark, Row, Sample, Size
from tests.benchmarks.fill import announce
from tests.benchmarks.load import load
from tests.benchmarks.stage import LOCAL, Stage

SECONDS = 5


def _measure(stage: Stage, size: Size) -> dict[str, Sample]:
    seconds = 1 if size.quick else SECONDS
    stage.empty()
    announce(stage.url)
    with stage.foreground() as (port, process):
        stage.serves(port, "test.noop")
        load(stage, port, 1)
        calm()
        used = cpu_s(process.pid), cpu_s(stage.server.pid)
        rate, many = load(stage, port, seconds)
        front_us = (cpu_s(process.pid) - used[0]) / many * 1e6
        redis_us = (cpu_s(stage.server.pid) - used[1]) / many * 1e6
    stage.empty()
    port = free_port(LOCAL)
    with stage.process("-m", "tests.benchmarks.bare", str(port)) as process:
        stage.listens(process, port)
        load(stage, port, 1)
        calm()
        used_bare = cpu_s(process.pid)
        bare, many = load(stage, port, seconds)
        bare_us = (cpu_s(process.pid) - used_bare) / many * 1e6
    return {
        "accept": Sample(rate, bare),
        "accept-front": Sample(front_us, bare_us),
        "accept-redis": Sample(redis_us),
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
