"""Which Host a request may name: a page that rebinds its own name to 127.0.0.1 must not reach a loopback service."""

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from shared.errors import Problem
from shared.health import is_probe


class HostCheck:
    """Pure ASGI, in front of everything."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str]) -> None:
        """`allowed` without ports; ``*`` for all."""
        self._app = app
        self._allowed = frozenset(host.lower().encode() for host in allowed)
        self._any = b"*" in self._allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through, or answer 421."""
        if not self._any and scope["type"] in {"http", "websocket"}:
            host = _host(scope)
            # probes are asked by address, and tell nothing that a page could use
            if bare(host) not in self._allowed and not is_probe(scope):
                await _refuse(scope, receive, send, host.decode("latin-1"))
                return
        await self._app(scope, receive, send)


def _host(scope: Scope) -> bytes:
    value: bytes
    for name, value in scope["headers"]:
        if name == b"host":
            return value
    return b""


def bare(host: bytes) -> bytes:
    """A Host value without its port."""
    if host.startswith(b"["):
        return host.partition(b"]")[0].lower() + b"]"
    return host.partition(b":")[0].lower()


async def _refuse(scope: Scope, receive: Receive, send: Send, host: str) -> None:
    problem = Problem("bad_host", f"{host!r} is not among DUALLOOP_ALLOWED_HOSTS")
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": problem.title})
        return
    body = problem.body(scope["path"])
    await send({"type": "http.response.start", "status": problem.status, "headers": problem.headers()})
    await send({"type": "http.response.body", "body": body})
