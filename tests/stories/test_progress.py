"""How far a mission is, as clients see it: told while it runs, only the newest, whatever is lost; not after the end."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio
import redis

from frontend_loop import frames
from shared import keys
from shared.clock import rfc3339
from tests.stories.stack import Stack, running
from tests.stories.talk import Frame, talking


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with running(module_redis_url, tmp_path_factory.mktemp("progress")) as stack:
        yield stack


class Handler:
    """Says in a mission's name how far it is, in the record and, unless that is lost, by a hint."""

    def __init__(self, client: Any, task_id: str) -> None:
        self.client, self.task_id, self.record = client, task_id, keys.mission(0, task_id)

    def report(self, done: float, total: float | None = None, message: str | None = None, *, lost: bool = False) -> str:
        """When it was told."""
        seconds, micros = self.client.time()
        now = seconds * 1000 + micros // 1000
        value = {"done": done, "total": total, "message": message}
        raw = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        self.client.hset(self.record, mapping={"progress": raw, "progress_at": now})
        line = f'P{{"status":"RUNNING","state":"ACTING","at":"{rfc3339(now)}","progress":{raw}}}'
        if not lost:
            self.hint(line)
        return rfc3339(now)

    def hint(self, *lines: str) -> None:
        """A message a line."""
        fronts = (self.client.hget(self.record, "watchers") or b"").decode().split()[::2]
        assert fronts, "somebody watches"
        with self.client.pipeline(transaction=False) as pipe:
            for line in lines:
                for front in fronts:
                    pipe.publish(keys.feed(0, front), f"{self.task_id}\n{line}")
            pipe.execute()


Handling = Callable[[str], Handler]


@pytest.fixture
def handling(stack: Stack) -> Any:
    with redis.Redis.from_url(stack.redis_url) as client:
        yield lambda task_id: Handler(client, task_id)


async def document(stack: Stack, correlation_id: str, path: str = "results") -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        found: dict[str, Any] = (await http.get(f"{stack.url}/v1/{path}/{correlation_id}")).json()
        return found


async def row(stack: Stack, correlation_id: str) -> dict[str, Any]:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        answer = await http.get(f"{stack.url}/v1/missions", params={"correlation_id": correlation_id})
        [found] = answer.json()["missions"]
        return dict(found)


def is_progress(frame: Frame) -> bool:
    return bool(frame["op"] == "progress")


async def test_progress_is_told_as_it_comes(stack: Stack, handling: Handling) -> None:
    async with talking(stack.ws) as talk:
        id_ = await talk.submit("test.slow", {"seconds": 600})
        await talk.until(lambda frame: frame.get("seq") == 1)
        at = handling(id_).report(3, 4, "第三块")
        assert await talk.next() == {
            "op": "progress",
            "correlation_id": id_,
            "status": "RUNNING",
            "state": "ACTING",
            "at": at,
            "progress": {"done": 3, "total": 4, "message": "第三块"},
        }
        assert (await document(stack, id_))["progress"] == {"done": 3, "total": 4, "message": "第三块"}
        await talk.say("cancel", correlation_id=id_)
        await talk.result(id_)
        talk.check(id_)
        handling(id_).client.publish(keys.feed(0, "nobody"), "")
        await talk.say("ping")
        assert (await talk.next())["op"] == "pong", "nothing follows the result"


def test_a_childs_progress_carries_its_own_id_too() -> None:
    assert frames.progress_head("R", "R") == b'{"op":"progress","correlation_id":"R",'
    assert frames.progress_head("R", "C") == b'{"op":"progress","correlation_id":"R","task_id":"C",'


async def test_who_comes_later_is_told_the_newest_after_the_events(stack: Stack, handling: Handling) -> None:
    async with talking(stack.ws) as talk, talking(stack.ws) as late:
        id_ = await talk.submit("test.slow", {"seconds": 600})
        await talk.until(lambda frame: frame.get("seq") == 1)
        handling(id_).report(1, message="first", lost=True)
        at = handling(id_).report(2, message="second", lost=True)
        await late.say("watch", correlation_id=id_, after_seq=0)
        assert (await late.next())["seq"] == 1
        told = await late.next()
        assert (told["op"], told["progress"]["done"], told["at"], told["state"]) == ("progress", 2, at, "ACTING")
        await late.say("cancel", correlation_id=id_)
        await late.result(id_)
        late.check(id_)
        assert sum(map(is_progress, late.frames)) == 1


