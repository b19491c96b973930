"""One socket: one reader, one writer; when either ends, so does all the rest of it."""

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json
from starlette.types import Message, Receive, Send

from frontend_loop import frames
from frontend_loop.control import Control
from frontend_loop.door import Door
from frontend_loop.feed import Feed, Reading
from frontend_loop.frames import BadFrameError, Frame, Ref
from frontend_loop.outbox import Outbox, Parcel
from frontend_loop.reading import invalid
from frontend_loop.record import whole
from frontend_loop.results import Results
from frontend_loop.session import Watch
from frontend_loop.watching import Watched, Watching
from shared import telemetry
from shared.envelope import Source
from shared.errors import Problem, RedisAwayError, unavailable
from shared.logs import get
from shared.settings import Settings

log = get(__name__)

IN_FLIGHT: Final = 64
"""Frames of one socket that are carried out at the same time; further ones wait in the network."""

CLOSE_S: Final = 5.0
"""How long the last frames may take to leave once the socket is to be closed."""

RESTART: Final = 1012
GOING: Final = "this process is going: connect again and watch"
SLOW: Final = 4408


class _OverError(Exception):
    """The socket has ended: an end of the task group, not an error."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What sockets need of the process."""

    door: Door
    feed: Feed
    results: Results
    control: Control
    settings: Settings


