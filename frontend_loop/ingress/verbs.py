"""HTTP in: what a client says to a command of its own that is under way: cancel, pause, resume, outside events."""

from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request
from pydantic_core import to_json
from starlette.responses import Response

from frontend_loop.bodies import Bodies, Happening, Said, described
from frontend_loop.control import Control, Taken
from frontend_loop.idempotency import from_header
from frontend_loop.ingress.http import COMMANDS, gone, preferred
from frontend_loop.operating import Operating, by
from frontend_loop.results import Document, Results
from shared.settings import Settings

SAID: Final = described(Said)


def answer(taken: Taken, **more: Any) -> Response:
    """202: it is taken, and where the mission is now."""
    body = to_json(taken.document() | more)
    return Response(body, 202, {"x-correlation-id": taken.correlation_id}, media_type="application/json")


def _result(document: Document, taken: Taken) -> Response:
    """200: the mission has ended."""
    return Response(document.body, 200, {"x-correlation-id": taken.correlation_id}, media_type="application/json")


def verbs_router(
    results: Results, control: Control, operating: Operating, bodies: Bodies, settings: Settings
) -> APIRouter:
    """The routes under ``/v1/commands/{correlation_id}``."""
    routes = APIRouter(prefix=COMMANDS + "/{correlation_id}", tags=["commands"])

    @routes.post("/cancel", status_code=202, openapi_extra=SAID)
    async def cancel(
        request: Request,
        correlation_id: str,
        wait: Annotated[float | None, Query(ge=0, description="seconds to wait for the end")] = None,
        prefer: Annotated[str, Header()] = "",
    ) -> Response:
        """Cancel; `stopped`: no handler runs any more. With `wait`: 200 with the result once that is so, 202 if not."""
        mission = results.genuine(correlation_id)
        asked = wait if wait is not None else preferred(prefer)
        taken = await control.cancel(mission, by(await bodies.read(request, Said)))
        if not asked:
            return answer(taken)
        document = await results.get(mission.text, min(asked, settings.max_wait_s), partial(gone, request.receive))
        response = _result(document, taken) if document.final else answer(await operating.look(mission))
        if wait is None:
            response.headers["preference-applied"] = f"wait={asked:g}"
        return response

    @routes.post("/pause", status_code=202, openapi_extra=SAID)
    async def pause(request: Request, correlation_id: str) -> Response:
        """Pause: at once if no handler runs, else at its next commit; a handler that runs is not cut."""
        mission = results.genuine(correlation_id)
        return answer(await control.pause(mission, by(await bodies.read(request, Said))))

    @routes.post("/resume", status_code=202, openapi_extra=SAID)
    async def resume(request: Request, correlation_id: str) -> Response:
        """Let a paused mission go on; nothing happens to one that is not paused."""
        mission = results.genuine(correlation_id)
        return answer(await control.resume(mission, by(await bodies.read(request, Said))))

    @routes.post("/events", status_code=202, openapi_extra=described(Happening, required=True))
    async def events(
        request: Request, correlation_id: str, idempotency_key: Annotated[str | None, Header()] = None
    ) -> Response:
        """Tell an outside event: remembered if it is early; of those with the same id only the first counts."""
        mission = results.genuine(correlation_id)
        key = from_header(idempotency_key.encode("latin-1")) if idempotency_key is not None else None
        taken = await operating.happen(mission, await bodies.read(request, Happening), key)
        return answer(taken, duplicate=taken.duplicate)

    return routes
