"""News are never lost because a socket, a hint, a foreground or Redis was away: the log is told to its end."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from shared import keys
from tests.conftest import StartRedis
from tests.processes.restartable import Restartable
from tests.stories.stack import running
from tests.stories.talk import Talk, talking
from tests.waiting import eventually

MANY = 150


@pytest.fixture
def server(start_redis: StartRedis) -> Iterator[Restartable]:
    """A Redis that forgets nothing."""
    server = Restartable(start_redis("--appendonly", "yes", "--appendfsync", "always"))
    yield server
    server.kill()


async def test_another_foreground_goes_on_where_a_killed_one_ended(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, foregrounds=2) as stack:
        first, second = stack.foregrounds
        async with talking(first.ws) as talk:
            for number in range(MANY):
                await talk.say("submit", ref=number, command={"type": "test.five"})
            await talk.until(lambda frame: frame["op"] == "result")
            first.kill()
            await talk.rest()
        ids = [frame["correlation_id"] for frame in talk.frames if frame["op"] == "ack"]
        results = {frame["task_id"] for frame in talk.frames if frame["op"] == "result"}
        seen = {id_: talk.seen(id_) for id_ in ids}
        for id_ in ids:
            talk.check(id_, ended=id_ in results)
        async with talking(second.ws) as late:
            open_ids = [id_ for id_ in ids if id_ not in results]
            for id_ in open_ids:
                await late.say("watch", correlation_id=id_, after_seq=seen[id_])
            for id_ in open_ids:
                await late.result(id_)
                late.check(id_, seen[id_])


async def test_a_client_may_resume_again_and_again(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack:
        async with talking(stack.ws) as talk:
            correlation_id = await talk.submit("test.five")
        seen = 0
        while True:
            async with talking(stack.ws) as late:
                await late.say("watch", correlation_id=correlation_id, after_seq=seen)
                frame = await late.next()
                if frame["op"] == "result":
                    break
                seen += 1
                assert frame["seq"] == seen
        assert seen == 6


async def test_hints_that_are_cut_off_cost_latency_only(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack, talking(stack.ws) as talk:
        with redis.Redis.from_url(redis_url) as client:
            ids: list[str] = []
            for number in range(MANY):
                await talk.say("submit", ref=number, command={"type": "test.five"})
                if number % 10 == 0:
                    client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            while len(ids) < MANY:
                frame = await talk.next()
                ids += [frame["correlation_id"]] if frame["op"] == "ack" else []
            for id_ in ids:
                await talk.result(id_, within=60)
                talk.check(id_)


async def test_hints_that_are_never_sent_cost_latency_only(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack, talking(stack.ws) as talk:
        stack.workers[0].freeze()
        correlation_id = await talk.submit("test.five")
        with redis.Redis.from_url(redis_url) as client:
            assert client.hdel(keys.mission(0, correlation_id), "watchers"), "nobody is told of it from here on"
        stack.workers[0].thaw()
        await talk.result(correlation_id)
        talk.check(correlation_id)


async def test_what_redis_did_while_nobody_could_hear_it_is_told(start_redis: StartRedis, tmp_path: Path) -> None:
    server = start_redis()
    async with running(server.url, tmp_path) as stack, talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.slow", {"seconds": 3})
        server.process.send_signal(signal.SIGSTOP)
        log = stack.foregrounds[0].log
        await eventually(lambda: "redis silent" in log.read_text(), within=60, what="the link is given up")
        await talk.say("ping")
        pong = await talk.until(lambda frame: frame["op"] not in {"event", "result"})
        assert pong["op"] == "pong", "a socket needs no Redis"
        await talk.say("submit", ref="away", command={"type": "test.noop"})
        refused = await talk.until(lambda frame: frame.get("ref") == "away")
        assert (refused["problem"]["status"], refused["problem"]["retryable"]) == (503, True)
        server.process.send_signal(signal.SIGCONT)
        await talk.result(correlation_id, within=60)
        talk.check(correlation_id)
        await eventually(lambda: _served(talk), within=60, what="commands are taken again")


async def test_a_redis_that_was_killed_and_came_back_costs_latency_only(server: Restartable, tmp_path: Path) -> None:
    async with (
        running(server.url, tmp_path, DUALLOOP_LEASE_S="3") as stack,
        talking(stack.ws) as talk,
    ):
        ids = [await talk.submit("test.slow", {"seconds": tenths / 10}) for tenths in range(20)]
        for _ in range(2):
            await talk.until(lambda frame: frame["op"] == "event")
            server.kill()
            server.start()
        for id_ in ids:
            await talk.result(id_, within=60)
            talk.check(id_)


async def _served(talk: Talk) -> bool:
    await talk.say("submit", ref="again", command={"type": "test.noop"})
    frame = await talk.until(lambda frame: frame.get("ref") == "again")
    return bool(frame["op"] == "ack")


async def test_a_result_that_is_no_longer_kept_is_gone(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, DUALLOOP_RETENTION_S="3") as stack, talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.noop")
        await talk.result(correlation_id)

        async def code() -> str:
            async with talking(stack.ws) as late:
                await late.say("watch", ref=1, correlation_id=correlation_id)
                frame = await late.until(lambda frame: frame["op"] in {"result", "error"})
                return str(frame["problem"]["code"]) if frame["op"] == "error" else "kept"

        async def expired() -> bool:
            return await code() == "expired"

        await eventually(expired, what="the result is no longer kept")
        with redis.Redis.from_url(redis_url) as client:
            await eventually(
                lambda: not client.exists(keys.mission(0, correlation_id)), within=60, what="it is retired"
            )
        assert await code() == "expired"


async def test_a_mission_that_vanishes_is_told_of(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack, talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.patient", {"sleep_s": 0.01, "wait_s": 300})
        await talk.until(lambda frame: frame.get("state") == "LISTENING")
        with redis.Redis.from_url(redis_url) as client:
            client.delete(*client.keys(f"*{correlation_id}*"))
        frame = await talk.until(lambda frame: frame["op"] == "error", within=60)
        assert frame["problem"]["code"] == "expired"
        assert frame["problem"]["correlation_id"] == correlation_id


async def test_b65_a_foreground_that_stands_still_for_a_while_misses_nothing(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack, talking(stack.ws) as talk:
        correlation_id = await talk.submit("test.slow", {"seconds": 1})
        await talk.until(lambda frame: frame["op"] == "event")
        stack.foregrounds[0].freeze()
        with redis.Redis.from_url(redis_url) as client:
            await eventually(lambda: client.exists(keys.result(0, correlation_id)), what="it has ended")
        stack.foregrounds[0].thaw()
        await talk.result(correlation_id)
        talk.check(correlation_id)


async def test_an_ended_socket_ends_no_mission(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack:
        async with talking(stack.ws) as talk:
            ids = [await talk.submit("test.slow", {"seconds": 0.5}) for _ in range(5)]
            talk.socket.transport.abort()
        async with talking(stack.ws) as late:
            for id_ in ids:
                await late.say("watch", correlation_id=id_)
            for id_ in ids:
                assert (await late.result(id_))["status"] == "SUCCEEDED"
                late.check(id_)
