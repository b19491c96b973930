"""What an operator sees and does: missions and dead letters, page by page, everything about one, and the verbs."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic_core import to_json
from starlette.responses import Response

from frontend_loop.bodies import (
    Bodies,
    Completed,
    Note,
    Page,
    Replayed,
    ReplayedAll,
    Reprioritized,
    Skipped,
    described,
)
from frontend_loop.control import By
from frontend_loop.dead_letters import DeadLetters
from frontend_loop.ingress.verbs import answer
from frontend_loop.inspection import Inspection
from frontend_loop.listing import Filters, Listing
from frontend_loop.operating import Operating
from frontend_loop.replay import Replays
from frontend_loop.results import Results
from shared.envelope import Text
from shared.errors import Problem


def operator_router(
    listing: Listing, inspection: Inspection, operating: Operating, results: Results, bodies: Bodies
) -> APIRouter:
    """The routes under ``/v1/missions``."""
    routes = APIRouter(prefix="/v1/missions", tags=["missions"])

    @routes.get("")
    async def missions(filters: Annotated[Filters, Query()]) -> Response:
        """Missions that fit all filters, a page at a time: go on with `cursor` until it is null."""
        return _document(await listing.page(filters))

    @routes.get("/{task_id}")
    async def mission(task_id: str) -> Response:
        """Everything about a mission: envelope, context, history, lease, target; and `why`, one sentence."""
        return _document(await inspection.look(results.genuine(task_id)))

    @routes.post("/{task_id}/priority", status_code=202, openapi_extra=described(Reprioritized, required=True))
    async def priority(request: Request, task_id: str) -> Response:
        """Give a mission another priority, wherever it stands; what it inherits from those behind it stays with it."""
        mission, wanted = results.genuine(task_id), await bodies.read(request, Reprioritized)
        return answer(await operating.prioritize(mission, wanted), priority=wanted.priority)

    @routes.post("/{task_id}/skip", status_code=202, openapi_extra=described(Skipped))
    async def skip(request: Request, task_id: str) -> Response:
        """Skip the optional state that a mission is in."""
        return answer(await operating.skip(results.genuine(task_id), await bodies.read(request, Skipped)))

    @routes.post("/{task_id}/complete", status_code=202, openapi_extra=described(Completed))
    async def complete(request: Request, task_id: str) -> Response:
        """End a mission SUCCEEDED with this result: it was done by hand. One that is paused ends when it is resumed."""
        return answer(await operating.complete(results.genuine(task_id), await bodies.read(request, Completed)))

    return routes


def dead_letter_router(
    letters: DeadLetters, inspection: Inspection, replays: Replays, results: Results, bodies: Bodies
) -> APIRouter:
    """The routes under ``/v1/dead-letters``."""
    routes = APIRouter(prefix="/v1/dead-letters", tags=["dead letters"])

    @routes.get("")
    async def dead_letters(page: Annotated[Page, Query()]) -> Response:
        """Missions that failed for good, the newest first, a page at a time: go on with `cursor` until it is null."""
        found = await letters.page(page, page.cursor, page.limit)
        return _document({"dead_letters": found.rows, "cursor": found.cursor})

    @routes.post("/replay", status_code=202, openapi_extra=described(ReplayedAll, required=True))
    async def replay_all(request: Request) -> Response:
        """Run those that fit again, a page at a time: go on with `cursor` until it is null."""
        return _document(await replays.replay_all(await bodies.read(request, ReplayedAll)), 202)

    @routes.get("/{task_id}")
    async def dead_letter(task_id: str) -> Response:
        """Everything about a dead letter, as of any mission; `dead_letter` says what replaying it needs."""
        document = await inspection.look(results.genuine(task_id))
        if document["dead_letter"] is None:
            detail = f"it is no dead letter but {document['status']}: see /v1/missions/{document['task_id']}"
            raise Problem("not_found", detail, correlation_id=document["correlation_id"])
        return _document(document)

    @routes.post("/{task_id}/replay", status_code=202, openapi_extra=described(Replayed))
    async def replay(request: Request, task_id: str) -> Response:
        """Run it again as a new run of the same mission, from the state it failed in or from the start."""
        mission = results.genuine(task_id)
        return _document(await replays.replay(mission, await bodies.read(request, Replayed)), 202)

    @routes.delete("/{task_id}")
    async def discard(task_id: str, by: Text | None = None, note: Note | None = None) -> Response:
        """Give it up: it is removed with all that is known of it."""
        return _document(await replays.discard(results.genuine(task_id), By(by, note)))

    return routes


def _document(document: object, status: int = 200) -> Response:
    # not FastAPI's encoder: payloads hold integers of any size, contexts perhaps NaN
    return Response(to_json(document, inf_nan_mode="null"), status, media_type="application/json")
