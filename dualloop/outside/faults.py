"""How the services misbehave until they are told otherwise, and the middleware that does it."""

import asyncio
import random
from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dualloop.outside.ledger import Ledger

LONGEST_S: Final = 60.0
CALLS_OFF: Final = ("/release", "/refund", "/cancel")


class Faults(BaseModel):
    """The faults of one service.

    ``slow_s`` passes before anything happens. ``down`` answers 503 and does nothing; ``refuses`` says no, for good, to
    whatever is new, and still calls off what there is.
    ``garbage`` does what it is asked and answers with what is no JSON; ``lose_reply`` does it and cuts the connection.
    ``flapping`` is the share of requests that meet 503, garbage or lose_reply, by chance. ``idle``: the bank
    takes no payment by itself, somebody has to pay. After ``times`` requests the service is well again; None: never.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slow_s: float = Field(0, ge=0, le=LONGEST_S)
    down: bool = False
    refuses: bool = False
    garbage: bool = False
    lose_reply: bool = False
    flapping: float = Field(0, ge=0, le=1)
    idle: bool = False
    times: int | None = Field(None, ge=1)


WELL: Final = Faults()


def faults_of(ledger: Ledger, service: str) -> Faults:
    """Those that it has."""
    known = ledger.fact("faults", service)
    return WELL if known is None else Faults.model_validate(known)


class Faulty:
    """Wraps the app: requests whose path begins with a service's name meet its faults.

    Args:
        app: of the services.
        faults: of a service, as of now; None: it is none.
        met: told that a request met them.
    """

    def __init__(self, app: ASGIApp, faults: Callable[[str], Faults | None], met: Callable[[str], None]) -> None:
        """All well so far."""
        self._app, self._faults, self._met = app, faults, met

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        service = scope["path"].split("/", 2)[1] if scope["type"] == "http" else ""
        faults = self._faults(service)
        if faults is None or faults == WELL:
            await self._app(scope, receive, send)
            return
        self._met(service)
        await asyncio.sleep(faults.slow_s)
        fault = _drawn(faults, new=scope["method"] == "POST" and not scope["path"].endswith(CALLS_OFF))
        if fault in _INSTEAD:
            await _INSTEAD[fault](service)(scope, receive, send)
        elif fault is None:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, _swallow)
            await (_cut(send) if fault == "lose_reply" else Response("<html>oops", 200)(scope, receive, send))


def _drawn(faults: Faults, *, new: bool) -> str | None:
    for fault in ("down", "refuses", "garbage", "lose_reply"):
        if getattr(faults, fault) and (new or fault != "refuses"):
            return fault
    if random.random() < faults.flapping:  # noqa: S311  chance, not a secret
        return random.choice(("flaps", "garbage", "lose_reply"))  # noqa: S311  as above
    return None


def _down(service: str) -> Response:
    word = {"code": "unavailable", "detail": f"{service} is down"}
    return JSONResponse(word, 503, {"retry-after": "1"})


def _flaps(service: str) -> Response:
    """When it will be well it does not know."""
    return JSONResponse({"code": "unavailable", "detail": f"{service} flaps"}, 503)


def _refuses(service: str) -> Response:
    return JSONResponse({"code": "refused", "detail": f"{service} says no"}, 403)


_INSTEAD: Final[dict[str | None, Callable[[str], Response]]] = {
    "down": _down,
    "flaps": _flaps,
    "refuses": _refuses,
}


async def _swallow(_message: Message) -> None:
    """What the app answers is heard by nobody."""


async def _cut(send: Send) -> None:
    """Begin an answer and never end it: the server closes the connection then."""
    headers: Any = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
