"""A client of the socket that keeps all it was told, and says whether the promises about order were kept."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin, Subprotocol

SUBPROTOCOL = Subprotocol("dualloop.v1.json")
WITHIN_S = 60.0  # generous: it matters only where a test fails
Frame = dict[str, Any]


class Talk:
    """One socket; `frames` are all that came, in order."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.frames: list[Frame] = []
        self._refs = 0

    async def say(self, op: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"op": op, **fields}))

    async def raw(self, message: str | bytes) -> None:
        await self.socket.send(message)

    async def next(self, within: float = WITHIN_S) -> Frame:
        """The next frame; raises ConnectionClosed where there is none."""
        async with asyncio.timeout(within):
            frame: Frame = json.loads(await self.socket.recv())
        self.frames.append(frame)
        return frame

    async def until(self, condition: Callable[[Frame], bool], within: float = WITHIN_S) -> Frame:
        """Read on to the first frame like this."""
        async with asyncio.timeout(within):
            while not condition(frame := await self.next(within)):
                pass
        return frame

    async def submit(self, type: str, payload: Frame | None = None, **options: Any) -> str:  # noqa: A002  contract's word
        """Submit and wait for the ack; the correlation_id."""
        self._refs += 1
        ref = f"s{self._refs}"
        await self.say("submit", ref=ref, command={"type": type, "payload": payload or {}, **options})
        frame = await self.until(lambda frame: frame.get("ref") == ref)
        assert frame["op"] == "ack", frame
        return str(frame["correlation_id"])

    async def result(self, correlation_id: str, within: float = WITHIN_S) -> Frame:
        """Read on to the result, unless it has come already."""
        for frame in self.frames:
            if frame["op"] == "result" and frame["task_id"] == correlation_id:
                return frame
        return await self.until(lambda frame: frame["op"] == "result" and frame["task_id"] == correlation_id, within)

    async def rest(self, within: float = WITHIN_S) -> ConnectionClosed:
        """Read to the end of the socket; how it ended."""
        try:
            async with asyncio.timeout(within):
                while True:
                    await self.next(within)
        except ConnectionClosed as closed:
            return closed

    def about(self, correlation_id: str) -> list[Frame]:
        """Acks, events and results of this mission, as they came."""
        return [frame for frame in self.frames if correlation_id in {frame.get("correlation_id"), frame.get("task_id")}]

    def seen(self, correlation_id: str) -> int:
        """Seq of its last event that came; what a client resumes from."""
        return max((frame["seq"] for frame in self.about(correlation_id) if frame["op"] == "event"), default=0)

    def check(self, correlation_id: str, after_seq: int = 0, *, ended: bool = True) -> list[Frame]:
        """Its events, without gap or double from `after_seq` on, then (ended) one result with the last one's seq."""
        told = [frame for frame in self.about(correlation_id) if frame["op"] in {"event", "result"}]
        events = [frame for frame in told if frame["op"] == "event"]
        last = after_seq + len(events)
        assert [frame["seq"] for frame in events] == list(range(after_seq + 1, last + 1)), told
        if ended:
            assert [frame["op"] for frame in told] == ["event"] * len(events) + ["result"], told
            assert told[-1]["seq"] == last
            assert told[-1]["status"] == events[-1]["status"] if events else True
        return events


@contextlib.asynccontextmanager
async def talking(url: str, **options: Any) -> AsyncIterator[Talk]:
    """Open a socket; `options` of ``websockets.connect``."""
    given: dict[str, Any] = {"subprotocols": [SUBPROTOCOL], "proxy": None, "open_timeout": WITHIN_S, "close_timeout": 2}
    async with connect(url, **(given | options)) as socket:
        yield Talk(socket)


def page(origin: str) -> Origin:
    """The Origin header of a page."""
    return Origin(origin)
