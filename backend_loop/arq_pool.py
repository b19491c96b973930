"""arq's own connections to Redis, which know no time-out: of one that is frozen they would wait for ever."""

import asyncio
from collections.abc import Iterable
from typing import Any

from arq.connections import ArqRedis
from redis.exceptions import RedisError

from shared.logs import get

log = get(__name__)


async def let_go(pool: ArqRedis, jobs: Iterable[asyncio.Task[Any]], health_key: str, within_s: float) -> None:
    """Let jobs that were cut say so, take the health key along and close; what is not done in time lapses."""
    try:
        async with asyncio.timeout(within_s):
            await asyncio.gather(*jobs, return_exceptions=True)
            await pool.delete(health_key)
            await pool.close(close_connection_pool=True)
    except (RedisError, OSError) as error:  # a TimeoutError is an OSError
        log.warning("arq's keys are left to lapse", error=str(error) or type(error).__name__)
