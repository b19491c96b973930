"""Missions that two workers died with: each runs alone in a child process; who kills that one too is buried (P8, B49).

Until then nothing of the mission but its record's words is looked at here: neither payload nor context is read.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Final
from uuid import uuid4

from backend_loop import document, entries, giving_up
from backend_loop.course import Course, End, Reaction, Transition, failure
from backend_loop.mission import MissionType
from backend_loop.outcomes import Cancel, Deadline
from backend_loop.rows import rows_of
from backend_loop.solo import CUT_S, READY, Facts, packed
from backend_loop.solo_verbs import SoloVerbs
from backend_loop.store import Claimed, LostError, Store, prepare
from backend_loop.suspicion import DEATHS, Losses, is_convicted
from shared.errors import RedisAwayError
from shared.logs import get
from shared.redis import Link
from shared.settings import Settings
from shared.status import ErrorCode, Status

log = get(__name__)

OWNER: Final = "solo-"
"""What the id of an owner begins with that carries nothing else; takeover knows it by that."""

START_S: Final = 60.0
"""How long a child may take to be ready."""

AGAIN_S: Final = 1.0
"""Pause before a mission is handed back whose child could not be begun."""


class Suspects:
    """Makes and bounds the children of a worker that run suspects.

    Args:
        settings, redis_url, link: of the worker.
    """

    def __init__(self, settings: Settings, redis_url: str, link: Link) -> None:
        """None runs yet."""
        self.settings, self.redis_url, self._link = settings, redis_url, link
        self._places = asyncio.Semaphore(settings.processes)

    def verbs(self, shard: int) -> SoloVerbs:
        """What is asked of Redis for a suspect."""
        return SoloVerbs(self._link, shard, self.settings)

    @contextlib.asynccontextmanager
    async def place(self, hurry: asyncio.Event) -> AsyncIterator[None]:
        """Wait for a place, or until this hurries: what is to be cancelled or handed on does not wait for others."""
        waiting = asyncio.ensure_future(self._places.acquire())
        hurried = asyncio.ensure_future(hurry.wait())
        try:
            await asyncio.wait({waiting, hurried}, return_when=asyncio.FIRST_COMPLETED)
            yield
        finally:
            hurried.cancel()
            if not waiting.cancel():
                self._places.release()


class Suspect:
    """One suspect under way: to the shard's loop what a `Runner` is.

    Args:
        claimed: what claim answered.
        definition: its type.
        store: of its shard.
        suspects: of the worker.
    """

    def __init__(self, claimed: Claimed, definition: MissionType, store: Store, suspects: Suspects) -> None:
        """Nothing runs yet: see `run`."""
        self.claimed, self._definition, self._store, self._suspects = claimed, definition, store, suspects
        self._verbs = suspects.verbs(store.shard)
        self._hurry = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._draining = False
        self.dropped = self.committing = False

    @property
    def draining(self) -> bool:
        """Whether it is to be handed on at its next commit."""
        return self._draining

    @draining.setter
    def draining(self, value: bool) -> None:
        if value and not self._draining:
            self._draining = True
            self._hurry.set()
            self._send(signal.SIGTERM)

    def drop(self) -> None:
        """Nothing more is made of it: its task is about to be cancelled."""
        self.dropped = True

    async def signal(self) -> None:
        """Its child hears by itself what is posted; one that has none yet is to get it now."""
        self._hurry.set()

    async def run(self) -> None:
        """Run it in a child, and judge it by how that ends.

        Raises:
            LostError: it is not ours any more.
        """
        async with self._suspects.place(self._hurry):
            status = None if self._draining else await self._child()
            await self._judge(status)

    async def _child(self) -> int | None:
        """The exit status of a child that has run it, negative for the signal it died of; None: it never began."""
        try:
            # in the main thread: the kernel ends the child with the thread that started it
            self._process = process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "backend_loop.solo", str(os.getpid())),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            log.warning("a suspect's process could not be started", task_id=self.claimed.task_id, error=str(error))
            return None
        try:
            return await self._follow(process) if await self._ready(process) else None
        finally:
            await self._ended(process)

    async def _ready(self, process: asyncio.subprocess.Process) -> bool:
        """Whether the child could run the mission; until then it is under our own lease, which is renewed."""
        mission, suspects, pipe = self._definition.mission, self._suspects, process.stdin
        facts = (self._store.shard, mission.__module__, mission.__qualname__, suspects.settings, suspects.redis_url)
        if self._draining or pipe is None or process.stdout is None:
            return False
        pipe.write(Facts(*facts).pack())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_S):
                return await process.stdout.readline() == READY
        return False

    async def _follow(self, process: asyncio.subprocess.Process) -> int:
        claimed, solo = self.claimed, OWNER + uuid4().hex
        if not await self._verbs.adopt(claimed, solo):
            raise LostError("FENCED")
        self.claimed = claimed._replace(owner=solo)
        log.warning("suspect", task_id=claimed.task_id, deaths=claimed.deaths, child=process.pid, owner=solo)
        await process.communicate(packed(self.claimed))
        return await process.wait()

    async def _ended(self, process: asyncio.subprocess.Process) -> None:
        """Also where we are cancelled: the child is told, and killed if it does not heed."""
        self._send(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CUT_S / 2):
                await process.wait()
        self._send(signal.SIGKILL)
        await process.wait()

    def _send(self, signum: int) -> None:
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            if signum == signal.SIGKILL:
                os.killpg(self._process.pid, signum)  # what it has started too
            elif self._process.returncode is None:
                self._process.send_signal(signum)

    async def _judge(self, status: int | None) -> None:
        claimed = self.claimed
        held = [(claimed.task_id, claimed.fence)]
        if status is None and not self._draining:
            if await self._is_over():
                await self._bury("could never be started, until its end was wanted")
                return
            await asyncio.sleep(AGAIN_S)
        if status is None or (status != 0 and self._draining):
            await self._store.release(claimed.owner, held)  # nobody knows whether it died of our own signal
        elif status != 0:
            await self._bury(_fate(status))
        if claimed.owner.startswith(OWNER):
            with contextlib.suppress(RedisAwayError):
                await self._verbs.resign(claimed.owner)

    async def _is_over(self) -> bool:
        """Whether a cancel or its deadline has come, which nobody but its child would react to."""
        unread = await self._store.inbox(self.claimed.task_id)
        return any(isinstance(entries.read(entry), Cancel | Deadline) for entry in unread)

    async def _bury(self, fate: str) -> None:
        """The end that it has brought about: a dead letter, unless the child had committed meanwhile."""
        claimed, consumed = self.claimed, len(self.claimed.unread)
        message = f"it was run alone, {_since(claimed.losses)}, and its process {fate}"
        try:
            # asked each time: what the child committed under our fence before its handler got on is no reprieve
            while is_convicted(claimed.losses, (now := await self._verbs.standing(claimed.task_id)).losses):
                reaction, text = _buried(claimed._replace(document=now.document), self._definition, message)
                rows = rows_of(reaction, claimed, None, 0)
                commit = prepare(
                    claimed, reaction, rev=now.rev, consumed=consumed, move="bury", document=text, rows=rows
                )
                answer = await self._store.commit(commit)
                if answer.word != "signalled":
                    log.error("quarantined", task_id=claimed.task_id, type=claimed.type, state=claimed.state, fate=fate)
                    return
                consumed = len(answer.entries)
            why = "its handler had answered, or it was taken over"
        except LostError as lost:
            why = str(lost)
        # it got further than we know of; if it is leased to the dead child still, the takeover counts
        log.warning("suspect's end left to takeover", task_id=claimed.task_id, fate=fate, why=why)


def _buried(claimed: Claimed, definition: MissionType, message: str) -> tuple[Reaction, bytes]:
    """The end, with what it leaves behind, and its document; the context stays the bytes that it was."""
    course, text = Course(claimed.state), b""
    with contextlib.suppress(ValueError):
        kept = document.read(claimed.document, claimed.state, claimed.version, claimed.run)
        course = kept.course
        text = document.write(_failed(course), kept.context, kept.version, kept.run)
    stands = giving_up.course_of(claimed, definition)._replace(begun=True)
    left = giving_up.behind(stands, definition)
    error = {
        "code": ErrorCode.WORKER_LOST,
        "message": message,
        "state": claimed.state,
        "attempts": course.attempt,
        **left,
    }
    said = failure(ErrorCode.WORKER_LOST, message)
    transition = Transition(Status.FAILED, Status.FAILED, said | {"not_undone": left["not_undone"]} if left else said)
    return Reaction(_failed(course), (transition,), End(error=error), tell=giving_up.told(stands)), text


def _failed(course: Course) -> Course:
    ended = course._replace(state=Status.FAILED, status=Status.FAILED, failed_in=course.state)
    return ended._replace(waiting_for=None, awaited=None, wake_at=None, transitions=course.transitions + 1)


def _since(losses: Losses) -> str:
    if losses.deaths >= DEATHS:
        return f"after {losses.deaths} workers had died with it"
    return "since workers died with it again and again, though it got on a little each time"


def _fate(status: int) -> str:
    if status >= 0:
        return f"exited with {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"
