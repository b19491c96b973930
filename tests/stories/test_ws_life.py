"""How sockets end: by their client, by slowness, by the process going; and that nothing of them is left."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from websockets.exceptions import ConnectionClosed

from frontend_loop import app, connection, serving
from frontend_loop.app import Foreground
from shared import keys
from shared.settings import Settings
from tests.stories.stack import LOCAL, running
from tests.stories.talk import Talk, talking
from tests.waiting import eventually

BIG = {"text": "x" * 200_000}


class Inside:
    """A foreground in the test's own process, to look into."""

    def __init__(self, foreground: Foreground, server: serving.Server) -> None:
        self.foreground, self.server = foreground, server
        self.ws = f"ws://{LOCAL}:{server.servers[0].sockets[0].getsockname()[1]}/v1/ws"

    @property
    def listening(self) -> int:
        return len(self.foreground.feed._listeners)

    @property
    def connections(self) -> int:
        return len(self.server.server_state.connections)


@contextlib.asynccontextmanager
async def inside(redis_url: str, **options: Any) -> AsyncIterator[Inside]:
    settings = Settings(redis_url=redis_url, port=0, _env_file=None, **options)
    foreground = Foreground(settings, redis_url)
    server = app.server(foreground)
    serving = asyncio.create_task(server.serve())
    try:
        await eventually(lambda: server.started or serving.done(), what="it serves")
        yield Inside(foreground, server)
    finally:
        server.should_exit = True
        await serving


async def test_b61_a_thousand_sockets_come_and_go_and_leave_nothing(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, foregrounds=0) as stack, inside(redis_url) as front:
        async with talking(front.ws) as talk:
            correlation_id = await talk.submit("test.patient", {"wait_s": 300})
            await talk.until(lambda frame: frame.get("state") == "LISTENING")
        await eventually(lambda: front.listening == 0)
        tasks = len(asyncio.all_tasks())

        async def come_and_go(number: int) -> None:
            async with talking(front.ws) as talk:
                await talk.say("watch", correlation_id=correlation_id)
                await talk.next()
                if number % 3 == 1:
                    await talk.say("submit", command={"type": "test.noop"})
                if number % 3 == 2:
                    talk.socket.transport.abort()

        for start in range(0, 1000, 20):
            await asyncio.gather(*(come_and_go(start + number) for number in range(20)))
        await eventually(lambda: front.listening == len(front.foreground.sockets) == front.connections == 0)
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks, what="no task is left")
        async with talking(front.ws) as talk:
            await talk.say("cancel", correlation_id=correlation_id)
        assert stack.workers[0].running.poll() is None