class Connection:
    """Serves one accepted socket until either side ends it."""

    path = frames.INSTANCE
    ops: tuple[str, ...] = frames.OPS
    """What a client may ask for."""

    def __init__(self, parts: Parts, traceparent: str | None) -> None:
        """`traceparent` of the handshake: what is submitted here belongs to that trace."""
        self._parts, self._settings, self._traceparent = parts, parts.settings, traceparent
        self._loop = asyncio.get_running_loop()
        self._outbox: Outbox[Watched] = Outbox(parts.settings.ws_frames, parts.settings.ws_bytes, self._slow)
        self._watching = Watching(parts.feed, self._outbox, self._spawn)
        self._group, self._limit = asyncio.TaskGroup(), asyncio.timeout(None)
        self._under_way: set[asyncio.Task[None]] = set()
        self._free = asyncio.Semaphore(IN_FLIGHT)
        self._draining = False

    async def run(self, receive: Receive, send: Send) -> None:
        """Serve it; nothing of it is left when this returns."""
        try:
            async with self._limit, self._group as group:
                group.create_task(self._write(send), name="socket writer")
                group.create_task(self._read(receive), name="socket reader")
        except* TimeoutError:
            log.info("socket cut", watches=len(self._watching))
        except* (_OverError, OSError):  # OSError: how the server says that the client is gone
            pass
        finally:
            self._watching.forget_all()

    async def drain(self) -> None:
        """Say that this process goes, finish what is under way, close."""
        self._draining = True
        self._outbox.put(Parcel(frames.DRAINING.decode()))
        if self._under_way:
            await asyncio.wait(tuple(self._under_way), timeout=CLOSE_S)
        self._close(RESTART, GOING)

    def cut(self, after_s: float = 0.0) -> None:
        """End it then, whatever is still to be sent."""
        with contextlib.suppress(RuntimeError):  # it ends already
            self._limit.reschedule(self._loop.time() + after_s)

    def tend(self) -> None:
        """Now and then: look after what no message tells."""
        if self._outbox.stuck:
            self._slow()
        self._watching.tend()

    async def _read(self, receive: Receive) -> None:
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                raise _OverError
            if self._draining:
                continue  # never taken, so nothing is promised
            await self._take(message)

    async def _take(self, message: Message) -> None:
        """A message of the client."""
        try:
            frame = frames.read_frame(message.get("text"), self._settings.max_depth, self.ops)
        except BadFrameError as bad:
            self._refuse(bad.ref, bad.problem)
            return
        await self._answer(frame)

    async def _answer(self, frame: Frame) -> None:
        """At once, or beside what is under way."""
        if frame.op == "ping":
            self._send(frames.pong(frame.ref))
        else:
            await self._begin(self._carry_out(frame))

    async def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this beside what is under way; a stop waits for it."""
        try:
            await self._free.acquire()
        except BaseException:
            work.close()  # it was cut before it began
            raise
        if (task := self._spawn(work)) is not None:
            self._under_way.add(task)
            task.add_done_callback(self._done)

    async def _write(self, send: Send) -> None:
        outbox = self._outbox
        while (parcel := await outbox.first()) is not None:
            message = {"type": "websocket.send", "text": parcel.text}
            if parcel.final and (about := parcel.about) is not None:
                with telemetry.push_span(
                    about.traceparent,
                    mission_type=about.type,
                    transport="ws",
                    task_id=about.task_id,
                    correlation_id=about.correlation_id,
                ):
                    await send(message)
            else:
                await send(message)
            outbox.sent(parcel)
        if outbox.end is not None:
            await send({"type": "websocket.close", "code": outbox.end[0], "reason": outbox.end[1]})
        raise _OverError

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
        try:
            return self._group.create_task(work)
        except RuntimeError:  # the socket is about to end: its group takes no more
            work.close()
            return None

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._free.release()

    def _send(self, frame: bytes) -> None:
        self._outbox.put(Parcel(frame.decode()))

    def _refuse(self, ref: Ref, problem: Problem) -> None:
        self._send(frames.error(ref, problem, self.path))

    def _close(self, code: int, reason: str, *, drop: bool = False) -> None:
        if self._outbox.end is None:
            self._outbox.close(code, reason, drop=drop)
            self.cut(CLOSE_S)

    def _slow(self) -> None:
        """Close; the reason is the cursor to resume from, of the mission whose news are first in line."""
        reason: dict[str, Any] = {}
        if (cursor := self._outbox.cursor()) is not None:
            watched, after_seq = cursor
            reason = {"correlation_id": watched.task_id, "after_seq": after_seq}
        log.warning("slow reader", watches=len(self._watching), **reason)
        self._close(SLOW, to_json(reason).decode(), drop=True)
        self._watching.forget_all()

    async def _carry_out(self, frame: Frame) -> None:
        await self._guarded(frame.ref, frame.op, self._do(frame))

    async def _do(self, frame: Frame) -> None:
        match frame.op:
            case "submit":
                await self._submit(frame.ref, frame.fields.get("command"), "ws")
            case "watch":
                await self._watch(frame)
            case "unwatch":
                self._unwatch(frame)
            case _:
                await self._cancel(frame)

    async def _guarded(self, ref: Ref, op: str, work: Awaitable[None]) -> None:
        """Do this, and say why where it cannot be done."""
        try:
            await work
        except Problem as problem:
            self._refuse(ref, problem)
        except RedisAwayError as error:
            self._refuse(ref, unavailable(str(error)))
        except Exception:
            log.exception("unexpected", op=op)
            self._refuse(ref, Problem("internal", "an error of ours, logged; nothing was promised"))

    def _done_for(self, frame: Frame, document: dict[str, Any]) -> None:
        """A submit is always acknowledged, the other ops where they carry a ref."""
        if frame.ref is not None:
            self._send(frames.ack(frame.ref, to_json(document)))

    def _has_room(self) -> None:
        if len(self._watching) >= self._settings.ws_watches:
            detail = f"this socket watches {len(self._watching)} missions already: unwatch some, or open another one"
            raise Problem("too_many_watches", detail, retryable=True)

    async def _submit(self, ref: Ref, command: Any, source: Source) -> None:
        self._has_room()
        watched: Watched | None = None

        def listen(shard: int, task_id: str) -> None:
            nonlocal watched
            if self._watching.find(task_id) is None:  # else an earlier try with its key came by this socket
                watched = self._watching.listen(shard, task_id, Watch(None))

        try:
            ack = await self._parts.door.take(command, source, traceparent=self._traceparent, watch=listen)
        except BaseException:
            if watched is not None:
                self._watching.forget(watched)
            raise
        told = frames.ack(ref, ack.body).decode()
        unheard = ack.replayed or watched is None  # accept registered nobody: what happened since is to be read
        if watched is None:
            if self._watching.find(ack.task_id) is not None:
                self._outbox.put(Parcel(told))
                return
            watched = self._watching.listen(ack.shard, ack.task_id, Watch(None))
        watched.introduce(ack.task_id, ack.type, ack.traceparent)
        self._outbox.put(Parcel(told, watched))
        if unheard:
            with contextlib.suppress(RedisAwayError):  # then it is registered later, as after any loss
                await self._parts.feed.register(watched.shard, [watched.task_id])
            watched.watch.doubt()
        self._watching.tell(watched, watched.watch.ack())
        self._watching.want(watched)

    async def _watch(self, frame: Frame) -> None:
        mission, after_seq = self._parts.results.genuine(frame.mission()), frame.after_seq()
        if self._watching.find(mission.text) is not None:
            self._done_for(frame, {"correlation_id": mission.text})
            return
        self._has_room()
        watched = self._watching.listen(mission.shard, mission.text, Watch(after_seq))

        async def first(reading: Reading) -> None:
            record = reading.record or {}
            if reading.result is None and after_seq > whole(record.get("seq", "0")):
                detail = f"its last event has seq {record.get('seq', 0)}: watch after that one"
                raise invalid([{"pointer": "/after_seq", "detail": detail}])
            root = record.get("root", mission.text)
            traceparent = await self._parts.feed.traceparent(mission) if telemetry.active() else None
            watched.introduce(root, record.get("type", ""), traceparent)
            self._done_for(frame, {"correlation_id": root, "task_id": mission.text, "status": record.get("status")})

        try:
            await self._parts.feed.register(mission.shard, [mission.text])
            await self._watching.look(watched, first)
        except BaseException:
            self._watching.forget(watched)
            raise

    def _unwatch(self, frame: Frame) -> None:
        mission = self._parts.results.genuine(frame.mission())
        if (watched := self._watching.find(mission.text)) is not None:
            self._watching.forget(watched)
        self._done_for(frame, {"correlation_id": mission.text})

    async def _cancel(self, frame: Frame) -> None:
        mission = self._parts.results.genuine(frame.mission())
        taken = await self._parts.control.cancel(mission)
        self._done_for(frame, taken.document())
