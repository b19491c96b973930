"""HTTP in: commands, results. The hot POST is a plain ASGI endpoint in front of the router."""

import contextlib
import math
from functools import partial
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from pydantic_core import from_json, to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from frontend_loop.door import Ack, Door
from frontend_loop.idempotency import agreed, from_header
from frontend_loop.results import Document, Results
from frontend_loop.utterance import Utterance
from shared.envelope import IDEMPOTENCY_KEY, Command
from shared.errors import Problem, RedisAwayError, unavailable
from shared.logs import get
from shared.settings import Settings
from shared.telemetry import incoming, serve_span

log = get(__name__)

COMMANDS: Final = "/v1/commands"
SPAN: Final = f"POST {COMMANDS}"
JSON: Final = (b"content-type", b"application/json")
KEY_HEADER: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "a repeat with the same key is answered like the first, with Idempotent-Replayed: true",
    "schema": {"type": "string", "pattern": IDEMPOTENCY_KEY},
}
PREFER_HEADER: Final = {
    "name": "Prefer",
    "in": "header",
    "description": "wait=N: 200 with the result if it is there within so many seconds, else 202 with the ack; "
    "as soon as it asks back, 202 with how it stands, and the question in progress.message",
    "schema": {"type": "string"},
}
POLL_AFTER_S: Final = "1"
"""Retry-After of a result that is not there yet."""


class Commands:
    """``POST /v1/commands`` as ASGI: the router and its middleware would cost more than the rest of it together."""

    def __init__(self, door: Door, results: Results, settings: Settings) -> None:
        """Ready at once."""
        self._door, self._results = door, results
        self._max_body, self._max_wait_s = settings.max_body, settings.max_wait_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 202 with the ack, 200 with the result where it was waited for, or a problem."""
        fault: Problem | None = None
        try:
            status, headers, body = await self._answer(scope, receive)
        except Problem as problem:
            fault = problem
        except RedisAwayError as error:
            fault = unavailable(f"nothing was taken: {error}")
        except Exception:
            log.exception("unexpected", path=COMMANDS)
            fault = Problem("internal", "an error of ours, logged; nothing was promised")
        if fault is not None:
            status, headers, body = fault.status, fault.headers(), fault.body(COMMANDS)
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        traceparent = key = None
        content_type, wait_s = b"", 0.0
        for name, value in scope["headers"]:
            if name == b"content-type":
                content_type = value
            elif name == b"traceparent":
                traceparent = value.decode("latin-1")
            elif name == b"idempotency-key":
                key = agreed(from_header(value), key)
            elif name == b"prefer":
                wait_s = wait_s or preferred(value.decode("latin-1"))
        if content_type.partition(b";")[0].strip().lower() != b"application/json":
            raise Problem("wrong_content_type", "send the command as JSON, with content-type: application/json")
        raw = await read_body(receive, self._max_body)
        with serve_span(incoming(traceparent), SPAN) as trace:
            ack = await self._door.accept(raw, "http", traceparent=trace.child_header(), key=key)
        return await self.told(ack, wait_s, receive)

    async def told(self, ack: Ack, wait_s: float, receive: Receive) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Status, headers and body for a command that was taken in; `wait_s` is how long its result is waited for."""
        task_id = ack.task_id.encode()
        headers = [JSON, (b"location", b"/v1/results/" + task_id), (b"x-correlation-id", task_id)]
        if ack.replayed:
            headers.append((b"idempotent-replayed", b"true"))
        if not wait_s:
            return 202, headers, ack.body
        headers.append((b"preference-applied", f"wait={wait_s:g}".encode()))
        document = await self._result(ack.task_id, wait_s, receive)
        if document is not None and document.final:
            return 200, headers, document.body
        if document is not None and document.asks:
            return 202, headers, to_json(from_json(ack.body) | from_json(document.body))
        return 202, headers, ack.body

    async def _result(self, task_id: str, wait_s: float, receive: Receive) -> Document | None:
        """The result, or a question, if one comes in time; whatever keeps it from being read, the command is taken."""
        with contextlib.suppress(Problem, RedisAwayError):
            wait_s = min(wait_s, self._max_wait_s)
            return await self._results.get(task_id, wait_s, partial(gone, receive), or_asked=True)
        return None


def preferred(header: str) -> float:
    """Seconds of ``Prefer: wait=N`` (RFC 7240); 0 where it says nothing that can be kept."""
    for preference in header.split(","):
        name, _, value = preference.partition(";")[0].partition("=")
        if name.strip().lower() == "wait":
            try:
                seconds = float(value.strip().strip('"'))
            except ValueError:
                return 0.0
            return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
    return 0.0


async def read_body(receive: Receive, limit: int) -> bytes:
    """The whole body.

    Raises:
        Problem: 413 beyond the limit; 400 if the client left in the middle.
    """
    pieces, size = list[bytes](), 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem("bad_json", "the client left before the end of the body")
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > limit:
            raise Problem("too_large", f"a body may have {limit} bytes: keep large data elsewhere and send a reference")
        if not message.get("more_body"):
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def gone(receive: Receive) -> None:
    """Return when the client of a request whose body was read has left; nothing else tells an endpoint that waits."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _described() -> dict[str, object]:
    """The body: a type and its payload, or text in their place."""
    schema = Command.model_json_schema()
    schema["properties"] |= Utterance.model_json_schema()["properties"]
    schema["anyOf"] = [{"required": schema.pop("required")}, {"required": ["text"]}]
    return {"content": {"application/json": {"schema": schema}}, "required": True}


def router(commands: Commands, results: Results, settings: Settings) -> APIRouter:
    """The routes of this issue's part of the contract, with their OpenAPI."""
    routes = APIRouter()
    extra = {"requestBody": _described(), "parameters": [KEY_HEADER, PREFER_HEADER]}

    @routes.post(COMMANDS, status_code=202, tags=["commands"], openapi_extra=extra)
    async def submit(request: Request) -> Response:
        """Accept a command and return at once, or with `Prefer: wait=N` with its result if that is there in time."""
        return _Asgi(commands, request)

    @routes.get("/v1/results/{correlation_id}", tags=["results"])
    async def result(
        request: Request,
        correlation_id: str,
        wait: Annotated[float, Query(ge=0, description="seconds to wait for the end")] = 0.0,
    ) -> Response:
        """The result: 200 once the mission has ended, 202 while not; `wait` long-polls.

        `progress` is how far its handler says it is, or had come: `done`, perhaps `total`, perhaps a `message`.
        """
        document = await results.get(correlation_id, min(wait, settings.max_wait_s), partial(gone, request.receive))
        response = Response(document.body, 200 if document.final else 202, media_type="application/json")
        response.headers["x-correlation-id"] = results.genuine(correlation_id).text
        if not document.final:
            response.headers["retry-after"] = POLL_AFTER_S
        return response

    return routes


class _Asgi(Response):
    """An ASGI endpoint as the response of a route, for a POST that came past the short-cut."""

    def __init__(self, endpoint: Commands, request: Request) -> None:
        super().__init__()
        self._endpoint, self._request = endpoint, request

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        await self._endpoint(scope, self._request.receive, send)
