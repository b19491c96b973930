"""Workers whose missions call an outside that this process plays."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import redis

from shared import keys
from tests.missions.outside import VARIABLE
from tests.outside import Outside
from tests.processes.commands import Front
from tests.stories.stack import Stack, running

LEASE_S = 1.5
"""Where a worker is killed; of others the lease must not lapse, however slow the machine is: they would be doubled."""


@contextlib.asynccontextmanager
async def calling(redis_url: str, folder: Path, service: Outside, workers: int, **env: str) -> AsyncIterator[Stack]:
    """So many workers, and a foreground."""
    fixed = {
        "DUALLOOP_MISSIONS": "tests.missions.outside",
        "DUALLOOP_LEASE_S": "15",
        "DUALLOOP_SLOTS": "20",
        VARIABLE: service.url,
    }
    async with running(redis_url, folder, foregrounds=1, workers=workers, **fixed | env) as stack:
        yield stack


def permits(stack: Stack, scope: str) -> int:
    """How many are held, by Redis' count."""
    with redis.Redis.from_url(stack.redis_url) as client:
        held = client.hlen(keys.prefix(0) + f"permits:{scope}")
    assert isinstance(held, int)
    return held


def under_way(stack: Stack, name: str) -> int:
    """Calls of a dependency, by Redis' count."""
    with redis.Redis.from_url(stack.redis_url) as client:
        found = client.zcard(keys.prefix(0) + f"calls:{name}")
    assert isinstance(found, int)
    return found


def breaker(stack: Stack, name: str) -> dict[str, str]:
    """What Redis knows of one."""
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        found = client.hgetall(keys.prefix(0) + f"breaker:{name}")
    assert isinstance(found, dict)
    return found


async def succeed(front: Front, ids: list[str]) -> None:
    """All of them, in whatever time that takes."""
    for one in ids:
        assert (await front.end(one))["status"] == "SUCCEEDED"
