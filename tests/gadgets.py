"""Gadgets outside, and a client of a front whose workers flash them."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.processes.commands import Front
from tests.services import OutsideServices
from tests.stories.stack import running

ENDED = {"SUCCEEDED", "FAILED", "CANCELLED"}


class Gadgets:
    """What a test says to a rollout and to what it flashes."""

    def __init__(self, front: Front, outside: OutsideServices, folder: Path) -> None:
        self.front, self.outside, self.folder = front, outside, folder

    async def roll_out(self, version: str, gadgets: Any, **payload: Any) -> str:
        return await self.front.send("firmware.rollout", payload={"version": version, "gadgets": gadgets, **payload})

    async def ends(self, type_: str, *, command: dict[str, Any] | None = None, **payload: Any) -> dict[str, Any]:
        """Its end, with books that balance."""
        return await self.end(await self.front.send(type_, payload=payload, **command or {}))

    async def end(self, root: str) -> dict[str, Any]:
        """As `ends`."""
        document = await self.front.end(root)
        books = self.outside.books()
        assert books["balanced"], books["faults"]
        return document

    def look(self, gadget: str) -> dict[str, Any]:
        return dict(self.outside.http.get(f"/gadgets/{gadget}").json())

    def versions(self, gadgets: list[str]) -> dict[str, str]:
        """What each shows now, and that none is being flashed."""
        seen = {gadget: self.look(gadget) for gadget in gadgets}
        assert [gadget for gadget, one in seen.items() if one["flashing"] is not None] == []
        return {gadget: one["version"] for gadget, one in seen.items()}

    def hand(self, gadget: str, **hand: Any) -> None:
        """What a person does to it."""
        self.outside.bench(f"/devices/{gadget}", **hand)

    def flashes(self, gadget: str) -> list[dict[str, Any]]:
        """Its page in the books."""
        return list(self.outside.page(gadget)["journal"])

    def report(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """The lines of a rollout's report."""
        path = self.folder / "files" / document["task_id"] / "report.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    async def family(self, root: str) -> list[dict[str, Any]]:
        """All missions of a rollout, itself included, page by page."""
        rows: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            params = {"correlation_id": root, "limit": "200"} | ({"cursor": cursor} if cursor else {})
            page = (await self.front.client.get("/v1/missions", params=params)).json()
            rows += page["missions"]
            cursor = page["cursor"]
        return rows

    async def updates(self, root: str) -> list[str]:
        """The status of each update that has begun."""
        return [one["status"] for one in await self.family(root) if one["type"] == "firmware.update"]

    async def over(self, root: str) -> bool:
        """Whether none of its updates lives any more."""
        return ENDED.issuperset(await self.updates(root))

    async def done(self, root: str, count: int) -> bool:
        """Whether so many of its updates have succeeded."""
        return (await self.updates(root)).count("SUCCEEDED") >= count


@asynccontextmanager
async def gadgets_of(redis_url: str, folder: Path) -> AsyncIterator[Gadgets]:
    """One foreground, one worker, and the services outside."""
    async with running(redis_url, folder, workers=0) as stack:
        with OutsideServices(folder, stack.url) as outside:
            await stack.start([stack.worker(DUALLOOP_OUTSIDE_URL=outside.url)])
            front = Front(stack.foregrounds[0])
            yield Gadgets(front, outside, folder)
            await front.client.aclose()
