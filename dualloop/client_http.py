"""The client's side of HTTP: one request, to the first foreground that can be reached."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import httpx
from pydantic_core import from_json, to_json

from dualloop.client_faults import ClientProblem, UnreachableError

T = TypeVar("T")

ANSWER_S: Final = 10.0
"""How long an answer may take, beyond what it was asked to wait."""


class Exchange:
    """Requests and answers, as JSON documents.

    Args:
        urls: base URLs of foregrounds, in the order in which they are tried.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        """Nothing is opened yet."""
        self._urls, self._at = [url.rstrip("/") for url in urls], 0
        self._http = httpx.AsyncClient(trust_env=False, timeout=ANSWER_S)

    @property
    def url(self) -> str:
        """The foreground that is asked now."""
        return self._urls[self._at]

    def turn(self) -> None:
        """Ask the next foreground from now on."""
        self._at = (self._at + 1) % len(self._urls)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def ask(  # noqa: PLR0913  what a request has
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        raw: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        head: Mapping[str, str] | None = None,
        wait_s: float = 0.0,
    ) -> dict[str, Any]:
        """The answer's document; `head` are further headers, `wait_s` is what the other side was asked to wait.

        The request has `body` as JSON, or `raw` as it is.

        Raises:
            ClientProblem: it was refused.
            UnreachableError: no foreground answered.
        """
        content = raw if body is None else to_json(body)
        kind = "application/octet-stream" if body is None else "application/json"
        told = {**(head or {}), **({} if content is None else {"content-type": kind})}

        async def once(url: str) -> dict[str, Any]:
            answer = await self._http.request(
                method, url + path, content=content, params=query, headers=told, timeout=ANSWER_S + wait_s
            )
            return _document(url, answer)

        return await self._first(once)

    async def fetch(self, path: str, take: Callable[[bytes], object]) -> None:
        """A file, piece by piece as it comes.

        Raises:
            ClientProblem: it was refused.
            UnreachableError: no foreground answered, or (`sent`) one fell silent in the middle.
        """

        async def once(url: str) -> None:
            async with self._http.stream("GET", url + path) as answer:
                if answer.is_error or "content-disposition" not in answer.headers:
                    await answer.aread()
                    _document(url, answer)
                    raise ClientProblem(_foreign(url, answer))
                async for piece in answer.aiter_bytes():
                    take(piece)

        await self._first(once)

    async def _first(self, once: Callable[[str], Awaitable[T]]) -> T:
        """Of the first foreground that can be reached."""
        left = len(self._urls)
        while True:
            left -= 1
            url = self.url
            try:
                return await once(url)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
                self.turn()
                if not left:
                    raise _unreachable(url, error, sent=False) from error
            except httpx.TransportError as error:
                self.turn()
                raise _unreachable(url, error, sent=True) from error


def _document(url: str, answer: httpx.Response) -> dict[str, Any]:
    try:
        document = from_json(answer.content)
    except ValueError:
        document = None
    if not isinstance(document, dict) or (answer.is_error and "code" not in document):
        raise ClientProblem(_foreign(url, answer))
    if answer.is_error:
        after = answer.headers.get("retry-after", "")
        raise ClientProblem(document, float(after) if after.isdecimal() else 0.0)
    return document


def _foreign(url: str, answer: httpx.Response) -> dict[str, Any]:
    detail = f"What answers at {url} is no foreground of Dual Loop (HTTP {answer.status_code})."
    retryable = answer.status_code in {502, 503, 504}  # of something in between
    return {"status": answer.status_code, "code": "foreign", "title": detail, "retryable": retryable}


def _unreachable(url: str, error: Exception, *, sent: bool) -> UnreachableError:
    why = str(error) or type(error).__name__
    if sent:
        return UnreachableError(f"The foreground at {url} did not answer ({why}).", sent=True)
    return UnreachableError(f"No foreground answers at {url} ({why}).", sent=False)
