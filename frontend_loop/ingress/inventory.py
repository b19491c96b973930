"""HTTP in: the home's inventory."""

from typing import Annotated, Final

from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from frontend_loop.bodies import described
from frontend_loop.ingress.http import read_body
from frontend_loop.inventory import Inventories, Told, unchanged
from shared.errors import Problem
from shared.home import MAX_BYTES, Inventory

PATH: Final = "/v1/home"


def inventory_router(inventories: Inventories) -> APIRouter:
    """The routes of ``/v1/home``."""
    routes = APIRouter(tags=["home"])

    @routes.get(PATH)
    async def look(if_none_match: Annotated[str | None, Header()] = None) -> Response:
        """What is where, what it is called, and the scenes; `trouble` says why an edited file was not taken in."""
        found = await inventories.look()
        if unchanged(if_none_match, found.etag):
            return Response(None, 304, {"etag": found.etag})
        return _answer(found)

    @routes.put(PATH, openapi_extra=described(Inventory, required=True))
    async def replace(request: Request, if_match: Annotated[str | None, Header()] = None) -> Response:
        """Another inventory takes its place, in the file as well; with If-Match only if that one is still there."""
        raw = await read_body(request.receive, MAX_BYTES)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # a page of another origin may send anything else without asking whether it may
            raise Problem("wrong_content_type", "send the body as JSON, with content-type: application/json")
        return _answer(await inventories.replace(raw, if_match))

    return routes


def _answer(found: Told) -> Response:
    head = {"etag": found.etag, "cache-control": "no-cache"}
    return Response(found.body, 200, head, media_type="application/json")
