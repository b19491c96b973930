"""What an operator sees: the missions, page by page, and everything about one of them."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic_core import to_json
from starlette.responses import Response

from frontend_loop.inspection import Inspection
from frontend_loop.listing import Filters, Listing
from frontend_loop.results import Results


def operator_router(listing: Listing, inspection: Inspection, results: Results) -> APIRouter:
    """The routes under ``/v1/missions``."""
    routes = APIRouter(prefix="/v1/missions", tags=["missions"])

    @routes.get("")
    async def missions(filters: Annotated[Filters, Query()]) -> Response:
        """Missions that fit all filters, a page at a time: go on with `cursor` until it is null."""
        return _answer(await listing.page(filters))

    @routes.get("/{task_id}")
    async def mission(task_id: str) -> Response:
        """Everything about a mission: envelope, context, history, lease, target; and `why`, one sentence."""
        return _answer(await inspection.look(results.genuine(task_id)))

    return routes


def _answer(document: object) -> Response:
    # not FastAPI's encoder: payloads hold integers of any size, contexts perhaps NaN
    return Response(to_json(document, inf_nan_mode="null"), media_type="application/json")
