"""A language model behind an OpenAI-compatible URL: a conversation and functions go in, a text or calls come out.

What it says is foreign: it is bounded and read here, and what it wants done is only wanted. Whoever asks decides.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import httpx
from pydantic import BaseModel, Field, JsonValue, ValidationError
from pydantic_core import from_json, to_json

from backend_loop.alias import alias
from backend_loop.services import (
    NO_ANSWER,
    NOT_NOW,
    TOLD,
    ServiceRefused,
    ServiceUnavailable,
    is_for_good,
    retry_after_s,
    silence,
)
from backend_loop.thought import Function, Thought, Usage, Wanted
from shared.settings import Settings

MOST_BYTES: Final = 1024 * 1024
"""Of an answer: what is longer is no answer."""

MOST_TOKENS: Final = 10**9
"""A server that counts more has not counted."""

SPENT: Final = "insufficient_quota"
"""Code of a 429 that no waiting helps against."""


class Model:
    """The client of one model.

    Args:
        base_url: such as ``http://127.0.0.1:11434/v1``.
        client: shared with other users; closing it is its owner's business.
        name: of the model there; None: none is named.
        key: sent as a bearer token, and told nobody; empty: none is sent.
        named: what a thought's own key is told as.

    Raises:
        ValueError: the key is none; the sentence does not show it.
    """

    def __init__(
        self,
        base_url: str,
        client: httpx.AsyncClient,
        name: str | None = None,
        key: str = "",
        named: Callable[[str], str] = alias,
    ) -> None:
        """Connect to nothing yet."""
        self._named = named
        self._url, self._client, self._name = f"{base_url.rstrip('/')}/chat/completions", client, name
        self._key = key.strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise ValueError("DUALLOOP_MODEL_KEY has characters that no key has: see what is around it")

    async def think(
        self,
        messages: Sequence[Mapping[str, Any]],
        functions: Sequence[Function] = (),
        *,
        within_s: float,
        key: str,
        traceparent: str,
    ) -> Thought:
        """Ask once. Few servers know what `key` is for: asked again, the model thinks again.

        Raises:
            ServiceUnavailable: no answer that can be used; ask again.
            ServiceRefused: the server says no, and will say so again: a wrong key, no such model, too long a question.
        """
        if within_s <= 0:
            raise ServiceUnavailable("no time is left to ask the model")
        body: dict[str, Any] = {"messages": list(messages)}
        if self._name is not None:
            body["model"] = self._name
        if functions:
            body["tools"] = [{"type": "function", "function": one._asdict()} for one in functions]
        headers = {"idempotency-key": self._named(key), "traceparent": traceparent, "accept-encoding": "identity"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        try:
            async with asyncio.timeout(within_s):  # httpx counts each phase by itself
                status, retry_after, content = await self._send(body, headers, within_s)
        except NO_ANSWER as fault:
            raise ServiceUnavailable(self._kept(f"the model gave no answer: {silence(fault)}")) from fault
        document = _document(content)
        if 200 <= status < 300:
            return read(document, _guess(body))
        raise self._fault(status, document, retry_after)

    async def _send(
        self, body: Mapping[str, Any], headers: Mapping[str, str], within_s: float
    ) -> tuple[int, str | None, bytes]:
        content = bytearray()
        async with self._client.stream("POST", self._url, json=body, headers=headers, timeout=within_s) as answer:
            async for piece in answer.aiter_bytes():
                content += piece
                if len(content) > MOST_BYTES:
                    raise ServiceUnavailable(f"the model gave an answer of more than {MOST_BYTES} bytes")
            return answer.status_code, answer.headers.get("retry-after"), bytes(content)

    def _fault(self, status: int, document: Any, retry_after: str | None) -> Exception:
        """What a status other than success means."""
        said, code = _error(document)
        sentence = f"the model's server: {self._kept(said)[:TOLD] or f'HTTP {status}'}"
        if is_for_good(status) or (status in NOT_NOW and code == SPENT):
            return ServiceRefused(sentence, code or str(status))
        return ServiceUnavailable(sentence, retry_after_s(retry_after))

    def _kept(self, sentence: str) -> str:
        """Without the key, which some servers repeat."""
        return sentence.replace(self._key, "***") if self._key else sentence


def model_of(settings: Settings, client: httpx.AsyncClient) -> Model | None:
    """The model that is configured, else the demonstration's, where its services run.

    Raises:
        ValueError: see `Model`.
    """
    if settings.model_url:
        key = settings.model_key.get_secret_value() if settings.model_key is not None else ""
        return Model(settings.model_url, client, settings.model_name, key)
    if settings.outside_url:  # the key is for somebody else
        return Model(
            f"{settings.outside_url.rstrip('/')}/model/v1", client, settings.model_name or "scripted", named=str
        )
    return None


class _Function(BaseModel):
    name: str
    arguments: str | dict[str, JsonValue] = ""


class _Call(BaseModel):
    id: str | None = None
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Answer(BaseModel):
    choices: list[_Choice] = Field(min_length=1)


def read(document: Any, prompt: int) -> Thought:
    """What a completion says; `prompt`: tokens that were asked with, should the server not say.

    Raises:
        ServiceUnavailable: it is none, or says nothing.
    """
    try:
        choice = _Answer.model_validate(document).choices[0]
    except ValidationError as fault:
        raise ServiceUnavailable("the model gave an answer that is no chat completion") from fault
    message = choice.message
    calls = tuple(Wanted(one.id or "", one.function.name, _text(one)) for one in message.tool_calls or ())
    text = message.content or message.refusal or ""
    if not calls and not text.strip():
        raise ServiceUnavailable("the model said nothing")
    said = len(text) + sum(len(one.arguments) for one in calls)
    return Thought(text, calls, _usage(document.get("usage"), prompt, said // 4), choice.finish_reason == "length")


def _text(call: _Call) -> str:
    """As it was said; some servers say an object."""
    arguments = call.function.arguments
    return arguments if isinstance(arguments, str) else to_json(arguments).decode()


def _usage(told: Any, prompt: int, said: int) -> Usage:
    counts = [told.get(name) for name in ("prompt_tokens", "completion_tokens")] if isinstance(told, dict) else [None]
    if all(type(count) is int and 0 <= count <= MOST_TOKENS for count in counts):
        return Usage(*counts)
    return Usage(prompt, said, told=False)


def _guess(body: Mapping[str, Any]) -> int:
    return len(to_json(body)) // 4


def _document(content: bytes) -> Any:
    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError:  # too deep, half a surrogate, no UTF-8
        return None


def _error(document: Any) -> tuple[str, str]:
    """A server's own sentence and code, in whichever of the usual places they are."""
    error = document.get("error", document) if isinstance(document, dict) else {}
    if isinstance(error, str):
        return error, ""
    if not isinstance(error, dict):
        return "", ""
    said = next((one for name in ("message", "detail") if isinstance(one := error.get(name), str)), "")
    code = error.get("code")
    return said, code if isinstance(code, str) else ""
