"""The Python client against real processes, and against what may stand in their place."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis

from dualloop.client import Client, ClientProblem, UnreachableError, configured_urls
from shared import keys
from shared.settings import Settings
from tests.ports import unused_port
from tests.stories.stack import LOCAL, Stack, running
from tests.waiting import eventually

DEAD = "http://127.0.0.1:9"  # the discard port: nobody listens


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(redis_url, tmp_path) as stack:
        yield stack


@contextlib.asynccontextmanager
async def impostor(answer: bytes) -> AsyncIterator[str]:
    """A server that reads a request and says this, whatever it was asked."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, LOCAL, unused_port())
    async with server:
        yield f"http://{LOCAL}:{server.sockets[0].getsockname()[1]}"


async def test_a_command_goes_in_and_its_result_comes_out(stack: Stack) -> None:
    async with Client(stack.url) as client:
        ack = await client.submit("test.five", {}, priority="urgent", deadline_s=60, target=None)
        assert ack.status == "PENDING"
        assert ack.links["result"].endswith(ack.correlation_id)
        result = await client.wait(ack.correlation_id, timeout=60)
        assert (result["status"], result["result"]) == ("SUCCEEDED", {"steps": 5})
        assert await client.result(ack.correlation_id) == result
        mission = await client.mission(ack.correlation_id)
        assert (mission["priority"], mission["why"][:9]) == ("urgent", "SUCCEEDED")
        page = await client.missions(type="test.five", status=["SUCCEEDED", "FAILED"], q=None)
        assert [row["task_id"] for row in page["missions"]] == [ack.task_id]


async def test_it_tells_what_workers_know(stack: Stack) -> None:
    async with Client(stack.url) as client:
        assert "test.slow" in [row["type"] for row in await client.mission_types()]
        assert (await client.mission_type("test.slow"))["target"] == "entity"
        with pytest.raises(ClientProblem) as refused:
            await client.mission_type("test.slow", version=7)
        assert (refused.value.status, refused.value.code) == (404, "not_found")


async def test_a_refusal_carries_the_problem_document(stack: Stack) -> None:
    async with Client(stack.url) as client:
        with pytest.raises(ClientProblem, match="/payload/seconds") as refused:
            await client.submit("test.slow", {"seconds": "long"})
        assert refused.value.status == 422
        assert not refused.value.retryable
        assert refused.value.document["errors"][0]["pointer"] == "/payload/seconds"
        with pytest.raises(ClientProblem) as unknown:
            await client.wait("../../etc", timeout=60)
        assert unknown.value.status == 404
        ack = await client.submit("test.noop")
        await client.wait(ack.correlation_id)
        with pytest.raises(ClientProblem) as ended:
            await client.cancel(ack.correlation_id)
        assert ended.value.code == "ended"
        with pytest.raises(ValueError, match="surrogate"):
            await client.submit("test.noop", {"text": "\ud800"})


async def test_waiting_ends_and_the_mission_goes_on_until_it_is_cancelled(stack: Stack) -> None:
    async with Client(stack.url) as client:
        ack = await client.submit("test.slow", {"seconds": 600})
        with pytest.raises(TimeoutError):
            await client.wait(ack.correlation_id, timeout=0.3)
        assert (await client.result(ack.correlation_id))["status"] in {"PENDING", "RUNNING"}
        assert (await client.cancel(ack.correlation_id))["status"] in {"RUNNING", "CANCELLED"}
        assert (await client.wait(ack.correlation_id, timeout=60))["reason"] == "requested"


async def test_a_wait_outlives_its_foreground(stack: Stack) -> None:
    async with Client(stack.url) as client:
        ack = await client.submit("test.slow", {"seconds": 600})
        waiting = asyncio.create_task(client.wait(ack.correlation_id))
        with redis.Redis.from_url(stack.redis_url) as db:
            await eventually(lambda: db.hget(keys.mission(0, ack.task_id), "watchers"), what="it waits")
        stack.foregrounds[0].kill()
        await stack.foregrounds[0].start()
        assert not waiting.done()
        await client.cancel(ack.correlation_id)
        assert (await asyncio.wait_for(waiting, 60))["status"] == "CANCELLED"


async def test_the_next_foreground_is_asked_where_one_is_away(stack: Stack) -> None:
    async with Client([DEAD, stack.url]) as client:
        ack = await client.submit("test.noop")
        assert client.url == stack.url
        assert (await client.wait(ack.correlation_id))["status"] == "SUCCEEDED"


