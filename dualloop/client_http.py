"""The client's side of HTTP: one request, to the first foreground that can be reached."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx
from pydantic_core import from_json, to_json

from dualloop.client_faults import ClientProblem, UnreachableError

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

    async def ask(
        self, method: str, path: str, *, body: Any = None, query: Mapping[str, Any] | None = None, wait_s: float = 0.0
    ) -> dict[str, Any]:
        """The answer's document; `wait_s` is what the other side was asked to wait.

        Raises:
            ClientProblem: it was refused.
            UnreachableError: no foreground answered.
        """
        content, head = (None, {}) if body is None else (to_json(body), {"content-type": "application/json"})
        left = len(self._urls)
        while True:
            left -= 1
            url = self.url
            try:
                answer = await self._http.request(
                    method, url + path, content=content, params=query, headers=head, timeout=ANSWER_S + wait_s
                )
                return _document(url, answer)
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
        detail = f"What answers at {url} is no foreground of Dual Loop (HTTP {answer.status_code})."
        retryable = answer.status_code in {502, 503, 504}  # of something in between
        document = {"status": answer.status_code, "code": "foreign", "title": detail, "retryable": retryable}
        raise ClientProblem(document)
    if answer.is_error:
        after = answer.headers.get("retry-after", "")
        raise ClientProblem(document, float(after) if after.isdecimal() else 0.0)
    return document


def _unreachable(url: str, error: Exception, *, sent: bool) -> UnreachableError:
    why = str(error) or type(error).__name__
    if sent:
        return UnreachableError(f"The foreground at {url} did not answer ({why}).", sent=True)
    return UnreachableError(f"No foreground answers at {url} ({why}).", sent=False)
