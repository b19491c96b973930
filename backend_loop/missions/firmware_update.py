"""`firmware.update`: flash one gadget, and say what it shows afterwards.

Looked at before the flash, so that one which is there already is left alone, and so is one that a person has flashed
since; and looked at after it, until it shows the firmware or its time is up. A service that answers nothing may have
taken the flash: it is asked again with the same key, and says what it said the first time.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, Field

from backend_loop.dependency import Breaker, Dependency
from backend_loop.mission import Latest, Mission, state
from backend_loop.outcomes import Fail, Go, Outcome, Retry, Sleep, Stop
from backend_loop.retry import Retry as Policy
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.toolbox import Toolbox
from shared.clock import now_ms, parse_rfc3339, rfc3339
from shared.status import ErrorCode, Reason

GADGETS: Final = Dependency("gadgets", breaker=Breaker(failures=10, open_s=2, probes=2, ramp_s=2), retry_ratio=1.0)
ASKING: Final = Policy(tries=20, base_s=0.2, cap_s=10, max_elapsed_s=120)

SHOW_S: Final = 30.0
"""How much longer than it says a flash may take to show."""

FIRST_LOOK_S: Final = 0.1
LOOK_AGAIN: Final = frozenset({"offline", "busy", "changed"})
"""Refusals of a flash that say: it is not what you have looked at any more."""

Gadget = Annotated[
    str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$", examples=["gadget.0001"])
]
Version = Annotated[str, Field(min_length=1, max_length=50, pattern=r"^[A-Za-z0-9._+-]+$", examples=["2.0.0"])]


class FirmwareUpdate(Mission):
    """Bring a gadget to a firmware version; ends with what it shows."""

    type = "firmware.update"
    target = "gadget"
    latest = Latest(aspect="firmware")
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "CHECKING": {"already_done": "SUCCEEDED", "install": "INSTALLING"},
        "INSTALLING": {"installed": "VERIFYING", "look_again": "CHECKING"},
        "VERIFYING": {"confirmed": "SUCCEEDED", "contradicted": "FAILED", "unconfirmed": "FAILED"},
    }

    class Payload(BaseModel):
        """Which gadget, and what it is to have."""

        gadget: Gadget
        version: Version
        replaces: Version | None = Field(None, description="only where the gadget shows this; else it is left alone")
        patience_s: float = Field(10.0, ge=0, le=86_400, description="how long it may be offline before it is given up")

    class Context(BaseModel):
        """What it showed before, and the flash that we have made. Times are epoch ms."""

        before: str = ""
        seen: str = ""
        away_since: int | None = None
        flash: str = ""
        accepted_at: int = 0
        shows_at: int = 0

    @state("CHECKING", uses=(GADGETS,), retry=ASKING)
    async def check(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """What does it show now, and is anything left to do?"""
        payload, context = tools.payload, tools.context
        try:
            gadget = await _gadget(tools)
        except ServiceUnavailable as fault:
            return Retry(str(fault), ErrorCode.DEVICE_UNREACHABLE, fault.after_s)
        except ServiceRefused as fault:
            return Fail(str(fault), ErrorCode.DEVICE_REFUSED)
        # the service knows what it has flashed also of who is not there: what is not to be replaced is not waited for
        never = payload.replaces not in (None, gadget["version"]) and gadget["flashing"] is None
        if (not gadget["online"] and not never) or gadget["flashing"] is not None:
            return _away(tools, gadget)
        context.before, context.seen, context.away_since = gadget["version"], gadget["flash"], None
        if gadget["version"] == payload.version:
            return Go("already_done", _result(tools, "already_done", gadget), _freshness(gadget, verified=False))
        if _overridden(tools, gadget):
            return Stop(Reason.OVERRIDDEN, _result(tools, None, gadget), _freshness(gadget, verified=False))
        return Go("install")

    @state("INSTALLING", acting=True, uses=(GADGETS,), retry=ASKING)
    async def install(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Flash it, unless it has changed since we looked; the gadget takes it, and shows it later."""
        payload, context = tools.payload, tools.context
        wish = {"version": payload.version, "seen": context.seen}
        try:
            taken = await tools.order(f"gadgets/{payload.gadget}/flash", wish)
        except ServiceUnavailable as fault:
            return Retry(str(fault), ErrorCode.UNCONFIRMED, fault.after_s)  # it may have been taken
        except ServiceRefused as fault:
            if fault.code in LOOK_AGAIN:
                return Go("look_again")
            return Fail(str(fault), ErrorCode.DEVICE_REFUSED)
        context.flash, context.accepted_at = taken["flash"], taken["accepted_at"]
        context.shows_at = now_ms() + taken["takes_ms"]
        return Go("installed")

    @state("VERIFYING", timeout_s=10, retry=Policy(tries=1_000, base_s=0))
    async def verify(self, tools: Toolbox[Payload, Context]) -> Outcome:
        """Read it, not before its time, until it shows the firmware, or somebody else's, or time is up."""
        payload, context = tools.payload, tools.context
        if (left_ms := context.shows_at - now_ms()) > 0:
            return _later(f"{payload.gadget} is being flashed", left_ms / 1000)
        try:
            gadget = await _gadget(tools)
        except (ServiceUnavailable, ServiceRefused) as fault:
            return _unless_late(tools, str(fault))
        if gadget["observed_at"] < context.accepted_at or gadget["flashing"] is not None:
            return _unless_late(tools, f"{payload.gadget} does not show {payload.version} yet")
        fresh = _freshness(gadget, verified=True)
        if gadget["version"] == payload.version:
            return Go("confirmed", _result(tools, "confirmed", gadget), fresh)
        if gadget["flash"] != context.flash:
            detail = f"{payload.gadget} shows {gadget['version']}: somebody else flashed it after the command"
            return Go("contradicted", _result(tools, "contradicted", gadget), fresh, detail)
        return _unless_late(tools, f"{payload.gadget} shows {gadget['version']} although it was flashed", gadget)


