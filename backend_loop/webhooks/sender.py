"""Sends one webhook once: the name resolved once, the address judged, and exactly that address connected to.

A name that answers otherwise the second time (DNS rebinding) gains nothing, since there is no second time. Redirects
are not followed, no proxy and no cookie comes between, and each try has a connection of its own: one that was made for
another name is never used.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cached_property, partial
from http import HTTPStatus
from typing import Final

import httpx
from standardwebhooks import Webhook

from backend_loop.alias import alias
from backend_loop.services import ServiceRefused, ServiceUnavailable, is_for_good, retry_after_s, silence
from backend_loop.step_threads import Threads
from backend_loop.webhooks.addresses import Address, Allowed, address_of, refused
from shared.logs import get
from shared.settings import Settings

log = get(__name__)

LONGEST_AFTER_S: Final = 86_400.0
"""A receiver that asks for more patience is asked again after a day."""

CONNECT_S: Final = 5.0
"""For each address of a name."""

ADDRESSES: Final = 4
"""Of a name, that are tried."""

LOOKUPS: Final = 20
"""Names that are resolved at once, in threads of their own: one that gets no answer keeps nobody else waiting, nor the
process from ending."""

READ_BYTES: Final = 64 * 1024
READ_S: Final = 1.0
"""What is read of an answer's body, so that the receiver is not cut off in an ordinary one; nobody looks at it."""


class Webhooks:
    """Sends webhooks.

    Args:
        secrets: to sign with, in the order of the signatures: of a rotation, the new one and the old one.
        allow: hosts, addresses and CIDRs that are reached although others would be refused there.
    """

    def __init__(self, secrets: Iterable[str], allow: Iterable[str]) -> None:
        """Connected to nothing."""
        self._signers = tuple(Webhook(secret) for secret in secrets)
        self._allowed = Allowed.read(allow)
        self._lookups = Threads(LOOKUPS)

    @classmethod
    def of(cls, settings: Settings) -> "Webhooks":
        """As configured."""
        return cls(settings.webhook_secrets, settings.webhook_allow)

    async def send(self, url: str, body: str, *, key: str, within_s: float) -> int:
        """Send it; the status of success that was answered.

        Args:
            url: checked: ``http`` or ``https``, without credentials.
            body: JSON, byte for byte the same for each try.
            key: the same for each try: by its alias the receiver knows what it has had.
            within_s: for all of it.

        Raises:
            ServiceUnavailable: no answer, or one by which it may be tried again; it may have arrived.
            ServiceRefused: the receiver will not have it (``gone``: nor any other), or it must not be sent there.
        """
        if not self._signers:
            raise ServiceRefused("no webhook is sent unsigned: set DUALLOOP_WEBHOOK_SECRET", "no_secret")
        if within_s <= 0:
            raise ServiceUnavailable("no time is left to send it")
        target, deadline = httpx.URL(url), asyncio.get_running_loop().time() + within_s
        host, headers = target.netloc.decode("ascii"), self._headers(body, alias(key))
        try:
            async with asyncio.timeout_at(deadline):
                addresses = await self._addresses(target)
            status, retry_after = await self._post(target, addresses, {"host": host, **headers}, body, deadline)
        except (httpx.TransportError, TimeoutError) as fault:
            raise ServiceUnavailable(f"{host} gave no answer: {silence(fault)}") from fault
        _judge(host, status, retry_after)
        return status

    @cached_property
    def _ssl(self) -> ssl.SSLContext:
        """Whom to trust; ``SSL_CERT_FILE`` names authorities of one's own."""
        return httpx.create_ssl_context()

    def _headers(self, body: str, identity: str) -> dict[str, str]:
        now = datetime.now(UTC)
        return {
            "user-agent": "dualloop",
            "content-type": "application/json",
            "webhook-id": identity,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(signer.sign(identity, now, body) for signer in self._signers),
        }

    async def _addresses(self, target: httpx.URL) -> list[Address]:
        """Those that it may be sent to.

        Raises:
            ServiceRefused: there is none among them.
        """
        host, port = _name(target), target.port or (443 if target.scheme == "https" else 80)
        ask = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        asked = await self._lookups.begin("webhook-lookup", ask)
        await asyncio.wait({asked})
        found, fault = asked.result()
        if found is None:
            raise ServiceUnavailable(f"{host} is no name that leads anywhere now: {fault}") from fault
        addresses = list(dict.fromkeys(address_of(str(where[0])) for *_, where in found))
        if self._allowed.has_host(host):
            return addresses[:ADDRESSES]
        why = {address: refused(address, self._allowed) for address in addresses}
        fine = [address for address, word in why.items() if word is None]
        if not fine:
            log.warning("webhook refused", host=host, addresses=[str(address) for address in addresses])
            word = next((word for word in why.values() if word), "no")
            raise ServiceRefused(f"{host} leads to {word} address, and is not in DUALLOOP_WEBHOOK_ALLOW", "forbidden")
        return fine[:ADDRESSES]

    async def _post(
        self, target: httpx.URL, addresses: Iterable[Address], headers: dict[str, str], body: str, deadline: float
    ) -> tuple[int, str | None]:
        """Status and ``Retry-After`` of the first address that can be connected to."""
        fault: httpx.TransportError = httpx.ConnectError("it has no address")
        times = httpx.Timeout(None, connect=CONNECT_S).as_dict()
        for address in addresses:
            request = httpx.Request(
                "POST",
                target.copy_with(host=str(address), fragment=None),
                headers=headers,
                content=body.encode(),
                extensions={"timeout": times, "sni_hostname": _name(target)},  # whose certificate it is to be
            )
            async with httpx.AsyncHTTPTransport(verify=self._ssl) as transport:
                try:
                    async with asyncio.timeout_at(deadline):
                        answer = await transport.handle_async_request(request)
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                    fault = error  # surely not sent: the next one may be there
                    continue
                await _read(answer)
                return answer.status_code, answer.headers.get("retry-after")
        raise fault


def _name(target: httpx.URL) -> str:
    """As resolvers and certificates have it."""
    return target.raw_host.decode("ascii").rstrip(".")


async def _read(answer: httpx.Response) -> None:
    """Some of the body, whatever comes of it: the status has been said."""
    left = READ_BYTES
    try:
        with contextlib.suppress(httpx.TransportError, TimeoutError):
            async with asyncio.timeout(READ_S):
                async for piece in answer.aiter_raw():
                    left -= len(piece)
                    if left <= 0:
                        return
    finally:
        await answer.aclose()


def _judge(host: str, status: int, retry_after: str | None) -> None:
    """What a status means.

    Raises:
        ServiceUnavailable, ServiceRefused: it is none of success.
    """
    if 200 <= status < 300:
        return
    if status == HTTPStatus.GONE:
        raise ServiceRefused(f"{host} answered 410: it wants no more of these", "gone")
    if is_for_good(status):
        raise ServiceRefused(f"{host} answered {status}", str(status))
    where = ", and no webhook is sent on to where that leads" if 300 <= status < 400 else ""
    raise ServiceUnavailable(f"{host} answered {status}{where}", min(retry_after_s(retry_after), LONGEST_AFTER_S))