async def test_a_hint_that_is_lost_is_made_up_for(stack: Stack, handling: Handling) -> None:
    """What is quiet is read again."""
    async with talking(stack.ws) as talk:
        id_ = await talk.submit("test.slow", {"seconds": 600})
        await talk.until(lambda frame: frame.get("seq") == 1)
        handling(id_).report(7, lost=True)
        assert (await talk.until(is_progress))["progress"]["done"] == 7
        await talk.say("cancel", correlation_id=id_)
        await talk.result(id_)
        talk.check(id_)


@pytest.mark.parametrize(
    "raw", ["", "{", "7", "[]", '{"done":"x"}', '{"done":-1}', '{"done":1e400}', '{"done":true,"total":3}', '{"x":1}']
)
async def test_what_nobody_can_read_is_left_out(stack: Stack, handling: Handling, raw: str) -> None:
    async with talking(stack.ws) as talk, talking(stack.ws) as late:
        id_ = await talk.submit("test.slow", {"seconds": 600})
        await talk.until(lambda frame: frame.get("seq") == 1)
        handler = handling(id_)
        handler.client.hset(handler.record, mapping={"progress": raw, "progress_at": "soon"})
        handler.hint(f"P{raw}")
        await late.say("watch", correlation_id=id_, ref="w")
        await late.until(lambda frame: frame.get("seq") == 1)
        for path in ("results", "missions"):
            assert (await document(stack, id_, path))["progress"] is None
        assert (await row(stack, id_))["progress"] is None
        handler.client.hdel(handler.record, "progress")
        await late.say("cancel", correlation_id=id_)
        for socket in (talk, late):
            await socket.result(id_)
            socket.check(id_)
            assert not any(map(is_progress, socket.frames))


async def test_operators_see_it_too(stack: Stack, handling: Handling) -> None:
    async with talking(stack.ws) as talk:
        id_ = await talk.submit("test.slow", {"seconds": 600})
        await talk.until(lambda frame: frame.get("seq") == 1)
        at = handling(id_).report(12_000, 100_000, "cleaning rows")
        mission = await document(stack, id_, "missions")
        assert mission["progress"] == {"done": 12_000, "total": 100_000, "message": "cleaning rows"}
        assert mission["progress_at"] == at
        assert "; 12,000 of 100,000 (12 %) done, cleaning rows, as it said " in mission["why"]
        assert (await row(stack, id_))["progress"] == mission["progress"]
        await talk.say("cancel", correlation_id=id_)
        await talk.result(id_)


def report(number: int) -> str:
    at = f"2026-11-29T00:00:{number // 1000:02d}.{number % 1000:03d}Z"
    value = f'{{"done":{number},"total":null,"message":"{"x" * 200}"}}'
    return f'P{{"status":"RUNNING","state":"ACTING","at":"{at}","progress":{value}}}'


async def test_whoever_does_not_read_is_not_cut_off_for_progress(stack: Stack, handling: Handling) -> None:
    """Far more than the network and the outbox hold; the reader gets the newest of it, and the result."""
    async with talking(stack.ws, max_queue=1) as talk:
        id_ = await talk.submit("test.slow", {"seconds": 600})
        await talk.until(lambda frame: frame.get("seq") == 1)
        handler, most = handling(id_), 40_000
        for start in range(0, most, 1000):
            handler.hint(*(report(number) for number in range(start + 1, start + 1001)))
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            await http.post(f"{stack.url}/v1/commands/{id_}/cancel", params={"wait": 10})
        await talk.result(id_, within=30)
        talk.check(id_)
        told = [frame["progress"]["done"] for frame in talk.frames if is_progress(frame)]
        assert told == sorted(set(told))
        assert (told[-1], len(told) < most) == (most, True)
        assert talk.frames[-1]["op"] == "result"


async def test_a_long_poll_is_not_ended_by_progress(stack: Stack, handling: Handling) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http, talking(stack.ws) as talk:
        id_ = await talk.submit("test.slow", {"seconds": 600})
        await talk.until(lambda frame: frame.get("seq") == 1)
        asked = http.build_request("GET", f"{stack.url}/v1/results/{id_}", params={"wait": 20})
        answer = asyncio.ensure_future(http.send(asked))
        handling(id_).report(1, 2)
        await talk.until(is_progress)
        assert not answer.done()
        await talk.say("cancel", correlation_id=id_)
        assert (await answer).json()["status"] == "CANCELLED"
