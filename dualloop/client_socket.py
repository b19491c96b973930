"""The client's side of the socket: one connection that watches one mission."""

from collections.abc import AsyncGenerator
from typing import Any, Final

from pydantic_core import from_json, to_json
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.typing import Subprotocol

from dualloop.client_faults import ClientProblem, UnreachableError

PROTOCOL: Final = Subprotocol("dualloop.v1.json")
OPEN_S: Final = 10.0
LARGEST: Final = 64 * 2**20
"""Bytes of a frame; a result may be far larger than a command."""

FINAL: Final = {1009: (413, "too_large"), 4401: (401, "no_key"), 4403: (403, "forbidden")}
"""Close codes after which a second try is of no use, with status and code of the problem."""


async def frames(url: str, correlation_id: str, after_seq: int) -> AsyncGenerator[dict[str, Any], None]:
    """Frames about a mission until the connection ends: `event`, `progress` and `result`.

    Args:
        url: base URL of a foreground.
        correlation_id: of the mission.
        after_seq: the last event that is known already.

    Raises:
        ClientProblem: the foreground refuses.
        UnreachableError: the connection cannot be made, or has ended.
    """
    address = f"ws{url.removeprefix('http')}/v1/ws"
    try:
        async with connect(
            address, subprotocols=[PROTOCOL], proxy=None, open_timeout=OPEN_S, max_size=LARGEST
        ) as socket:
            watch = {"op": "watch", "ref": "watch", "correlation_id": correlation_id, "after_seq": after_seq}
            await socket.send(to_json(watch).decode())
            async for message in socket:
                frame = from_json(message)
                if frame.get("op") == "error":
                    raise ClientProblem(frame["problem"])
                if frame.get("op") in {"event", "progress", "result"}:
                    yield frame
        raise UnreachableError(f"The socket of {url} was closed.", sent=True)
    except ConnectionClosed as error:
        code = error.rcvd.code if error.rcvd is not None else 0
        if code in FINAL:
            status, word = FINAL[code]
            raise _refused(status, word, f"the foreground at {url} closed the socket: {error}") from error
        raise UnreachableError(f"The socket of {url} was lost: {error}.", sent=True) from error
    except InvalidStatus as error:
        status = error.response.status_code
        refused = _refused(status, "refused", f"the foreground at {url} opens no socket (HTTP {status})")
        raise _told(error.response.body) or refused from error
    except (InvalidHandshake, OSError, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise UnreachableError(f"No foreground answers at {url} ({why}).", sent=False) from error


def _told(body: bytes | bytearray) -> ClientProblem | None:
    """The problem that a refused handshake came with, if it is one."""
    try:
        document = from_json(body)
    except ValueError:
        return None
    return ClientProblem(document) if isinstance(document, dict) and "code" in document else None


def _refused(status: int, code: str, detail: str) -> ClientProblem:
    document = {"status": status, "code": code, "title": detail, "detail": detail, "retryable": status in {429, 503}}
    return ClientProblem(document)
