"""Submit to result while nothing else is to do, as a multiple of the cheapest thing one can ask of Redis: a PING."""

import asyncio
import time
from typing import Final

import redis.asyncio
import uvloop
from pydantic_core import from_json, to_json
from websockets.asyncio.client import ClientConnection, connect

from tests.benchmarks.calm import calm
from tests.benchmarks.client import Client
from tests.benchmarks.figure import Benchmark, Row, Sample, Size, median
from tests.benchmarks.stage import LOCAL, Stage

COMMAND: Final = {"type": "test.noop", "payload": {"n": 1}}
PAUSE_S: Final = 0.003
"""Between two, so that each meets processes that sleep."""


def _measure(stage: Stage, size: Size) -> dict[str, Sample]:
    stage.empty()
    with stage.background(), stage.foreground() as (port, _):
        stage.serves(port, "test.noop")
        calm(size.patience_s)
        socket, ping = uvloop.run(_socket(stage.url, port, size.of(300)))
        polls = _polls(port, size.of(150))
    pinged = median(ping) * 1e3
    return {
        "idle": Sample(median(socket) * 1e3, pinged),
        "idle-poll": Sample(median(polls) * 1e3, pinged),
    }


async def _socket(url: str, port: int, many: int) -> tuple[list[float], list[float]]:
    """Missions over the socket, with PINGs before, between and after."""
    pings, missions = list[float](), list[float]()
    client = redis.asyncio.Redis.from_url(url)
    address = f"ws://{LOCAL}:{port}/v1/ws"
    async with connect(address, subprotocols=["dualloop.v1.json"], compression=None) as socket:  # type: ignore[list-item]  # its stub wants a NewType of str
        for number in range(20):
            await _mission(socket, number)
            await client.ping()
        for number in range(many):
            begun = time.perf_counter()
            await client.ping()
            pings.append(time.perf_counter() - begun)
            await asyncio.sleep(PAUSE_S)
            missions.append(await _mission(socket, number))
            await asyncio.sleep(PAUSE_S)
    await client.aclose()
    return missions, pings


async def _mission(socket: ClientConnection, number: int) -> float:
    begun = time.perf_counter()
    await socket.send(to_json({"op": "submit", "ref": str(number), "command": COMMAND}).decode())
    while True:
        frame = from_json(await socket.recv())
        if frame["op"] == "result":
            return time.perf_counter() - begun
        if frame["op"] == "error":
            raise RuntimeError(f"the socket answered {frame}")


def _polls(port: int, many: int) -> list[float]:
    command, missions = to_json(COMMAND), list[float]()
    with Client(port) as client:
        for _ in range(20):
            client.finish(command)
        for _ in range(many):
            time.sleep(PAUSE_S)
            missions.append(client.finish(command))
    return missions


IDLE = Benchmark(
    "idle",
    (
        Row("idle", "idle, submit to result, socket", "ms", "PING", most=15.0),
        Row("idle-poll", "  the same by POST and long-poll", "ms", "PING"),
    ),
    _measure,
)
