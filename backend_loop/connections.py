"""HTTP as handlers speak it: httpx above, aiohttp for the wire.

Why not httpx's own transport: at each request it looks at every connection that it keeps, by a system call each. With
fifty requests under way that takes seven times the processor's time, and it is the time of the event loop: no urgent
mission gets on meanwhile.
"""

from typing import Final

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

KEPT_S: Final = 4.0
"""How long a connection waits for the next request: less than servers usually do, so that none is closed in its use."""

NOT_SENT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)


class Connections(AiohttpTransport):
    """Any number of connections at a time, so that those that are silent keep nobody waiting.

    Raises httpx.ConnectError where surely nothing was sent, and another httpx.TransportError where it may have been:
    aiohttp's transport says ConnectTimeout of both.
    """

    def __init__(self) -> None:
        """Connected to nothing yet."""
        super().__init__(client=_session, trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send it; the answer's body is read later, or not at all."""
        try:
            return await super().handle_async_request(request)
        except (httpx.TransportError, aiohttp.ClientError) as fault:
            cause = fault.__cause__ if isinstance(fault, httpx.TransportError) else fault
            why = str(cause) or type(cause).__name__
            if isinstance(cause, NOT_SENT):
                raise httpx.ConnectError(why, request=request) from fault
            if isinstance(cause, aiohttp.ServerTimeoutError):
                raise httpx.ReadTimeout(why, request=request) from fault
            raise httpx.RemoteProtocolError(why, request=request) from fault


def _session() -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_S, ssl=httpx.create_ssl_context(trust_env=False))
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