async def test_a_foreground_listens_before_redis_has_the_command(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(redis_url, tmp_path, foregrounds=0), inside(redis_url) as front, talking(front.ws) as talk:
        door, listening = front.foreground.door, list[int]()
        write = door._write

        async def wrote(*args: Any) -> tuple[int, bool]:
            listening.append(front.listening)
            return await write(*args)

        monkeypatch.setattr(door, "_write", wrote)
        await talk.result(await talk.submit("test.noop"))
        await talk.say("submit", ref="no", command={"type": "test.slow", "payload": {"seconds": -1}})
        await talk.next()
        assert listening == [1]
        assert front.listening == 0


def test_who_closes_an_idle_connection_first_is_the_client(redis_url: str) -> None:
    server = app.server(Foreground(Settings(redis_url=redis_url, _env_file=None), redis_url))
    patience_s = httpx.Limits().keepalive_expiry
    assert patience_s is not None
    assert server.config.timeout_keep_alive > patience_s


async def flood(talk: Talk, enough: Callable[[], bool] = lambda: True) -> None:
    """Ask for more than the network holds, and read nothing of it, until nothing more goes out and it is enough."""
    for number in range(400):
        try:
            async with asyncio.timeout(1):
                await talk.say("submit", ref=number, command={"type": "test.echo", "payload": BIG})
        except TimeoutError:
            if enough():
                return
        except ConnectionClosed:
            return


async def test_a_slow_reader_is_told_where_to_resume(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CLOSE_S", 60)  # it reads in the end, however long this machine takes
    monkeypatch.setattr(serving, "LINGER_S", 60)
    async with running(redis_url, tmp_path, foregrounds=0), inside(redis_url) as front:
        async with talking(front.ws, max_size=None, max_queue=1) as talk:
            (one,) = front.foreground.sockets._open
            await flood(talk, lambda: one._outbox.end is not None)
            await eventually(lambda: one._outbox.end is not None, what="it is found to be slow")
            closed = await talk.rest()
            assert closed.rcvd is not None
            assert closed.rcvd.code == 4408
            cursor = json.loads(closed.rcvd.reason)
            acks = [frame["correlation_id"] for frame in talk.frames if frame["op"] == "ack"]
            results = {frame["task_id"] for frame in talk.frames if frame["op"] == "result"}
            assert cursor["correlation_id"] not in results
            assert cursor["after_seq"] == talk.seen(cursor["correlation_id"])
        unfinished = [id_ for id_ in {*acks, cursor["correlation_id"]} if id_ not in results]
        async with talking(front.ws, max_size=None) as late:
            for id_ in unfinished:
                await late.say("watch", correlation_id=id_, after_seq=talk.seen(id_))
                await late.result(id_)
                late.check(id_, talk.seen(id_))


async def test_b61_who_never_reads_is_cut_off(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CLOSE_S", 0.2)
    monkeypatch.setattr(serving, "LINGER_S", 0.2)
    async with (
        running(redis_url, tmp_path, foregrounds=0),
        inside(redis_url, ws_frames=20) as front,
        talking(front.ws, max_queue=1, close_timeout=0.1) as talk,
    ):
        await flood(talk, lambda: front.connections == 0)
        await eventually(lambda: front.connections == 0, within=60, what="the connection is gone")
        assert front.listening == len(front.foreground.sockets) == 0


async def test_old_news_come_at_the_pace_of_the_reader(redis_url: str, tmp_path: Path) -> None:
    many, most = 60, 100_000
    async with running(redis_url, tmp_path, foregrounds=0), inside(redis_url, ws_bytes=most, ws_frames=8) as front:
        async with talking(front.ws, max_size=None) as talk:
            ids = [await talk.submit("test.echo", BIG) for _ in range(many)]
            for id_ in ids:
                await talk.result(id_)
        async with talking(front.ws, max_size=None, max_queue=1) as late:
            for id_ in ids:
                await late.say("watch", correlation_id=id_)
            (one,) = front.foreground.sockets._open
            box, waiting = one._outbox, one._watching
            await eventually(lambda: box._over(2), what="the reader lags")
            for _ in range(200):
                await asyncio.sleep(0)
                assert box._bytes <= most + len(BIG["text"]) + 10_000, "no more than one reading lies beyond the bound"
            assert box.end is None
            assert len(waiting) > many // 4, "what has no room is not read yet"
            for id_ in ids:
                await late.result(id_, within=60)
                late.check(id_)


async def test_one_socket_watches_only_so_many(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, DUALLOOP_WS_WATCHES="2") as stack, talking(stack.ws) as talk:
        one, other = [await talk.submit("test.patient", {"wait_s": 300}) for _ in range(2)]
        await talk.say("submit", ref="more", command={"type": "test.noop"})
        frame = await talk.until(lambda frame: frame.get("ref") == "more")
        assert (frame["problem"]["code"], frame["problem"]["status"]) == ("too_many_watches", 429)
        await talk.say("unwatch", correlation_id=one)
        await talk.result(await talk.submit("test.noop"))
        await talk.say("cancel", correlation_id=other)
        await talk.result(other)


async def test_b29_a_process_that_goes_says_so_and_takes_no_longer_than_its_drain(
    redis_url: str, tmp_path: Path
) -> None:
    async with running(redis_url, tmp_path, foregrounds=2, DUALLOOP_DRAIN_S="4") as stack:
        first, second = stack.foregrounds
        async with (
            talking(first.ws) as talk,
            talking(first.ws) as idle,
            talking(first.ws, max_size=None, max_queue=1) as slow,
        ):
            correlation_id = await talk.submit("test.slow", {"seconds": 600})
            await flood(slow)
            for number in range(50):
                await talk.say("submit", ref=number, command={"type": "test.patient", "payload": {"wait_s": 300}})
            began = time.monotonic()
            stopping = asyncio.create_task(first.stop())
            for one in (talk, idle):
                closed = await one.rest()
                assert closed.rcvd is not None
                assert closed.rcvd.code == 1012
                assert [frame["op"] for frame in one.frames].count("draining") == 1
            assert idle.frames == [{"op": "draining"}]
            assert await stopping == 0
            assert time.monotonic() - began < 4 + 20
        seen = talk.seen(correlation_id)
        taken = [frame["correlation_id"] for frame in talk.frames if frame["op"] == "ack"]
        async with talking(second.ws) as late:
            for id_ in taken:
                await late.say("watch", correlation_id=id_, after_seq=talk.seen(id_))
                await late.say("cancel", correlation_id=id_)
            for id_ in taken:
                await late.result(id_)
                late.check(id_, talk.seen(id_))
            assert late.seen(correlation_id) > seen


async def test_b29_a_long_poll_does_not_hold_up_a_process_that_goes(redis_url: str, tmp_path: Path) -> None:
    async with (
        running(redis_url, tmp_path, DUALLOOP_MAX_WAIT_S="600") as stack,
        httpx.AsyncClient(trust_env=False, timeout=600) as http,
    ):
        command = {"type": "test.patient", "payload": {"sleep_s": 600}}
        # not by a socket: it would be watched from the start, and a poll that waits not be seen
        sent = await http.post(f"{stack.url}/v1/commands", json=command)
        correlation_id = sent.json()["correlation_id"]
        with redis.Redis.from_url(redis_url) as client:
            record = keys.mission(0, correlation_id)
            await eventually(lambda: client.hget(record, "status") == b"WAITING", what="the mission waits")
            waiting = asyncio.create_task(http.get(f"{stack.url}/v1/results/{correlation_id}", params={"wait": 600}))
            await eventually(lambda: client.hget(record, "watchers"), what="the poll waits for it")
        assert await stack.foregrounds[0].stop(within=60) == 0
        answer = await waiting
        assert (answer.status_code, answer.json()["status"]) == (202, "WAITING")
