"""Missions that lean on an outside service (`tests.outside`), each with another limit."""

import asyncio
import os
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel

from backend_loop.dependency import Breaker, Dependency
from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome, Retry
from backend_loop.retry import Retry as RetryPolicy
from backend_loop.toolbox import Toolbox

VARIABLE: Final = "DUALLOOP_TEST_OUTSIDE"
"""Environment: URL of the service."""

BANK: Final = Dependency("bank", concurrency=2, breaker=None)
FRAGILE: Final = Dependency("fragile", breaker=Breaker(failures=3, open_s=1.0, probes=2, ramp_s=2.0), retry_ratio=1.0)
FRAIL: Final = Dependency("frail", breaker=Breaker(failures=1, open_s=0.3, probes=1, ramp_s=0.5))
CROWD: Final = Dependency("crowd", breaker=None, retry_ratio=0.2)

OFTEN: Final = RetryPolicy(tries=20, base_s=0.05, cap_s=0.1)


class Payload(BaseModel):
    """On what it acts."""

    entity: str | None = None


Tools = Toolbox[Payload, Any]


async def call(tools: Tools, name: str) -> Outcome:
    """Ask the service; what it refuses is tried again, and not before it says."""
    url = urlsplit(os.environ[VARIABLE])
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        query = f"task={tools.task_id}&attempt={tools.attempt}&caller={os.getpid()}"
        writer.write(f"GET /{name}?{query} HTTP/1.1\r\nhost: {url.netloc}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
    finally:
        writer.close()
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    status = int(head[0].split(" ")[1])
    if status >= 400:
        return Retry(f"status {status}", after_s=float(headers.get("retry-after", 0)))
    return Go("done", result={"attempt": tools.attempt})


class Bank(Mission):
    """Two at a time, over all workers."""

    type = "test.bank"
    Payload = Payload
    target = "entity"
    table = steps("CALLING")

    @state("CALLING", uses=(BANK,), retry=OFTEN)
    async def call(self, tools: Tools) -> Outcome:
        return await call(tools, "bank")


class Mill(Mission):
    """One of its type at a time, in two states."""

    type = "test.mill"
    concurrency = 1
    table = steps("ONE", "TWO")

    @state("ONE")
    async def one(self, tools: Tools) -> Outcome:
        return await call(tools, "mill")

    @state("TWO")
    async def two(self, tools: Tools) -> Outcome:
        return await call(tools, "mill")


class Free(Mission):
    """Without a limit of its own."""

    type = "test.free"
    table = steps("CALLING")

    @state("CALLING")
    async def call(self, tools: Tools) -> Outcome:
        return await call(tools, "free")


class Fragile(Mission):
    """With a breaker."""

    type = "test.fragile"
    table = steps("CALLING")

    @state("CALLING", uses=(FRAGILE,), retry=OFTEN, timeout_s=20)
    async def call(self, tools: Tools) -> Outcome:
        return await call(tools, "fragile")


class Frail(Mission):
    """With a breaker that one failure opens, and a time that a call may take."""

    type = "test.frail"
    table = steps("CALLING")

    @state("CALLING", uses=(FRAIL,), retry=OFTEN, timeout_s=2)
    async def call(self, tools: Tools) -> Outcome:
        return await call(tools, "frail")


class Crowd(Mission):
    """With a budget of retries, and no breaker."""

    type = "test.crowd"
    table = steps("CALLING")

    @state("CALLING", uses=(CROWD,), retry=OFTEN)
    async def call(self, tools: Tools) -> Outcome:
        return await call(tools, "crowd")
