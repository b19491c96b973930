"""Devices behind an HTTP bridge, such as the simulated home."""

import asyncio
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from backend_loop.connections import Connections
from backend_loop.devices.protocol import (
    ActUnknown,
    Change,
    Command,
    DeviceRefused,
    DeviceUnreachable,
    OldFence,
    Reading,
    UnknownEntity,
    numeric,
)
from backend_loop.services import TOLD, silence
from shared.clock import now_ms, parse_rfc3339

NOT_NOW: Final = frozenset({HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""The bridge says that nothing was done, and that it may be asked again."""


CONNECT: Final = 0.9
"""Share of the time there is that connecting may take."""


class _Change(BaseModel):
    by: str
    version: str
    at: str


class _Clock(BaseModel):
    arrived_at: str
    answered_at: str


class _Answer(BaseModel):
    """What the bridge says of a device; fields it has besides are its own.

    ``clock`` is the bridge's when the question came and when the answer left; without it the bridge is taken to have
    our time.
    """

    model_config = ConfigDict(extra="ignore")

    value: dict[str, Any]
    version: str
    observed_at: str
    changes: dict[str, _Change] = {}
    clock: _Clock | None = None
    limits: Any = None

    def reading(self, asked_at: int, answered_at: int) -> Reading:
        """With all times on our own clock."""
        ahead = 0
        if self.clock is not None:
            theirs = parse_rfc3339(self.clock.arrived_at), parse_rfc3339(self.clock.answered_at)
            ahead = ahead_ms(theirs, (asked_at, answered_at))
        changes = {
            name: Change(by=change.by, version=change.version, at=parse_rfc3339(change.at) - ahead)
            for name, change in self.changes.items()
        }
        observed_at = parse_rfc3339(self.observed_at) - ahead
        return Reading(
            value=self.value,
            version=self.version,
            observed_at=observed_at,
            source="http",
            changes=changes,
            limits=numeric(self.limits) if isinstance(self.limits, Mapping) else {},
        )


def ahead_ms(theirs: tuple[int, int], ours: tuple[int, int]) -> int:
    """How far a clock is ahead of ours, epoch milliseconds of a question and its answer on both.

    It is known no better than the ways there and back took; of what is possible, the nearest to 0 is taken. So clocks
    that agree are never corrected, and a device read for a question never seems to have been read before it.
    """
    least, most = theirs[1] - ours[1], theirs[0] - ours[0]
    return min(max(0, least), most)


def http_client() -> httpx.AsyncClient:
    """A client for bridges: no proxy comes between, and silent devices cannot use up its connections."""
    return httpx.AsyncClient(trust_env=False, transport=Connections())


class HttpDevice:
    """A `Device` for every entity of one bridge.

    Args:
        base_url: of the bridge.
        client: shared with other users; closing it is its owner's business.
    """

    def __init__(self, base_url: str, client: httpx.AsyncClient) -> None:
        """Connect to nothing yet."""
        self._base = base_url.rstrip("/")
        self._client = client

    async def observe(self, entity: str, *, deadline: float, traceparent: str | None = None) -> Reading:
        """See `Device.observe`."""
        asked_at = now_ms()
        try:
            answer = await self._send("GET", self._url(entity), deadline, traceparent)
        except (httpx.TransportError, TimeoutError) as fault:
            raise DeviceUnreachable(f"{entity} gave no answer: {silence(fault)}") from fault
        if answer.is_success:
            try:
                return _Answer.model_validate_json(answer.content).reading(asked_at, now_ms())
            except (ValidationError, ValueError) as fault:
                raise DeviceUnreachable(f"{entity} gave an answer that is no reading") from fault
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise UnknownEntity(entity)
        if answer.is_client_error and answer.status_code not in NOT_NOW:
            raise DeviceRefused(f"{entity} does not show itself: {_detail(answer)}")
        raise DeviceUnreachable(f"{entity} cannot be reached: {_detail(answer)}")

    async def act(
        self, command: Command, *, key: str, fence: int, deadline: float, traceparent: str | None = None
    ) -> None:
        """See `Device.act`."""
        entity = command.entity
        body = {"action": command.action, "value": command.value, "key": key, "fence": fence}
        try:
            answer = await self._send("POST", f"{self._url(entity)}/act", deadline, traceparent, body)
        except httpx.ConnectError as fault:
            raise DeviceUnreachable(f"{entity} was not told: {silence(fault)}") from fault
        except (httpx.TransportError, TimeoutError) as fault:
            raise ActUnknown(f"{entity} was told and did not answer: {silence(fault)}") from fault
        if not answer.is_success:
            raise _act_fault(entity, answer)

    async def _send(
        self, method: str, url: str, deadline: float, traceparent: str | None, body: Any = None
    ) -> httpx.Response:
        left = deadline - time.monotonic()
        if left <= 0:
            raise DeviceUnreachable("no time is left to ask the device")
        headers = {} if traceparent is None else {"traceparent": traceparent}
        timeout = httpx.Timeout(left, connect=CONNECT * left)  # first, so that it is known that nothing was sent
        async with asyncio.timeout(left):  # the client counts each phase by itself
            return await self._client.request(method, url, json=body, headers=headers, timeout=timeout)

    def _url(self, entity: str) -> str:
        return f"{self._base}/devices/{quote(entity, safe='')}"


def _act_fault(entity: str, answer: httpx.Response) -> Exception:
    """A server error that is not `NOT_NOW` may have come after the effect."""
    status, detail = answer.status_code, _detail(answer)
    if status == HTTPStatus.NOT_FOUND:
        return UnknownEntity(entity)
    if status == HTTPStatus.CONFLICT:
        return OldFence(f"{entity} has been taken over: {detail}")
    if status in NOT_NOW:
        return DeviceUnreachable(f"{entity} cannot be reached: {detail}")
    if answer.is_client_error and status != HTTPStatus.REQUEST_TIMEOUT:
        return DeviceRefused(f"{entity} refused: {detail}")
    return ActUnknown(f"{entity} was told, and what came of it is unknown: {detail}")


def _detail(answer: httpx.Response) -> str:
    try:
        document = from_json(answer.content)
    except ValueError:  # too deep, half a surrogate, no UTF-8
        document = None
    detail = document.get("detail") if isinstance(document, Mapping) else None
    return detail[:TOLD] if isinstance(detail, str) else f"HTTP {answer.status_code}"
