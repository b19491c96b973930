"""HTTP out: the files that missions have made, to be downloaded by whoever knows the mission's id."""

import asyncio
import os
import re
from pathlib import PurePath
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from frontend_loop import problems
from frontend_loop.results import Results
from frontend_loop.shelf import Shelf
from shared import keys
from shared.errors import Problem
from shared.files import ROUTE
from shared.ids import MissionId
from shared.redis import Link
from shared.settings import Settings

KINDS: Final = {
    ".csv": "text/csv; charset=utf-8",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".txt": "text/plain; charset=utf-8",
}
"""What a browser is told; anything else is bytes, so that none is ever taken for a page of ours."""
OTHER: Final = "application/octet-stream"
RANGE: Final = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")


def files_router(results: Results, link: Link, settings: Settings) -> APIRouter:
    """The routes under ``/v1/files``."""
    routes, shelf = APIRouter(prefix=ROUTE, tags=["files"]), Shelf(settings.files_path)

    async def kept(mission: MissionId) -> None:
        if not await link.call("EXISTS", keys.mission(mission.shard, mission.text)):
            raise Problem("expired", "this mission and its files are no longer kept", correlation_id=mission.text)

    @routes.get("/{task_id}")
    async def listing(task_id: str) -> dict[str, Any]:
        """What a mission has published so far: ``{"files": [{"name", "bytes", "modified_at", "link"}]}``."""
        mission = results.genuine(task_id)
        found = await asyncio.to_thread(shelf.list, mission.text)
        if found is None:
            await kept(mission)
        return {"files": found or []}

    @routes.head("/{task_id}/{name}", include_in_schema=False)
    @routes.get("/{task_id}/{name}", response_class=FileResponse)
    async def download(request: Request, task_id: str, name: str) -> Response:
        """A file: `Range` and `If-None-Match` are heeded; 404: it is not there, or not yet; 410: no longer."""
        mission = results.genuine(task_id)
        descriptor = await asyncio.to_thread(shelf.open, mission.text, name)
        if descriptor is None:
            await kept(mission)
            detail = "the mission has no file of this name, or has not finished it yet"
            raise Problem("no_file", detail, correlation_id=mission.text)
        sent = _Sent(descriptor, name)
        etag = sent.headers["etag"]
        if {etag, "*"} & _tags(request.headers.get("if-none-match", "")):
            return sent.instead(Response(None, 304, {"etag": etag}))
        if _beyond(request.headers.get("range"), sent.size) and sent.is_still(request.headers.get("if-range")):
            problem = problems.answer(Problem("bad_range", f"the file has {sent.size} bytes"), request.url.path)
            problem.headers["content-range"] = f"bytes */{sent.size}"
            return sent.instead(problem)
        return sent

    return routes


class _Sent(FileResponse):
    """An open file as an answer; the one that was looked at, whatever its name stands for by now."""

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor, found = descriptor, os.fstat(descriptor)
        self.size = found.st_size
        super().__init__(
            f"/dev/fd/{descriptor}",
            filename=name,
            media_type=KINDS.get(PurePath(name).suffix, OTHER),
            stat_result=found,
            headers={"x-content-type-options": "nosniff", "cache-control": "private, no-cache"},
        )

    def is_still(self, condition: str | None) -> bool:
        """Whether it is the file that a part is asked of; else it is sent whole, under ``If-Range``."""
        return condition is None or self._should_use_range(condition)

    def instead(self, other: Response) -> Response:
        """Another answer; the file is closed."""
        os.close(self._descriptor)
        return other

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ranges = [value for name, value in scope["headers"] if name == b"range"]
        if ranges and (len(ranges) > 1 or _read(ranges[0].decode("latin-1")) is None):
            # several ranges, or none that is understood: the whole file, as RFC 9110 allows
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"range"]}
        try:
            await super().__call__(scope, receive, send)
        finally:
            os.close(self._descriptor)


def _read(header: str) -> tuple[int | None, int | None] | None:
    """First and last byte; a first one of None: the last so many; None: this is no single range."""
    found = RANGE.fullmatch(header.strip())
    if found is None:
        return None
    if found[3] is not None:
        return None, int(found[3])
    first, last = int(found[1]), int(found[2]) if found[2] else None
    return None if last is not None and last < first else (first, last)


def _beyond(header: str | None, size: int) -> bool:
    """Whether a range is asked for of which there is no byte."""
    found = None if header is None else _read(header)
    if found is None:
        return False
    first, last = found
    return last == 0 or size == 0 if first is None else first >= size


def _tags(header: str) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in header.split(",")}
