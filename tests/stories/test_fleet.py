"""The fleet's record through what may become of Redis: late, empty, or another one's."""

from pathlib import Path

import httpx
import redis
from fastapi import FastAPI

from frontend_loop.app import Foreground
from shared import keys
from shared.clock import now_ms
from shared.ids import Ids
from shared.settings import Settings
from tests.conftest import StartRedis
from tests.processes.restartable import Restartable
from tests.stories.stack import running
from tests.waiting import eventually


async def test_a_foreground_that_waited_long_for_redis_joins_as_soon_as_it_is_there(start_redis: StartRedis) -> None:
    server = Restartable(start_redis())
    server.kill()
    foreground = Foreground(Settings(redis_timeout_s=0.5), server.url)
    async with foreground.open(FastAPI()):
        following = next(loop for loop in foreground.loops if loop.name == "catalogue")
        await eventually(lambda: following.state().iterations > 3)
        assert following.state().failures == 0  # so its pauses do not grow
        server.start()
        await eventually(lambda: foreground.link.connected)
        await eventually(lambda: foreground.fleet.joined)
    server.kill()


async def test_when_redis_has_lost_its_data_all_keep_the_same_key(redis_url: str, tmp_path: Path) -> None:
    async with (
        running(redis_url, tmp_path, workers=0) as stack,
        httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as client,
    ):
        with redis.Redis.from_url(redis_url) as server:

            def recorded() -> bytes | None:
                key: bytes | None = server.hget(keys.FLEET, "mac_key")
                return key

            async def status(task_id: str) -> int:
                return (await client.get(f"/v1/results/{task_id}")).status_code

            async def becomes(task_id: str, wanted: int) -> bool:
                return await status(task_id) == wanted

            key = recorded()
            assert key is not None
            before = Ids(key).new(0, now_ms())
            assert await status(before) == 410
            server.flushall()
            await eventually(lambda: recorded() == key, what="the foreground records the key that it has")
            assert server.hget(keys.FLEET, "shards") == b"1"
            assert await status(before) == 410
            after = Ids(b"o" * 32).new(0, now_ms())
            assert await status(after) == 404
            server.hset(keys.FLEET, "mac_key", b"o" * 32)  # as of one that was faster than it
            await eventually(lambda: becomes(after, 410), what="it takes the fleet's key")
            assert await status(before) == 404
