"""The simulated home at the foreground's door: what its devices show, the hand switch, and their faults."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import httpx
from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

from shared.errors import Problem
from shared.settings import Settings

TIMEOUT_S: Final = 3.0
RETRY_AFTER_S: Final = 2.0


class Intervention(BaseModel):
    """What a person does at a device: values set by hand, faults that replace those it has, or both."""

    model_config = ConfigDict(extra="forbid")

    hand: dict[str, Any] | None = None
    faults: dict[str, Any] | None = None


def home_router(settings: Settings) -> APIRouter:
    """The routes under ``/v1/home/devices``; a home that is away answers 503 and touches nothing else."""
    client = httpx.AsyncClient(trust_env=False, timeout=TIMEOUT_S)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with client:
            yield

    router = APIRouter(prefix="/v1/home/devices", tags=["home"], lifespan=lifespan)

    async def ask(method: str, path: str, body: Any = None) -> dict[str, Any]:
        if settings.home_url is None:
            raise _away("no home is configured: set DUALLOOP_HOME_URL, or start everything with `dualloop up`")
        try:
            content = None if body is None else to_json(body)
        except ValueError as fault:
            raise Problem("invalid", "the body holds text that is not Unicode") from fault
        try:
            url, head = settings.home_url.rstrip("/") + path, {"content-type": "application/json"}
            answer = await client.request(method, url, content=content, headers=head)
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise _away(f"the home does not answer ({type(fault).__name__})") from fault
        return _document(answer)

    @router.get("")
    async def devices() -> dict[str, Any]:
        """Every device: what it shows now, what it can do, its faults."""
        return await ask("GET", "/devices")

    @router.get("/{entity}")
    async def device(entity: str) -> dict[str, Any]:
        """One device as it physically stands now, reachable for programs or not."""
        return await ask("GET", f"/devices/{quote(entity, safe='')}/hand")

    @router.post("/{entity}")
    async def intervene(entity: str, intervention: Intervention) -> dict[str, Any]:
        """Switch a device by hand, or break it; answers with the device as it stands then."""
        body = intervention.model_dump(exclude_none=True)
        return await ask("POST", f"/devices/{quote(entity, safe='')}", body)

    return router


def _away(detail: str) -> Problem:
    return Problem("home_unavailable", detail, retryable=True, retry_after=RETRY_AFTER_S)


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise _away(f"what answers at the home's address is no home (HTTP {answer.status_code})")
    if answer.is_success:
        return document
    detail = document.get("detail")
    if answer.status_code == HTTPStatus.NOT_FOUND:
        raise Problem("not_found", detail if isinstance(detail, str) else "there is no such device in this home")
    if answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY:
        raise _refused(detail)
    raise _away(f"the home answers with HTTP {answer.status_code}")


def _refused(detail: Any) -> Problem:
    """The home's own sentence, or the list of faults that FastAPI finds in a body."""
    if isinstance(detail, Sequence) and not isinstance(detail, str):
        faults = [fault for fault in detail if isinstance(fault, Mapping)]
        errors = [
            {"pointer": "".join(f"/{part}" for part in fault.get("loc", ())[1:]), "detail": str(fault.get("msg"))}
            for fault in faults
        ]
        return Problem("invalid", "the home does not understand this", errors=errors)
    return Problem("invalid", str(detail), errors=[{"pointer": "/hand", "detail": str(detail)}])
