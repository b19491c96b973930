"""The peer: an arq worker as it comes, doing what the missions do, on the same server. ``python -m … SOCKET``."""

import asyncio
import logging
import sys
from typing import Any, Final
from uuid import uuid4

import redis
import uvloop
from arq.connections import RedisSettings
from arq.constants import default_queue_name, job_key_prefix
from arq.jobs import serialize_job
from arq.utils import timestamp_ms
from arq.worker import Worker

from tests.missions.tally import tally

SLOTS: Final = 100
KEPT_MS: Final = 86_400_000
STEPS: Final = ("ONE", "TWO", "THREE", "FOUR", "FIVE")


class _Tools:
    """What a handler's toolbox tells the tally, so that both write the same line."""

    def __init__(self, ctx: dict[str, Any], state: str) -> None:
        self.task_id, self.attempt, self.fence = ctx["job_id"], ctx["job_try"], 1
        self.key = f"{self.task_id}:1:{state}:1"


async def noop(ctx: dict[str, Any]) -> None:
    """As ``test.noop``."""
    tally(_Tools(ctx, "WORKING"))


async def five(ctx: dict[str, Any]) -> None:
    """As ``test.five``: what is done after each step is written before the next begins."""
    key = "steps:" + ctx["job_id"]
    for state in STEPS:
        tally(_Tools(ctx, state))
        await ctx["redis"].hset(key, state, "done")


def fill(client: redis.Redis, function: str, many: int) -> None:
    """What ``enqueue_job`` writes, for many jobs at once."""
    for start in range(0, many, 500):
        now, scores = timestamp_ms(), dict[str, int]()
        with client.pipeline(transaction=False) as pipeline:
            for _ in range(min(500, many - start)):
                job_id = uuid4().hex
                pipeline.psetex(job_key_prefix + job_id, KEPT_MS, serialize_job(function, (), {}, None, now))
                scores[job_id] = now
            pipeline.zadd(default_queue_name, scores)
            pipeline.execute()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.set_event_loop(uvloop.new_event_loop())
    Worker(functions=[noop, five], redis_settings=RedisSettings(unix_socket_path=sys.argv[1]), max_jobs=SLOTS).run()
