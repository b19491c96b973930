"""The model: a server as OpenAI's, of chat completions with tools, whose one model is `scripted`.

What it answers follows from the conversation alone: by a script that somebody has left on the bench for its goal, else
by `model_rules`. It is as strict as the real ones are about what it is sent. Its book counts requests by their key.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, FastAPI, Header
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from dualloop.outside.ledger import Ledger
from dualloop.outside.model_rules import Call, Reply, Talk, reply, talk
from shared.clock import now_ms

SERVICE: Final = "model"
MODEL: Final = "scripted"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_ABOVE: Final = frozenset({"oneOf", "anyOf", "allOf", "enum", "not"})
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})


class Scripted(BaseModel):
    """One reply of a script: a text, calls (name and arguments, as text or as an object), or a whole body, `raw`."""

    model_config = ConfigDict(extra="forbid")

    say: str | None = None
    calls: list[tuple[str, Any]] = []
    tokens: int | None = Field(None, ge=0)
    finish: str | None = None
    raw: Any = None


class Script(BaseModel):
    """What is said to a conversation with this goal, the n-th reply after n - 1 of the model's own."""

    goal: str
    replies: list[Scripted]


class _Wrong(Exception):  # noqa: N818  an answer, not a fault of the program
    """The request is not as it has to be."""

    def __init__(self, sentence: str, status: int = 400, code: str | None = None) -> None:
        super().__init__(sentence)
        self.status, self.code = status, code


def model(ledger: Ledger) -> APIRouter:
    """Its routes."""
    routes = APIRouter(prefix="/model/v1")

    @routes.get("/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "dualloop"}]}

    @routes.post("/chat/completions", response_model=None)
    async def complete(
        asked: Annotated[dict[str, Any], Body()], key: Annotated[str, Header(alias="Idempotency-Key")] = ""
    ) -> dict[str, Any] | JSONResponse:
        try:
            messages, names = _checked(asked)
        except _Wrong as wrong:
            error = {"message": str(wrong), "type": "invalid_request_error", "param": None, "code": wrong.code}
            return JSONResponse({"error": error}, wrong.status)
        said = talk(messages, names)
        scripted = _scripted(ledger, messages, said)
        if scripted is not None and scripted.raw is not None:
            _note(ledger, key, 0)
            return JSONResponse(scripted.raw)
        answer = reply(said) if scripted is None else _as_reply(scripted)
        body = _completion(answer, len(json.dumps(asked)) // 4, scripted)
        _note(ledger, key, body["usage"]["total_tokens"])
        return body

    return routes


def bench(app: FastAPI, ledger: Ledger) -> None:
    """Where scripts are left, and requests were counted."""

    @app.put("/scripts")
    async def leave(script: Script) -> Script:
        with ledger.transaction():
            ledger.know("script", script.goal, script.model_dump())
        return script

    @app.get("/asked")
    async def asked(mission: str = "") -> dict[str, int]:
        return {key: book["calls"] for key, book in ledger.facts("asked").items() if key.startswith(mission)}


def book(ledger: Ledger) -> dict[str, int]:
    """How often it was asked, under how many keys, and what that came to."""
    books = ledger.facts("asked").values()
    return {
        "calls": sum(one["calls"] for one in books),
        "keys": len(books),
        "tokens": sum(one["tokens"] for one in books),
    }


def _note(ledger: Ledger, key: str, tokens: int) -> None:
    with ledger.transaction():
        known = ledger.fact("asked", key) or {"calls": 0, "tokens": 0}
        ledger.know("asked", key, {"calls": known["calls"] + 1, "tokens": known["tokens"] + tokens})


def _scripted(ledger: Ledger, messages: Sequence[Mapping[str, Any]], said: Talk) -> Scripted | None:
    known = ledger.fact("script", said.goal)
    if known is None:
        return None
    replies = Script.model_validate(known).replies
    n = sum(one["role"] == "assistant" for one in messages)
    return replies[n] if n < len(replies) else Scripted(say="That was all that I was told to say.")


def _as_reply(scripted: Scripted) -> Reply:
    texts = [(name, one if isinstance(one, str) else json.dumps(one)) for name, one in scripted.calls]
    return Reply(scripted.say, tuple(Call(name, text) for name, text in texts))


def _completion(answer: Reply, prompt: int, scripted: Scripted | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.say, "refusal": None}
    if answer.calls:
        message["tool_calls"] = [
            {"id": f"call_{prompt}_{n}", "type": "function", "function": call._asdict()}
            for n, call in enumerate(answer.calls)
        ]
    tokens = len(json.dumps(message)) // 4 if scripted is None or scripted.tokens is None else scripted.tokens
    finish = "tool_calls" if answer.calls else "stop"
    return {
        "id": f"chatcmpl-{now_ms()}",
        "object": "chat.completion",
        "created": now_ms() // 1000,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": (scripted and scripted.finish) or finish}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens},
    }


def _checked(asked: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Messages and names of functions; raises _Wrong where a real server would refuse."""
    if asked.get("model") != MODEL:
        name = asked.get("model")
        if not name:
            raise _Wrong("you must provide a model parameter")
        raise _Wrong(f"The model `{name}` does not exist", 404, "model_not_found")
    if asked.get("stream"):
        raise _Wrong("this model does not stream")
    messages = asked.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _Wrong("messages: there are none")
    _check_messages(messages)
    tools = asked.get("tools", [])
    if not isinstance(tools, list) or (not tools and "tools" in asked):
        raise _Wrong("tools: an array of at least one")
    return messages, [_checked_function(one) for one in tools]


def _check_messages(messages: Sequence[Any]) -> None:
    open_ = set[str]()
    for n, one in enumerate(messages):
        if not isinstance(one, dict) or one.get("role") not in _ROLES:
            raise _Wrong(f"messages[{n}]: no message of a known role")
        if one["role"] == "tool":
            if one.get("tool_call_id") not in open_:
                raise _Wrong("messages with role 'tool' must be a response to a preceding message with 'tool_calls'")
            open_.remove(one["tool_call_id"])
        elif open_:
            raise _Wrong(f"these tool_call_ids did not have response messages: {', '.join(sorted(open_))}")
        calls = one.get("tool_calls") or []
        if not isinstance(one.get("content"), str) and not calls:
            raise _Wrong(f"messages[{n}]: content has to be a string")
        open_ |= {_checked_call(n, call) for call in calls}
    if open_:
        raise _Wrong(f"these tool_call_ids did not have response messages: {', '.join(sorted(open_))}")


def _checked_call(n: int, call: Any) -> str:
    try:
        id_, function = call["id"], call["function"]
        named, arguments = _NAME.fullmatch(function["name"]), json.loads(function["arguments"])
    except (KeyError, TypeError, ValueError) as error:
        raise _Wrong(f"messages[{n}].tool_calls: {error!r}") from error
    if not isinstance(id_, str) or not id_ or named is None or not isinstance(arguments, dict):
        raise _Wrong(f"messages[{n}].tool_calls: an id, a name and the JSON of an object are wanted")
    return id_


def _checked_function(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
    name, schema = (function.get("name"), function.get("parameters")) if isinstance(function, dict) else (None, None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _Wrong(f"tools: {name!r} is no name of a function: '^[a-zA-Z0-9_-]+$'")
    if not isinstance(schema, dict) or schema.get("type") != "object" or not _NOT_ABOVE.isdisjoint(schema):
        raise _Wrong(
            f"Invalid schema for function '{name}': schema must have type 'object' and not have "
            "'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
        )
    return name