Tools = Toolbox[FirmwareUpdate.Payload, FirmwareUpdate.Context]


async def _gadget(tools: Tools) -> Mapping[str, Any]:
    """What it shows now.

    Raises:
        ServiceUnavailable, ServiceRefused: see `backend_loop.services`; the former also of an answer that is nonsense.
    """
    gadget = await tools.ask(f"gadgets/{tools.payload.gadget}")
    for name in ("version", "flash"):
        if not isinstance(gadget[name], str):
            raise ServiceUnavailable(f"gadgets gave an answer whose {name!r} is no text")
    return gadget


def _away(tools: Tools, gadget: Mapping[str, Any]) -> Outcome:
    """Come again later, for as long as patience lasts: it answers nobody, or somebody else flashes it."""
    context, now = tools.context, now_ms()
    context.away_since = context.away_since or now
    away_s = (now - context.away_since) / 1000
    if away_s >= tools.payload.patience_s:
        why = "is offline" if not gadget["online"] else "is being flashed by somebody else"
        return Fail(f"{tools.payload.gadget} {why}", ErrorCode.DEVICE_UNREACHABLE)
    pause_s = max(0.5, away_s) if gadget["flashing"] is None else gadget["flashing"]["left_ms"] / 1000
    return Sleep(min(max(FIRST_LOOK_S, pause_s), max(FIRST_LOOK_S, tools.payload.patience_s - away_s)))


def _overridden(tools: Tools, gadget: Mapping[str, Any]) -> bool:
    """Somebody has decided otherwise since this was wanted."""
    if tools.envelope.conflict == "force":
        return False
    if tools.payload.replaces is not None:
        return bool(gadget["version"] != tools.payload.replaces)
    return (gadget["last_flashed"] or 0) > parse_rfc3339(tools.envelope.created_at)


def _later(message: str, pause_s: float) -> Retry:
    return Retry(message, ErrorCode.UNCONFIRMED, after_s=pause_s)


def _unless_late(tools: Tools, message: str, gadget: Mapping[str, Any] | None = None) -> Outcome:
    """Look again, after a longer pause each time; once it is too late, say so."""
    late_s = max(0.0, (now_ms() - tools.context.shows_at) / 1000)
    if late_s >= SHOW_S:
        seen = gadget if gadget is not None else {"id": tools.payload.gadget, "version": None}
        return Go("unconfirmed", _result(tools, "unconfirmed", seen), detail=message)
    return _later(message, max(FIRST_LOOK_S, late_s / 2))


def _result(tools: Tools, outcome: str | None, gadget: Mapping[str, Any]) -> dict[str, Any]:
    said = {} if outcome is None else {"outcome": outcome}
    return {**said, "gadget": gadget["id"], "version": gadget["version"], "before": tools.context.before}


def _freshness(gadget: Mapping[str, Any], *, verified: bool) -> dict[str, Any]:
    observed_at = gadget["observed_at"]
    return {
        "observed_at": rfc3339(observed_at),
        "age_ms": max(0, now_ms() - observed_at),
        "verified": verified,
        "source": "http",
        "version": gadget["flash"] or None,
    }
