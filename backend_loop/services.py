"""Outside services over HTTP: read what they know, and have them do something once per key."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import httpx
from pydantic_core import from_json

from backend_loop.outcomes import LONGEST_S

NOT_NOW: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
"""Refusals that hold for now only, as every server error does."""


MOST_BYTES: Final = 4 * 1024 * 1024
"""Of an answer: what is longer is none. Whoever has more to tell has pages."""

TOLD: Final = 300
"""Characters of a server's own words in an error: each try's line of the log has them."""

NO_ANSWER: Final = (httpx.TransportError, httpx.DecodingError, TimeoutError)
"""What is raised where nothing came back that can be read."""


class ServiceUnavailable(Exception):  # noqa: N818  a state of the other side, not a fault of the program
    """It gave no answer that can be used; what was ordered may have been done. The same key may be sent again.

    Args:
        after_s: when it wants to be asked again (``Retry-After``), seconds from now.
    """

    def __init__(self, sentence: str, after_s: float = 0.0) -> None:
        """`sentence` is for a person."""
        super().__init__(sentence)
        self.after_s = after_s


class ServiceRefused(Exception):  # noqa: N818  as above
    """It says no, has done nothing, and will say so again.

    Args:
        code: its word for why, such as ``out_of_stock``.
    """

    def __init__(self, sentence: str, code: str) -> None:
        """`sentence` is for a person."""
        super().__init__(sentence)
        self.code = code


class Answer(dict[str, Any]):
    """What a service has answered; what it lacks is no fault of the handler that asks for it.

    Args:
        name: of the service.
        content: of its answer.
    """

    def __init__(self, name: str, content: Mapping[str, Any]) -> None:
        """As it was said."""
        super().__init__(content)
        self._name = name

    def __missing__(self, key: str) -> Any:
        """Raises ServiceUnavailable."""
        raise ServiceUnavailable(f"{self._name} gave an answer without {key!r}")


class Stamp(NamedTuple):
    """Who orders: the key of the effect, the fence of the lease, the trace."""

    key: str
    fence: int
    traceparent: str


class Services:
    """The services below one base URL; a path begins with a service's name.

    Args:
        base_url: of the services.
        client: shared with other users; closing it is its owner's business.
    """

    def __init__(self, base_url: str, client: httpx.AsyncClient) -> None:
        """Connect to nothing yet."""
        self._base, self._client = base_url.rstrip("/"), client

    async def get(self, path: str, *, within_s: float, traceparent: str) -> dict[str, Any]:
        """Read.

        Raises:
            ServiceUnavailable, ServiceRefused: as they say.
        """
        return await self._send("GET", path, None, within_s, {"traceparent": traceparent})

    async def post(self, path: str, body: Mapping[str, Any], *, within_s: float, stamp: Stamp) -> dict[str, Any]:
        """Have it done, once per key.

        Raises:
            ServiceUnavailable, ServiceRefused: as they say.
        """
        headers = {"idempotency-key": stamp.key, "fence": str(stamp.fence), "traceparent": stamp.traceparent}
        return await self._send("POST", path, body, within_s, headers)

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None, within_s: float, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        name = path.partition("/")[0]
        if within_s <= 0:
            raise ServiceUnavailable(f"no time is left to ask {name}")
        own = {**headers, "accept-encoding": "identity"}
        request = self._client.build_request(method, f"{self._base}/{path}", json=body, headers=own, timeout=within_s)
        try:
            async with asyncio.timeout(within_s):  # httpx counts each phase by itself
                status, retry_after, content = await self._answer(name, request)
        except NO_ANSWER as fault:
            raise ServiceUnavailable(f"{name} gave no answer: {silence(fault)}") from fault
        return _read(name, status, retry_after, content)

    async def _answer(self, name: str, request: httpx.Request) -> tuple[int, str | None, bytes]:
        """Status, ``Retry-After`` and body."""
        answer, content = await self._client.send(request, stream=True), bytearray()
        try:
            async for piece in answer.aiter_bytes():
                content += piece
                if len(content) > MOST_BYTES:
                    raise ServiceUnavailable(f"{name} gave an answer of more than {MOST_BYTES} bytes")
        finally:
            await answer.aclose()
        return answer.status_code, answer.headers.get("retry-after"), bytes(content)


def _read(name: str, status: int, retry_after: str | None, content: bytes) -> dict[str, Any]:
    document = _document(content)
    if 200 <= status < 300:
        if document is None:
            raise ServiceUnavailable(f"{name} gave an answer that is no JSON object")
        return Answer(name, document)
    told = (document or {}).get("detail")
    sentence = f"{name}: {told[:TOLD] if isinstance(told, str) else f'HTTP {status}'}"
    if is_for_good(status):
        raise ServiceRefused(sentence, str((document or {}).get("code", status)))
    raise ServiceUnavailable(sentence, retry_after_s(retry_after))


def _document(content: bytes) -> dict[str, Any] | None:
    try:
        document = from_json(content, allow_inf_nan=False)
    except ValueError:  # too deep, half a surrogate, no UTF-8
        return None
    return document if isinstance(document, dict) else None


def silence(fault: Exception) -> str:
    """Why there was no answer, for a person."""
    if isinstance(fault, httpx.TimeoutException | TimeoutError):
        return "out of time"
    return str(fault) or type(fault).__name__


def is_for_good(status: int) -> bool:
    """Whether it says no and will say so again; after any other that is no success one may ask again."""
    return 400 <= status < 500 and status not in NOT_NOW


def retry_after_s(header: str | None) -> float:
    """Seconds from now that a ``Retry-After`` asks for, as a number or a date; 0 where it is neither."""
    if header is None:
        return 0.0
    if header.isascii() and header.isdigit():
        return min(float(header), LONGEST_S)
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return 0.0
    until = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return min(max(0.0, (until - datetime.now(UTC)).total_seconds()), LONGEST_S)
