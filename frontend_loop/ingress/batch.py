"""HTTP in: many commands in one request, each taken or refused by itself."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from fastapi import APIRouter, Request
from pydantic_core import to_json
from starlette.responses import Response

from frontend_loop.door import Ack, Door
from frontend_loop.ingress.http import COMMANDS, read_body
from frontend_loop.reading import invalid, read_json
from shared.errors import Problem, RedisAwayError, unavailable
from shared.logs import get
from shared.settings import Settings
from shared.telemetry import incoming, serve_span

log = get(__name__)

Item = TypeVar("Item")

PATH: Final = f"{COMMANDS}:batch"
MOST: Final = 1_000
"""Commands of a batch."""

ROOM: Final = 16
"""A batch may be as long as so many of the longest commands."""

AT_ONCE: Final = 200
"""Commands of one batch that are under way to Redis together; the door sends them in flushes of its own."""

LINES: Final = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl"})


class Batches:
    """Takes batches in."""

    def __init__(self, door: Door, settings: Settings) -> None:
        """Ready at once."""
        self._door, self._settings = door, settings

    async def take(self, raw: bytes, content_type: str, traceparent: str | None) -> bytes:
        """A JSON array with an ack or a problem for each command, in their order.

        Raises:
            Problem: it is no batch; nothing was taken.
        """
        items = self._lines(raw) if content_type in LINES else self._array(raw)
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(item: Callable[[], Any], n: int) -> bytes:
            async with gate:
                return await self._one(item, f"{PATH}#/{n}", traceparent)

        told = await asyncio.gather(*(one(item, n) for n, item in enumerate(items)))
        return b"[" + b",".join(told) + b"]"

    def _array(self, raw: bytes) -> list[Callable[[], Any]]:
        value = read_json(raw, self._settings.max_depth + 1)
        if not isinstance(value, list):
            raise invalid([{"pointer": "", "detail": "a batch is a JSON array of commands, or one command a line"}])
        return [partial(_same, item) for item in _few(value)]

    def _lines(self, raw: bytes) -> list[Callable[[], Any]]:
        lines = _few([line for line in raw.split(b"\n") if line.strip()])
        return [partial(read_json, line, self._settings.max_depth) for line in lines]

    async def _one(self, read: Callable[[], Any], instance: str, traceparent: str | None) -> bytes:
        try:
            ack: Ack = await self._door.take(self._short(read()), "http", traceparent=traceparent)
        except Problem as problem:
            return problem.body(instance)
        except RedisAwayError as error:
            return unavailable(f"nothing was taken: {error}").body(instance)
        except Exception:
            log.exception("unexpected", path=PATH)
            return Problem("internal", "an error of ours, logged; nothing was promised").body(instance)
        return ack.body

    def _short(self, value: Any) -> Any:
        """Each is as long as a command may be by itself."""
        if len(to_json(value)) > self._settings.max_body:
            limit = self._settings.max_body
            raise Problem("too_large", f"a command may have {limit} bytes: keep large data elsewhere, send a reference")
        return value


def _few(items: list[Item]) -> list[Item]:
    """Before anything is made of each: in a batch of the longest length there may be millions."""
    if len(items) > MOST:
        raise Problem("too_large", f"a batch has {MOST} commands at most, and this one {len(items)}: send several")
    return items


def _same(value: Any) -> Any:
    return value


def batch_router(door: Door, settings: Settings) -> APIRouter:
    """The route."""
    routes, batches = APIRouter(), Batches(door, settings)
    command = {"type": "object", "description": "as of POST /v1/commands; idempotency_key stands in each"}
    described = {
        "application/json": {"schema": {"type": "array", "maxItems": MOST, "items": command}},
        "application/x-ndjson": {"schema": command},
    }

    @routes.post(
        PATH,
        status_code=207,
        tags=["commands"],
        openapi_extra={"requestBody": {"content": described, "required": True}},
    )
    async def submit(request: Request) -> Response:
        """Accept up to a thousand commands, as an array or one a line; an ack or a problem for each, in their order."""
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type not in {"application/json", *LINES}:
            raise Problem("wrong_content_type", "send application/json with an array, or application/x-ndjson")
        if "idempotency-key" in request.headers:
            detail = "one key stands for one command: put an idempotency_key into each"
            raise invalid([{"pointer": "/idempotency_key", "detail": detail}])
        raw = await read_body(request.receive, ROOM * settings.max_body)
        with serve_span(incoming(request.headers.get("traceparent")), f"POST {PATH}") as trace:
            told = await batches.take(raw, content_type, trace.child_header())
        return Response(told, 207, media_type="application/json")

    return routes
