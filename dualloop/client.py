"""A Python client of the foreground.

    async with Client() as client:
        ack = await client.submit("device.control", {"entity": "light.kitchen", "action": "turn_on"}, priority="urgent")
        result = await client.wait(ack.correlation_id, timeout=10)

Where the foreground is comes from the argument, else from ``DUALLOOP_URL``, else from host and port of the settings.
Of several URLs the next one is asked where one cannot be reached.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self
from urllib.parse import quote

import httpx
from pydantic_core import from_json, to_json

from dualloop.client_faults import ClientProblem, Patience, UnreachableError
from dualloop.client_socket import frames
from dualloop.parts import local_url
from shared.settings import Settings
from shared.status import Status

__all__ = ["Ack", "Client", "ClientProblem", "UnreachableError", "configured_urls"]

LONG_POLL_S: Final = 30.0
ANSWER_S: Final = 10.0
"""How long an answer may take, beyond what it was asked to wait."""


@dataclass(frozen=True, slots=True)
class Ack:
    """An accepted command."""

    correlation_id: str
    task_id: str
    type: str
    status: str
    accepted_at: str
    retention_s: int
    links: dict[str, str]


class Client:
    """Speaks to foregrounds; use it as an async context manager.

    Args:
        url: base URL, or several, such as ``http://127.0.0.1:8000``; None: as configured.
        patience_s: for how long `wait` and `watch` go on while no foreground answers.
    """

    def __init__(self, url: str | Sequence[str] | None = None, *, patience_s: float = 30.0) -> None:
        """Nothing is opened yet."""
        urls = [url] if isinstance(url, str) else url or configured_urls()
        self._urls = [one.rstrip("/") for one in urls]
        self._patience_s, self._at = patience_s, 0
        self._http = httpx.AsyncClient(trust_env=False, timeout=ANSWER_S)

    @property
    def url(self) -> str:
        """The foreground that is asked now."""
        return self._urls[self._at]

    async def __aenter__(self) -> Self:
        """Connections are opened when needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._http.aclose()

    async def submit(self, type: str, payload: Mapping[str, Any] | None = None, **options: Any) -> Ack:  # noqa: A002  the contract's word
        """Send a command; returns once it is accepted. It is sent once: nothing here does a command twice.

        Args:
            type: mission type.
            payload: as the type's schema says.
            options: further fields of the command, ``target priority deadline_s payload_version …``; None: left out.

        Raises:
            ClientProblem: it was refused.
            UnreachableError: it was not accepted, or (`sent`) nobody can tell.
        """
        given = {name: value for name, value in options.items() if value is not None}
        document = await self._ask("POST", "/v1/commands", body={"type": type, "payload": payload or {}, **given})
        return Ack(**{field.name: document[field.name] for field in fields(Ack)})

    async def result(self, correlation_id: str, wait: float = 0.0) -> dict[str, Any]:
        """The result document, final if its status is terminal; with `wait`, after so many seconds at the latest.

        Raises:
            ClientProblem: 404 never known, 410 expired, 503.
            UnreachableError: no foreground answered.
        """
        return await self._ask("GET", f"/v1/results/{_part(correlation_id)}", query={"wait": wait}, wait_s=wait)

    async def wait(self, correlation_id: str, timeout: float | None = None) -> dict[str, Any]:  # noqa: ASYNC109  a part of the question
        """The final result document, through restarts of the foreground.

        Raises:
            TimeoutError: the mission has not ended after `timeout` seconds; it goes on.
            ClientProblem: as `result`.
            UnreachableError: for `patience_s` nobody answered.
        """
        patience = Patience(self._patience_s)
        async with asyncio.timeout(timeout):
            while True:
                async with patience.bear():
                    document = await self.result(correlation_id, LONG_POLL_S)
                    if Status(document["status"]).terminal:
                        return document
                    patience.rest()

    async def watch(self, correlation_id: str, after_seq: int = 0) -> AsyncGenerator[dict[str, Any], None]:
        """Frames of the socket, from the event after `after_seq` to the result: each once, in order.

        A connection that is lost is made anew, to any foreground, and goes on where the last one ended.

        Raises:
            ClientProblem: 404 never known, 410 expired, or the socket was refused.
            UnreachableError: for `patience_s` nobody answered.
        """
        patience, cursor = Patience(self._patience_s), after_seq
        while True:
            async with patience.bear():
                try:
                    async with contextlib.aclosing(frames(self.url, correlation_id, cursor)) as told:
                        async for frame in told:
                            patience.rest()
                            if frame["op"] == "event":
                                cursor = frame["seq"]
                            yield frame
                            if frame["op"] == "result":
                                return
                except UnreachableError:
                    self._turn()
                    raise

    async def cancel(self, correlation_id: str) -> str:
        """Cancel a mission; its status as of now.

        Raises:
            ClientProblem: 409 it has ended otherwise, 404, 410, 503.
            UnreachableError: no foreground answered.
        """
        answer = await self._ask("POST", f"/v1/commands/{_part(correlation_id)}/cancel")
        return str(answer["status"])

    async def missions(self, **filters: Any) -> dict[str, Any]:
        """A page: ``{"missions": [row, …], "cursor": text or None}``.

        Args:
            filters: ``status type state target correlation_id q cursor limit``; None: left out.
        """
        given = {name: value for name, value in filters.items() if value is not None}
        return await self._ask("GET", "/v1/missions", query=given)

    async def mission(self, task_id: str) -> dict[str, Any]:
        """Everything about a mission; under `why`, one sentence."""
        return await self._ask("GET", f"/v1/missions/{_part(task_id)}")

    async def mission_types(self) -> list[dict[str, Any]]:
        """What live workers know."""
        types: list[dict[str, Any]] = (await self._ask("GET", "/v1/mission-types"))["mission_types"]
        return types

    async def mission_type(self, name: str, version: int | None = None) -> dict[str, Any]:
        """Schema, states and transitions of a type; None: its newest version."""
        query = {} if version is None else {"version": version}
        return await self._ask("GET", f"/v1/mission-types/{_part(name)}", query=query)

    async def _ask(
        self, method: str, path: str, *, body: Any = None, query: Mapping[str, Any] | None = None, wait_s: float = 0.0
    ) -> dict[str, Any]:
        """One request, to the first foreground that can be reached."""
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
                self._turn()
                if not left:
                    raise _unreachable(url, error, sent=False) from error
            except httpx.TransportError as error:
                self._turn()
                raise _unreachable(url, error, sent=True) from error

    def _turn(self) -> None:
        """Ask the next foreground from now on."""
        self._at = (self._at + 1) % len(self._urls)


def configured_urls(settings: Settings | None = None) -> tuple[str, ...]:
    """Base URLs of the foregrounds, as the settings say."""
    settings = settings or Settings()
    return settings.url or (local_url(settings.host, settings.port),)


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


def _part(text: str) -> str:
    return quote(text, safe="")
