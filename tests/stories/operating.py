"""A client that knows no more than HTTP, for stories of what is done to missions under way."""

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx

from tests.stories.stack import MISSIONS, Stack, running
from tests.waiting import eventually

Document = dict[str, Any]


class Hand:
    """Asks, and fails the test if the answer is not the expected one."""

    def __init__(self, http: httpx.AsyncClient, stack: Stack) -> None:
        self.http, self.stack = http, stack

    async def submit(self, type_: str, payload: Document | None = None, **more: Any) -> str:
        answer = await self.post("/v1/commands", {"type": type_, "payload": payload or {}, **more})
        return str(answer["task_id"])

    async def post(self, path: str, body: Any = None, status: int = 202, **options: Any) -> Document:
        answer = await self.http.post(path, json=body, **options)
        return told(answer, status)

    async def get(self, path: str, status: int = 200, **query: Any) -> Document:
        return told(await self.http.get(path, params=query), status)

    async def delete(self, path: str, status: int = 200, **query: Any) -> Document:
        return told(await self.http.delete(path, params=query), status)

    async def mission(self, task_id: str) -> Document:
        return await self.get(f"/v1/missions/{task_id}")

    async def until(self, task_id: str, fits: Callable[[Document], bool], what: str, within: float = 60.0) -> Document:
        """The mission, as soon as it fits."""

        async def look() -> Document | None:
            document = await self.mission(task_id)
            return document if fits(document) else None

        found: Document | None = await eventually(look, within, what)
        assert found is not None
        return found

    async def in_state(self, task_id: str, state: str, place: str) -> Document:
        return await self.until(task_id, lambda m: (m["state"], m["place"]) == (state, place), f"{place} in {state}")

    async def ended(self, task_id: str) -> Document:
        """Its result document."""

        async def asked() -> Document | None:
            answer = await self.http.get(f"/v1/results/{task_id}", params={"wait": 20})
            return None if answer.status_code == 202 else told(answer, 200)

        found: Document | None = await eventually(asked, 60, f"{task_id} ends")
        assert found is not None
        return found


def told(answer: httpx.Response, status: int) -> Document:
    """The answer's document."""
    assert answer.status_code == status, (str(answer.request.url), answer.status_code, answer.text)
    document: Document = answer.json()
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert document["detail"]
    return document


def events(mission: Document, *names: str) -> list[Document]:
    """Data of those events of its history, in order."""
    return [event["data"] for event in mission["history"] if (event["data"] or {}).get("event") in names]


@contextlib.asynccontextmanager
async def operated(redis_url: str, folder: Path, **options: Any) -> AsyncIterator[Hand]:
    """A stack whose workers know parcels too."""
    options = {"DUALLOOP_MISSIONS": f"{MISSIONS},tests.missions.parcel"} | options
    async with (
        running(redis_url, folder, **options) as stack,
        httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as http,
    ):
        yield Hand(http, stack)
