"""The home over HTTP: the bridge that programs speak to, and the bench at which people and tests stand.

The bridge (`GET /devices/{entity}`, `POST …/act`) is subject to the device's faults; the bench (all else) never is.
With a broker the devices speak by MQTT too, for as long as the app lives.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, TypeVar

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.middleware.trustedhost import TrustedHostMiddleware

from dualloop.home import model
from dualloop.home.gate import Point
from dualloop.home.house import House, KeyReused, NoDevice, Silent, Unreachable
from dualloop.home.model import Faults, Order, Reading
from dualloop.home.wire.wiring import Wiring
from shared.clock import now_ms, rfc3339

T = TypeVar("T")

_ANSWERS: Final[dict[type[Exception], int]] = {
    NoDevice: 404,
    Unreachable: 503,
    Silent: 504,
    KeyReused: 422,
    model.Refused: 422,
    model.Fenced: 409,
}


class Intervention(BaseModel):
    """What a person does at a device: a switch by hand, other faults in place of those it has, or both."""

    model_config = ConfigDict(extra="forbid")

    hand: dict[str, Any] | None = None
    faults: Faults | None = None


class Hold(BaseModel):
    """Where to hold the next request, or every one, or to let go."""

    model_config = ConfigDict(extra="forbid")

    at: Point
    every: bool = False


def home_app(house: House, allowed_hosts: Sequence[str], broker: str | None = None) -> FastAPI:
    """The app of a home, whose devices speak by the broker of this URL, if there is one."""
    wiring = None if broker is None else Wiring(house, broker)
    app = FastAPI(title="Simulated home", docs_url=None, redoc_url=None, lifespan=_speaking(wiring))
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts))
    for fault, status in _ANSWERS.items():
        app.add_exception_handler(fault, _answer(status))
    _bridge(app, house)
    _bench(app, house)
    _health(app, wiring)
    _holds(app, house)
    return app


def _speaking(wiring: Wiring | None) -> Callable[[FastAPI], contextlib.AbstractAsyncContextManager[None]]:
    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if wiring is None:
            yield
            return
        speaking = asyncio.create_task(wiring.run())
        try:
            yield
        finally:
            speaking.cancel()
            await asyncio.wait({speaking})

    return lifespan


def _answer(status: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(_: Request, fault: Exception) -> Response:  # a plain function would cost a thread
        return JSONResponse({"detail": str(fault)}, status)

    return answer


def _bridge(app: FastAPI, house: House) -> None:
    @app.get("/devices/{entity}")
    async def observe(entity: str) -> dict[str, Any]:
        arrived_at = now_ms()
        reading = await _cut_at_the_end(house.observe(entity))
        clock = {"arrived_at": rfc3339(arrived_at), "answered_at": rfc3339(now_ms())}
        return {"entity": entity, **_shown(reading), "clock": clock, "limits": house.device(entity).limits}

    @app.post("/devices/{entity}/act")
    async def act(entity: str, order: Order) -> dict[str, Any]:
        await _cut_at_the_end(house.act(entity, order))
        return {"entity": entity, "key": order.key, "done": True}


async def _cut_at_the_end(request: Awaitable[T]) -> T:
    """A home that stops cuts who is held or kept in silence: what came of it is unknown."""
    try:
        return await request
    except asyncio.CancelledError as fault:
        raise Silent("the home is stopping") from fault


def _bench(app: FastAPI, house: House) -> None:
    @app.get("/devices")
    async def devices() -> dict[str, Any]:
        return {"devices": [_seen(house, entity) for entity in house.devices]}

    @app.get("/devices/{entity}/hand")
    async def look(entity: str) -> dict[str, Any]:
        return _seen(house, entity)

    @app.post("/devices/{entity}")
    async def intervene(entity: str, intervention: Intervention) -> dict[str, Any]:
        if intervention.hand is not None:  # first, since it may be refused: then nothing is done
            house.hand(entity, intervention.hand)
        if intervention.faults is not None:
            house.break_down(entity, intervention.faults)
        return _seen(house, entity)

    @app.post("/devices/{entity}/hand")
    async def hand(entity: str, values: dict[str, Any]) -> dict[str, Any]:
        house.hand(entity, values)
        return _seen(house, entity)

    @app.put("/devices/{entity}/faults")
    async def break_down(entity: str, faults: Faults) -> dict[str, Any]:
        house.break_down(entity, faults)
        return _seen(house, entity)

    @app.get("/devices/{entity}/journal")
    async def journal(entity: str) -> dict[str, Any]:
        return {"entity": entity, "journal": [_told(effect) for effect in house.journal(entity)]}


def _health(app: FastAPI, wiring: Wiring | None) -> None:
    @app.get("/livez")
    async def livez() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        missing = [] if wiring is None else wiring.missing
        if missing:
            return JSONResponse({"status": "not ready", "detail": f"not with the broker: {', '.join(missing)}"}, 503)
        return JSONResponse({"status": "ready"})


def _holds(app: FastAPI, house: House) -> None:
    @app.post("/devices/{entity}/hold")
    async def hold(entity: str, wish: Hold) -> dict[str, Any]:
        house.gate(entity).hold(wish.at, every=wish.every)
        return {"entity": entity, "hold": wish.at}

    @app.get("/devices/{entity}/hold")
    async def held(entity: str, wait: Annotated[float, Query(ge=0, le=60)] = 0.0) -> dict[str, Any]:
        return {"entity": entity, "held": await house.gate(entity).when_held(wait)}

    @app.post("/devices/{entity}/release")
    async def release(entity: str, wish: Hold | None = None) -> dict[str, Any]:
        house.gate(entity).release(wish.at if wish else None)
        return {"entity": entity}


def _shown(reading: Reading) -> dict[str, Any]:
    last = max(reading.changes.values(), key=lambda change: change.version, default=None)
    return {
        "value": reading.value,
        "version": str(reading.version),
        "observed_at": rfc3339(reading.observed_at),
        "age_ms": max(0, now_ms() - reading.observed_at),
        "changed_by": last.by if last else None,
        "changes": {
            name: {"by": change.by, "version": str(change.version), "at": rfc3339(change.at)}
            for name, change in reading.changes.items()
        },
    }


def _seen(house: House, entity: str) -> dict[str, Any]:
    device = house.device(entity)
    return {
        "entity": entity,
        **_shown(house.look(entity)),
        "reachable": not (device.faults.offline or device.faults.silent),
        "actions": device.actions,
        "limits": device.limits,
        "faults": device.faults.model_dump(),
    }


def _told(effect: model.Effect) -> dict[str, Any]:
    order = {} if effect.order is None else effect.order.model_dump()
    return {
        "at": rfc3339(effect.at),
        "by": effect.by,
        "changed": effect.changed,
        "version": str(effect.version),
        **order,
    }
