"""A client of one foreground, for tests that kill things: plain HTTP, no retries of its own."""

import json
from collections.abc import Callable
from typing import Any, cast

import httpx
import redis

from shared import keys
from tests.stories.stack import Part, Stack
from tests.waiting import eventually


class Front:
    """What a test asks of a foreground."""

    def __init__(self, part: Part) -> None:
        self.client = httpx.AsyncClient(base_url=part.url, trust_env=False, timeout=40)

    async def send(self, type_: str, **command: Any) -> str:
        """Submit; the correlation_id."""
        answer = await self.client.post("/v1/commands", json={"type": type_, **command})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["correlation_id"])

    async def send_many(self, many: int, type_: str, **command: Any) -> list[str]:
        """So many that are alike, in one request; their correlation_ids in order."""
        answer = await self.client.post("/v1/commands:batch", json=[{"type": type_, **command}] * many)
        assert answer.status_code == 207, answer.text
        ids = [str(told["correlation_id"]) for told in answer.json()]
        assert len(ids) == many
        return ids

    async def result(self, correlation_id: str, wait: float | None = None) -> dict[str, Any]:
        """The final document; or the one as of now, or of after so many seconds at most.

        It is asked for again while the front says 503.
        """
        if wait is None:
            return await self.end(correlation_id)

        async def asked() -> httpx.Response | None:
            answer = await self.client.get(f"/v1/results/{correlation_id}", params={"wait": wait})
            assert answer.status_code in {200, 202, 503}, answer.text
            return None if answer.status_code == 503 else answer

        answer = await eventually(asked, 100, what=f"the front tells of {correlation_id}")
        assert answer is not None
        return dict(answer.json())

    async def end(self, correlation_id: str, within: float = 100) -> dict[str, Any]:
        """The final document, asked for again as long as the front says 503."""

        async def asked() -> httpx.Response | None:
            answer = await self.client.get(f"/v1/results/{correlation_id}", params={"wait": 5})
            assert answer.status_code in {200, 202, 503}, answer.text
            return answer if answer.status_code == 200 else None

        answer = await eventually(asked, within, what=f"{correlation_id} ends")
        assert answer is not None
        return dict(answer.json())

    async def overdue(self, begun: Callable[[str], object], type_: str, **command: Any) -> dict[str, Any]:
        """The final document of one whose deadline came once it was seen to have begun.

        The machine may be slow: where the deadline came first, another one is sent with more time.
        """
        for deadline_s in (1.5, 6, 24):
            one = await self.send(type_, deadline_s=deadline_s, **command)
            document = await self.end(one)
            if begun(one):
                return document
        raise AssertionError(f"no {type_} began before its deadline")

    async def cancel(self, correlation_id: str) -> httpx.Response:
        """Ask for an end."""
        return await self.client.post(f"/v1/commands/{correlation_id}/cancel")

    async def state(self, correlation_id: str) -> tuple[str, str]:
        """Status and state as of now."""
        document = await self.result(correlation_id, wait=0)
        return document["status"], document["state"]


def bring_near(redis_url: str, task_id: str, seconds: float) -> None:
    """Let the wake time of what waits come in so many seconds: in the timers, the record and the document."""
    name = keys.mission(0, task_id)
    with redis.Redis.from_url(redis_url) as client:
        now: Any = client.time()
        wake_at = now[0] * 1000 + round(seconds * 1000)
        document: Any = client.hget(name, "document")
        changed = json.dumps(json.loads(document) | {"wake_at": wake_at})
        client.hset(name, mapping={"document": changed, "wake_at": wake_at})
        client.zadd(keys.prefix(0) + "timers", {task_id: wake_at}, xx=True)


def let_deadline_come(redis_url: str, task_id: str) -> None:
    """Now, wherever the mission is."""
    with redis.Redis.from_url(redis_url) as client:
        client.hset(keys.mission(0, task_id), "deadline", 1)
        client.zadd(keys.prefix(0) + "deadlines", {task_id: 1}, xx=True)


async def acting(front: Front, correlation_id: str) -> bool:
    """Whether a test.slow is in the middle of its act."""
    return await front.state(correlation_id) == ("RUNNING", "ACTING")


def events(stack: Stack, task_id: str) -> list[bytes]:
    """The mission's log."""
    with redis.Redis.from_url(stack.redis_url) as client:
        return cast("list[bytes]", client.lrange(keys.log(0, task_id), 0, -1))


def tally(stack: Stack) -> list[list[str]]:
    """What handlers did, in order: word, task, state, attempt, fence."""
    file = stack.folder / "tally"
    return [line.split() for line in file.read_text().splitlines()] if file.exists() else []
