"""The outside services of a bench, and its model, as a script: what is answered to which path, and what was asked.

Only the wire is played: the real `Services` asks, so time-outs, refusals and what is no answer are judged as ever.
"""

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Protocol

import httpx

from backend_loop.testing.faults import WAY_S, Answer, Answers, Call, Fault, Scripted, settled

if TYPE_CHECKING:
    from backend_loop.testing.trial import Trial

BASE_URL: Final = "http://outside"


class UnscriptedError(AssertionError):
    """A mission asked what the script has no answer to, or began a child that the bench knows nothing of."""


class Around(Protocol):
    """What a call passes on its way."""

    def call(self, method: str, path: str, body: Mapping[str, Any], key: str, fence: int) -> Call:
        """Note a call that begins now."""

    async def point(self, when: str, call: Call) -> None:
        """A place to be killed at."""

    def meet(self, do: "Callable[[Trial], object]") -> None:
        """Let something happen meanwhile."""

    async def fail(self, error: BaseException) -> None:
        """End the whole run with this; never returns."""


class Script:
    """Answers by path, such as ``{"stock/items/lamp": {"available": 3}, "payment/orders": [down(), {"id": "p-1"}]}``.

    A path is matched part by part, and ``*`` stands for any text within one: ``stock/reservations/*/release``. It may
    begin with a method: ``"POST stock/reservations"``. A list is gone through call by call, its last answer stays. As
    real services do, it does nothing twice under one key: a second try gets the answer of the first. What came under
    an older fence than another call of the mission is refused. The model's path is ``model/chat/completions``.

    Args:
        answers: by path. A mapping is the body of the answer; see `backend_loop.testing.faults` for what else.
    """

    def __init__(self, answers: Mapping[str, Answers] | None = None) -> None:
        """Nobody has asked yet."""
        self.answers: Mapping[str, Answers] = dict(answers or {})


class Wire(httpx.AsyncBaseTransport):
    """What lies between a client and what is played: one per run, so that each begins at the script's first lines."""

    def __init__(self, around: Around) -> None:
        """Nothing was sent yet."""
        self._around = around

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Note the call, and have it answered."""
        content = await request.aread()
        headers = request.headers
        call = self._around.call(
            request.method,
            request.url.path.lstrip("/"),
            json.loads(content) if content else {},
            headers.get("idempotency-key", "") if "fence" in headers else "",
            int(headers.get("fence", 0)),
        )
        await self._around.point("before", call)
        await asyncio.sleep(WAY_S)
        try:
            return await self.answered(call, request)
        except httpx.TransportError:
            raise
        except Exception as error:
            await self._around.fail(error)
            raise

    async def answered(self, call: Call, request: httpx.Request) -> httpx.Response:
        """What comes back; raises httpx.TransportError where nothing does."""
        raise NotImplementedError


class ScriptWire(Wire):
    """Plays a script."""

    def __init__(self, script: Script, around: Around) -> None:
        """At its beginning."""
        super().__init__(around)
        self._script, self._at = script, dict[str, int]()
        self._kept: dict[str, tuple[str, Mapping[str, Any]]] = {}
        self._fences: dict[str, int] = {}

    async def answered(self, call: Call, request: httpx.Request) -> httpx.Response:  # noqa: ARG002  of the base
        """See `Wire`."""
        early = self._stamped(call)
        answer, gone = early, None
        if early is None:
            answer, gone = await settled(await self._next(call), call, self._around.meet)
        body = await done(answer, call, self._around)
        call.effect = early is None and body is not None and bool(call.key)
        if body is not None and call.effect:
            self._kept[call.key] = call.path, body
        call.answer = answer if isinstance(answer, Fault) else body
        await self._around.point("after", call)
        if gone is not None:
            raise gone
        return reply(answer, body, call.path.partition("/")[0])

    def _stamped(self, call: Call) -> Answer | None:
        """What key and fence alone decide."""
        if not call.key:
            return None
        holder = call.key.partition(":")[0]
        latest = self._fences.get(holder, 0)
        if call.fence < latest:
            return Fault("refused", code="fenced", detail=f"fence {call.fence} is older than {latest}", status=409)
        self._fences[holder] = call.fence
        if (known := self._kept.get(call.key)) is None:
            return None
        if known[0] != call.path:
            detail = f"key {call.key!r} was used for another request"
            return Fault("refused", code="key_reused", detail=detail, status=422)
        return known[1]

    async def _next(self, call: Call) -> Scripted:
        for pattern, answers in self._script.answers.items():
            if fits(pattern, call):
                if not isinstance(answers, Sequence):
                    return answers
                place = self._at.get(pattern, 0)
                self._at[pattern] = place + 1
                return answers[min(place, len(answers) - 1)]
        known = ", ".join(self._script.answers) or "nothing"
        error = f"{call.state} asks {call}, and the script has no answer to it: it has {known}"
        await self._around.fail(UnscriptedError(error))
        raise AssertionError("the run has ended")


async def done(answer: Answer | None, call: Call, around: Around) -> Mapping[str, Any] | None:
    """What was done, as a second try would hear of it; None: nothing."""
    if not isinstance(answer, Fault):
        return answer
    if answer.kind not in {"garbage", "lost"}:
        return None
    inner = (await settled(answer.answer, call, around.meet)).answer
    return inner if isinstance(inner, Mapping) else None


def reply(answer: Answer | None, body: Mapping[str, Any] | None, name: str) -> httpx.Response:
    """What comes back over the wire; raises httpx.TransportError where nothing does."""
    if not isinstance(answer, Fault):
        return httpx.Response(200, json=body)
    match answer.kind:
        case "lost":
            cut = "peer closed connection without sending complete message body (received 0 bytes, expected 1000)"
            raise httpx.RemoteProtocolError(cut)
        case "garbage":
            return httpx.Response(200, content=b"<html>oops")
        case "refused":
            said = {"code": answer.code, "detail": answer.detail or f"{name} says no"}
            return httpx.Response(answer.status, json=said)
    said = {"code": "unavailable", "detail": answer.detail or f"{name} is down"}
    return httpx.Response(503, json=said, headers={"retry-after": str(math.ceil(answer.seconds))})


def fits(pattern: str, call: Call) -> bool:
    """Whether a line of a script is about this call."""
    method, _, path = pattern.rpartition(" ")
    wanted, parts = path.strip("/").split("/"), call.path.strip("/").split("/")
    if method not in {"", call.method} or len(wanted) != len(parts):
        return False
    return all(fnmatchcase(part, want) for part, want in zip(parts, wanted, strict=True))
