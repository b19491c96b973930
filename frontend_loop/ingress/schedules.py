"""HTTP in: schedules."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from frontend_loop.bodies import Bodies, Note, Said, described
from frontend_loop.control import By
from frontend_loop.idempotency import from_header
from frontend_loop.operating import by
from frontend_loop.schedules import Change, NewSchedule, SchedulePage, Schedules, document
from shared.envelope import Text

PATH: Final = "/v1/schedules"


def schedules_router(schedules: Schedules, bodies: Bodies) -> APIRouter:
    """The routes under ``/v1/schedules``."""
    routes = APIRouter(prefix=PATH, tags=["schedules"])

    @routes.get("")
    async def page(page: Annotated[SchedulePage, Query()]) -> Response:
        """Schedules by name, a page at a time: go on with `cursor` until it is null."""
        return _answer(await schedules.page(page))

    @routes.post("", status_code=201, openapi_extra=described(NewSchedule, required=True))
    async def add(request: Request) -> Response:
        """Take a schedule in, checked like a command; 200 where there is the very same one already."""
        told, new = await schedules.add(await bodies.read(request, NewSchedule))
        return _answer(told, 201 if new else 200, {"location": f"{PATH}/{told['name']}"})

    @routes.get("/{name}")
    async def look(name: str) -> Response:
        """Everything about a schedule: its next instants, what it has sent last, what keeps it from being fired."""
        return _answer(await schedules.look(name))

    @routes.patch("/{name}", openapi_extra=described(Change, required=True))
    async def change(request: Request, name: str) -> Response:
        """Change what is given; if when it runs is changed, it goes on from now."""
        return _answer(await schedules.change(name, await bodies.read(request, Change)))

    @routes.delete("/{name}")
    async def remove(name: str, by: Text | None = None, note: Note | None = None) -> Response:
        """Remove it; missions that it has sent stay."""
        return _answer(await schedules.remove(name, By(by, note)))

    _verbs(routes, schedules, bodies)
    return routes


def _verbs(routes: APIRouter, schedules: Schedules, bodies: Bodies) -> None:
    @routes.post("/{name}/pause", openapi_extra=described(Said))
    async def pause(request: Request, name: str) -> Response:
        """Fire no more, until it is resumed."""
        return _answer(await schedules.pause(name, by(await bodies.read(request, Said))))

    @routes.post("/{name}/resume", openapi_extra=described(Said))
    async def resume(request: Request, name: str) -> Response:
        """Fire again, from now on: what came while it was paused is not made up for."""
        return _answer(await schedules.resume(name, by(await bodies.read(request, Said))))

    @routes.post("/{name}/run", status_code=202, openapi_extra=described(Said))
    async def run(
        request: Request,
        name: str,
        idempotency_key: Annotated[str | None, Header()] = None,
        traceparent: Annotated[str | None, Header()] = None,
    ) -> Response:
        """Send its command now, paused or not; answers as POST /v1/commands does."""
        key = from_header(idempotency_key.encode("latin-1")) if idempotency_key is not None else None
        ack = await schedules.run(name, by(await bodies.read(request, Said)), traceparent, key)
        head = {"location": f"/v1/results/{ack.task_id}", "x-correlation-id": ack.task_id}
        if ack.replayed:
            head["idempotent-replayed"] = "true"
        return Response(ack.body, 202, head, media_type="application/json")


def _answer(told: Any, status: int = 200, head: dict[str, str] | None = None) -> Response:
    return Response(document(told), status, head, media_type="application/json")
