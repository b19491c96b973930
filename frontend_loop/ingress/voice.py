"""HTTP in: what somebody says, as a recording. Its bytes are moved, and no more: who hears them decodes them."""

import asyncio
import hashlib
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from starlette.responses import Response
from starlette.types import Receive

from frontend_loop.door import Ack, Door
from frontend_loop.idempotency import agreed, from_header
from frontend_loop.ingress.http import KEY_HEADER, PREFER_HEADER, Commands, preferred, read_body
from frontend_loop.multipart import OVERHEAD
from frontend_loop.origins import may_open
from frontend_loop.recording import Recording, recording_of
from frontend_loop.room import Room
from shared.envelope import Text
from shared.errors import Problem
from shared.sessions import TYPE
from shared.settings import Settings
from shared.status import Priority
from shared.telemetry import incoming, serve_span

PATH: Final = "/v1/voice"
SPAN: Final = f"POST {PATH}"
DEADLINE_S: Final = 30.0
"""Who has spoken waits no longer for an answer."""

KINDS: Final = ("audio/wav", "audio/flac", "audio/ogg", "audio/L16", "application/octet-stream")
_BINARY: Final = {"type": "string", "format": "binary"}
_FORM: Final = {"type": "object", "required": ["file"], "properties": {"file": _BINARY}}
EXTRA: Final[dict[str, Any]] = {
    "requestBody": {
        "content": {kind: {"schema": _BINARY} for kind in KINDS} | {"multipart/form-data": {"schema": _FORM}},
        "required": True,
    },
    "parameters": [KEY_HEADER, PREFER_HEADER],
}


def voice_router(door: Door, commands: Commands, settings: Settings) -> APIRouter:
    """The route ``POST /v1/voice``."""
    routes, room = APIRouter(tags=["commands"]), Room(settings.voice_sessions * (settings.max_audio + OVERHEAD))

    @routes.post(PATH, status_code=202, openapi_extra=EXTRA)
    async def say(  # noqa: PLR0913, PLR0917  what may be said of a command
        request: Request,
        locale: Annotated[str | None, Query(description="language of the speaker, BCP 47")] = None,
        area: Annotated[Text | None, Query(description="where the speaker is")] = None,
        session: Annotated[Text | None, Query(description="ties a speaker's commands together")] = None,
        rate: Annotated[int | None, Query(description="samples a second of raw PCM")] = None,
        priority: Annotated[Priority | None, Query(description="default: urgent")] = None,
        deadline_s: Annotated[float, Query(description="seconds", gt=0)] = DEADLINE_S,
        conflict: Annotated[str | None, Query(description="respect_newer, or force")] = None,
    ) -> Response:
        """Accept a recording of a command: WAV, FLAC, OGG, or raw PCM (16 bit, little endian, mono) with its rate.

        It is answered like a command; its result says what was heard, and the answer to it as a sentence.
        """
        said = {"area": area, "session": session, "priority": priority, "conflict": conflict}
        command: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        command |= {"type": TYPE, "payload": {} if locale is None else {"locale": locale}, "deadline_s": deadline_s}
        with room.of(request.receive) as receive:
            ack = await _take(door, command, request, await _read(request, receive, rate, settings))
        wait_s = preferred(",".join(request.headers.getlist("prefer")))
        status, headers, body = await commands.told(ack, wait_s, request.receive)
        response = Response(body, status)
        response.raw_headers.extend(headers)
        return response

    return routes


async def _take(door: Door, command: dict[str, Any], request: Request, recording: Recording) -> Ack:
    head = request.headers
    command["payload"]["audio"] = recording.told() | {"sha256": await _digest(recording.data)}
    key: str | None = None
    for value in head.getlist("idempotency-key"):
        key = agreed(from_header(value.encode("latin-1")), key)
    with serve_span(incoming(head.get("traceparent")), SPAN) as trace:
        return await door.take(command, "voice", traceparent=trace.child_header(), key=key, recording=recording.data)


async def _read(request: Request, receive: Receive, rate: int | None, settings: Settings) -> Recording:
    if not may_open(request.scope["headers"], settings.allowed_origins):
        # a browser lets any page send this without asking whether it may, and nobody would see it speak
        raise Problem("forbidden_origin", "pages of this origin are not among DUALLOOP_ALLOWED_ORIGINS")
    body = await read_body(receive, settings.max_audio + OVERHEAD)
    return recording_of(body, request.headers.get("content-type", ""), rate, settings.max_audio)


async def _digest(data: bytes) -> str:
    """So that a key stands for one recording; not in the event loop, since it may be megabytes."""
    return (await asyncio.to_thread(hashlib.sha256, data)).hexdigest()
