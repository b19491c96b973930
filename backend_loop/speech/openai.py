"""The client of an OpenAI-compatible speech server: ``audio/transcriptions`` below its base URL."""

import asyncio
import io
import math
import wave
from collections.abc import Sequence
from http import HTTPStatus
from time import monotonic
from typing import Any, Final

import httpx
from pydantic_core import from_json

from backend_loop.services import NO_ANSWER, ServiceRefused, ServiceUnavailable, is_for_good, retry_after_s, silence
from backend_loop.speech.engine import WIDTH, Transcript, spoken

_MOST: Final = 1024 * 1024
"""Bytes of an answer."""

_TOLD: Final = 300
"""Characters of a server's own words in an error."""

_PROMPT: Final = 600
"""Characters of names: what is longer is cut by the models anyway."""


class OpenAI:
    """The engine behind one server.

    Args:
        base_url: with its ``/v1``.
        client: shared with other users; closing it is its owner's business.
        model: of the server's; None: ``whisper-1``, which those that have one model take for theirs.
        key: sent as a bearer token, and told nobody; empty: none is sent.
        within_s: how long an utterance may take there.

    Raises:
        ValueError: the key is none; the sentence does not show it.
    """

    name = "openai"

    def __init__(
        self, base_url: str, client: httpx.AsyncClient, *, model: str | None, key: str, within_s: float
    ) -> None:
        """Connects to nothing yet."""
        self._url, self._client = f"{base_url.rstrip('/')}/audio/transcriptions", client
        self._model, self._key, self._within_s = model or "whisper-1", key.strip(), within_s
        self._form = "verbose_json"
        if not (self._key.isascii() and self._key.isprintable()):
            raise ValueError("DUALLOOP_SPEECH_KEY has characters that no key has: see what is around it")

    async def transcribe(self, pcm: bytes, rate: int, language: str, hints: Sequence[str] = ()) -> Transcript:
        """As `Engine` says; confidence is what the model says of its own words, where the server passes it on."""
        began = monotonic()
        fields = {"model": self._model, "language": spoken(language), "prompt": ", ".join(hints)[:_PROMPT]}
        file = ("speech.wav", wav(pcm, rate), "audio/wav")
        try:
            async with asyncio.timeout(self._within_s):
                status, retry_after, content = await self._send(fields, file)
                if status in _UNKNOWN and self._form != "json":  # newer models have the short form only
                    self._form = "json"
                    status, retry_after, content = await self._send(fields, file)
        except NO_ANSWER as fault:
            raise ServiceUnavailable(self._kept(f"the speech server gave no answer: {silence(fault)}")) from fault
        document = _document(content)
        if not 200 <= status < 300:
            raise self._fault(status, document, retry_after)
        if not isinstance(document, dict) or not isinstance(text := document.get("text"), str):
            raise ServiceUnavailable("the speech server gave an answer that is no transcription")
        return Transcript(text.strip(), _confidence(document), self.name, (monotonic() - began) * 1000)

    async def _send(self, fields: dict[str, str], file: tuple[str, bytes, str]) -> tuple[int, str | None, bytes]:
        data = {name: value for name, value in {**fields, "response_format": self._form}.items() if value}
        headers = {"accept-encoding": "identity"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        content = bytearray()
        async with self._client.stream(
            "POST", self._url, data=data, files={"file": file}, headers=headers, timeout=self._within_s
        ) as answer:
            async for piece in answer.aiter_bytes():
                content += piece
                if len(content) > _MOST:
                    raise ServiceUnavailable(f"the speech server gave an answer of more than {_MOST} bytes")
            return answer.status_code, answer.headers.get("retry-after"), bytes(content)

    def _fault(self, status: int, document: Any, retry_after: str | None) -> Exception:
        error = document.get("error", document.get("detail")) if isinstance(document, dict) else None
        said = error.get("message") if isinstance(error, dict) else error
        sentence = self._kept(f"the speech server: {said if isinstance(said, str) else f'HTTP {status}'}")[:_TOLD]
        if is_for_good(status):
            return ServiceRefused(sentence, str(status))
        return ServiceUnavailable(sentence, retry_after_s(retry_after))

    def _kept(self, sentence: str) -> str:
        """Without the key, which some servers repeat."""
        return sentence.replace(self._key, "***") if self._key else sentence


_UNKNOWN: Final = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


def wav(pcm: bytes, rate: int) -> bytes:
    """The samples as a file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(WIDTH)
        out.setframerate(rate)
        out.writeframes(pcm)
    return file.getvalue()


def _confidence(document: dict[str, Any]) -> float | None:
    """Of the segments' average log-probabilities, the worst; None: the server does not say."""
    segments = document.get("segments")
    if not isinstance(segments, list) or not segments:
        return None
    logs = list[float]()
    for one in segments:
        told = one.get("avg_logprob") if isinstance(one, dict) else None
        if not isinstance(told, int | float) or told > 0:
            return None
        logs.append(told)
    return round(math.exp(min(logs)), 3)


def _document(content: bytes) -> Any:
    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError:
        return None