async def test_a_watch_tells_each_event_once_and_then_the_result(stack: Stack) -> None:
    async with Client(stack.url) as client:
        ack = await client.submit("test.five")
        frames = [frame async for frame in client.watch(ack.correlation_id)]
        assert [frame["op"] for frame in frames] == ["event"] * 6 + ["result"]
        assert [frame["seq"] for frame in frames[:-1]] == list(range(1, 7))
        assert [frame["state"] for frame in frames[:-1]] == ["ONE", "TWO", "THREE", "FOUR", "FIVE", "SUCCEEDED"]
        assert frames[-1] == {"op": "result", **await client.result(ack.correlation_id)}
        assert [frame async for frame in client.watch(ack.correlation_id, after_seq=4)] == frames[4:]
        with pytest.raises(ClientProblem) as unknown:
            await anext(client.watch("x"))
        assert unknown.value.status == 404


async def test_a_watch_that_begins_while_its_mission_runs_tells_all_of_it(stack: Stack) -> None:
    async with Client(stack.url) as client:
        for _ in range(60):  # hints, the first reading and a second one race each other: a few in a hundred did collide
            ack = await client.submit("test.five")
            frames = [frame async for frame in client.watch(ack.correlation_id)]
            assert [frame["seq"] for frame in frames] == [1, 2, 3, 4, 5, 6, 6]


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_a_watch_goes_on_at_another_foreground_where_it_ended(redis_url: str, tmp_path: Path, how: str) -> None:
    async with running(redis_url, tmp_path, foregrounds=2) as stack:
        first, second = stack.foregrounds
        async with Client([first.url, second.url]) as client, contextlib.aclosing(_patient(client)) as frames:
            told = [await anext(frames) for _ in range(4)]
            assert told[-1]["status"] == "WAITING"
            if how == "kill":
                first.kill()
            else:
                assert await first.stop() == 0
            assert (await client.cancel(told[0]["correlation_id"]))["status"] in {"WAITING", "CANCELLED"}
            told += [frame async for frame in frames]
            assert client.url == second.url
        assert [frame["op"] for frame in told] == ["event"] * (len(told) - 1) + ["result"]
        assert [frame["seq"] for frame in told[:-1]] == list(range(1, len(told)))
        assert told[-1]["reason"] == "requested"


async def _patient(client: Client) -> AsyncGenerator[dict[str, Any], None]:
    """Frames of a mission that waits for a knock that never comes."""
    ack = await client.submit("test.patient", {"sleep_s": 0.01, "wait_s": 300})
    async for frame in client.watch(ack.correlation_id):
        yield frame


async def test_patience_ends() -> None:
    async with Client(DEAD, patience_s=0.3) as client:
        with pytest.raises(UnreachableError, match=f"No foreground answers at {DEAD}") as away:
            await client.submit("test.noop")
        assert not away.value.sent
        with pytest.raises(UnreachableError):
            await client.wait("x")
        with pytest.raises(UnreachableError):
            await anext(client.watch("x"))


async def test_a_command_whose_answer_was_lost_may_have_been_taken() -> None:
    async with impostor(b"") as url, Client(url) as client:
        with pytest.raises(UnreachableError) as lost:
            await client.submit("test.noop")
        assert lost.value.sent


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "502 Bad Gateway"])
async def test_another_server_is_told_from_a_foreground(status: str) -> None:
    answer = f"HTTP/1.1 {status}\r\ncontent-length: 5\r\n\r\nhello".encode()
    async with impostor(answer) as url, Client(url, patience_s=0) as client:
        with pytest.raises(ClientProblem, match="no foreground of Dual Loop") as foreign:
            await client.result("x")
        assert foreign.value.retryable == status.startswith("502")
        with pytest.raises(ClientProblem, match="opens no socket"):
            await anext(client.watch("x"))


def test_it_is_found_by_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured_urls(Settings(host="0.0.0.0", port=8123)) == ("http://127.0.0.1:8123",)  # noqa: S104  not bound
    monkeypatch.setenv("DUALLOOP_URL", "http://a:1, http://b:2/")
    assert configured_urls() == ("http://a:1", "http://b:2/")
    assert Client().url == "http://a:1"
