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

from dualloop.address import local_url
from dualloop.client_faults import ClientProblem, Patience, UnreachableError
from dualloop.client_files import Files
from dualloop.client_home import Home
from dualloop.client_http import Exchange
from dualloop.client_schedules import Schedules
from dualloop.client_socket import frames
from dualloop.client_verbs import Verbs
from shared.settings import Settings
from shared.status import Status

__all__ = ["Ack", "Client", "ClientProblem", "UnreachableError", "configured_urls"]

LONG_POLL_S: Final = 30.0


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


class Client(Verbs):
    """Speaks to foregrounds; use it as an async context manager.

    Args:
        url: base URL, or several, such as ``http://127.0.0.1:8000``; None: as configured.
        patience_s: for how long `wait` and `watch` go on while no foreground answers.
    """

    def __init__(self, url: str | Sequence[str] | None = None, *, patience_s: float = 30.0) -> None:
        """Nothing is opened yet."""
        urls = [url] if isinstance(url, str) else url or configured_urls()
        super().__init__(Exchange(urls))
        self.schedules, self.files = Schedules(self._exchange), Files(self._exchange)
        self.home = Home(self._exchange)
        self._patience_s = patience_s

    @property
    def url(self) -> str:
        """The foreground that is asked now."""
        return self._exchange.url

    async def __aenter__(self) -> Self:
        """Connections are opened when needed."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._exchange.close()

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
        return await self._send({"type": type, "payload": payload or {}}, options)

    async def say(self, text: str, **options: Any) -> Ack:
        """Send what is said in words; in its result `text` is the answer, and `answers` the command that it was one to.

        Args:
            text: such as ``turn on the living room light`` or ``打开客厅空调，调到26度``.
            options: further fields of the command, ``locale session area …``; None: left out.

        Raises:
            ClientProblem, UnreachableError: as `submit`.
        """
        return await self._send({"text": text}, options)

    async def speak(self, recording: bytes, *, rate: int | None = None, **options: Any) -> Ack:
        """Send what is said, as a recording; in its result `heard` is what was understood, and `text` the answer.

        Args:
            recording: a WAV, FLAC or OGG file, or raw PCM: 16 bit, little endian, mono.
            rate: of raw PCM, samples a second.
            options: further fields of the command, ``locale session area …``; None: left out.

        Raises:
            ClientProblem, UnreachableError: as `submit`.
        """
        query = {name: value for name, value in {"rate": rate, **options}.items() if value is not None}
        return _acked(await self._exchange.ask("POST", "/v1/voice", raw=recording, query=query))

    async def _send(self, command: dict[str, Any], options: Mapping[str, Any]) -> Ack:
        given = {name: value for name, value in options.items() if value is not None}
        return _acked(await self._exchange.ask("POST", "/v1/commands", body={**command, **given}))

    async def result(self, correlation_id: str, wait: float = 0.0) -> dict[str, Any]:
        """The result document, final if its status is terminal; with `wait`, after so many seconds at the latest.

        Raises:
            ClientProblem: 404 never known, 410 expired, 503.
            UnreachableError: no foreground answered.
        """
        return await self._exchange.ask(
            "GET", f"/v1/results/{_part(correlation_id)}", query={"wait": wait}, wait_s=wait
        )

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

        Those with ``"op": "progress"`` come in between, without a `seq`: how far it says it is, the newest only.

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
                    self._exchange.turn()
                    raise

    async def missions(self, **filters: Any) -> dict[str, Any]:
        """A page: ``{"missions": [row, …], "cursor": text or None}``.

        Args:
            filters: ``status type state target correlation_id q cursor limit``; None: left out.
        """
        given = {name: value for name, value in filters.items() if value is not None}
        return await self._exchange.ask("GET", "/v1/missions", query=given)

    async def mission(self, task_id: str) -> dict[str, Any]:
        """Everything about a mission; under `why`, one sentence."""
        return await self._exchange.ask("GET", f"/v1/missions/{_part(task_id)}")

    async def mission_types(self) -> list[dict[str, Any]]:
        """What live workers know."""
        types: list[dict[str, Any]] = (await self._exchange.ask("GET", "/v1/mission-types"))["mission_types"]
        return types

    async def mission_type(self, name: str, version: int | None = None) -> dict[str, Any]:
        """Schema, states and transitions of a type; None: its newest version."""
        query = {} if version is None else {"version": version}
        return await self._exchange.ask("GET", f"/v1/mission-types/{_part(name)}", query=query)


def configured_urls(settings: Settings | None = None) -> tuple[str, ...]:
    """Base URLs of the foregrounds, as the settings say."""
    settings = settings or Settings()
    return settings.url or (local_url(settings.host, settings.port),)


def _acked(document: Mapping[str, Any]) -> Ack:
    return Ack(**{field.name: document[field.name] for field in fields(Ack)})


def _part(text: str) -> str:
    return quote(text, safe="")
