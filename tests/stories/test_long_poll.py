"""Waiting for a result over HTTP: it ends in its time whatever is told meanwhile, and with the client."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import redis

from frontend_loop.feed import Feed
from frontend_loop.results import Results
from shared import keys
from shared.clock import now_ms
from shared.fleet import Fleet
from shared.redis import Link
from tests.stories.stack import LOCAL, running
from tests.waiting import eventually

RECORD = {"type": "test.slow", "status": "RUNNING", "state": "ACTING", "place": "leased", "rev": "1"}


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[Link]:
    link = await Link(redis_url).open(wait_s=30)
    yield link
    await link.close()


async def test_a_wait_ends_in_its_time_though_it_is_told_something_in_that_moment(link: Link, redis_url: str) -> None:
    fleet, feed = Fleet(1), Feed(link, 1)
    await fleet.join(link)
    await feed.open(redis_url, 2.0)
    results = Results(feed, fleet)
    task_id = fleet.ids.new(0, now_ms())
    await link.call("HSET", keys.mission(0, task_id), *(part for pair in RECORD.items() for part in pair))
    clock = asyncio.get_running_loop().time
    end = clock() + 0.5
    renewing = asyncio.create_task(feed.loop.run())
    waits = [asyncio.create_task(results.get(task_id, end + n / 1000 - clock())) for n in range(60)]
    while clock() < end + 0.1:  # all that time everybody is told to read again, again and again
        feed.loop.wake()
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        documents = await asyncio.gather(*waits)
    assert not any(document.final for document in documents)
    feed.loop.stop()
    await renewing
    await feed.close()


async def test_who_has_left_is_waited_for_no_more(redis_url: str, tmp_path: Path) -> None:
    async with (
        running(redis_url, tmp_path, DUALLOOP_MAX_WAIT_S="600") as stack,
        httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as client,
    ):
        command = {"type": "test.slow", "payload": {"seconds": 300}, "deadline_s": 600}
        ids = [(await client.post("/v1/commands", json=command)).json()["task_id"] for _ in range(10)]
        with redis.Redis.from_url(redis_url) as server:

            def watched() -> int:
                return sum(bool(server.hget(keys.mission(0, task_id), "watchers")) for task_id in ids)

            writers = [await _ask(stack.foregrounds[0].port, ids[n % 10]) for n in range(50)]
            await eventually(lambda: watched() == 10, what="all are waited for")
            stays = asyncio.create_task(client.get(f"/v1/results/{ids[0]}", params={"wait": 600}))
            for writer in writers:
                writer.close()
            await eventually(lambda: watched() == 1, what="only the one whose client stays is waited for")
            await client.post(f"/v1/commands/{ids[0]}/cancel")
            assert (await stays).json()["status"] == "CANCELLED"


async def _ask(port: int, task_id: str) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection(LOCAL, port)
    writer.write(f"GET /v1/results/{task_id}?wait=600 HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    await writer.drain()
    return writer
