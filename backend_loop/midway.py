"""What a handler says while it runs: how far it is, and that what it has so far is to be kept.

A checkpoint is a commit of the runner's, in the middle of a handler. It is made in a task of its own, so that neither
a cut of the handler nor the end of a task in it leaves a commit behind of which nobody knows what became.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from backend_loop.reporting import Progress, progress
from shared.status import ErrorCode

UNWRITABLE: Final = (PydanticSerializationError, ValueError, TypeError, OverflowError)
"""What comes of something that JSON cannot carry."""


class CheckpointError(Exception):
    """The context cannot be kept as it is; let through, it ends the mission with this code."""

    def __init__(self, message: str, code: ErrorCode) -> None:
        """`message` says what to change."""
        super().__init__(message)
        self.code = code


class Cutting(Protocol):
    """What runs the handler; see `Handling`."""

    def interrupt(self) -> None:
        """Cut it."""

    def hold(self) -> float | None:
        """Stop the time-out; seconds that are left of it."""

    def limit(self, seconds: float | None) -> None:
        """Let the time-out go on with so many seconds, or anew."""


class Kept(NamedTuple):
    """What became of a checkpoint: there was something new to keep, and the handler goes on behind it."""

    news: bool
    goes_on: bool


class Midway:
    """One run of a handler, as seen from within.

    Args:
        handling: what runs it.
        keep: makes a context durable, one at a time.
        tell: is told of each progress.
    """

    def __init__(
        self, handling: Cutting, keep: Callable[[bytes], Awaitable[Kept]], tell: Callable[[Progress], None]
    ) -> None:
        """Nothing is said yet.

        `over`: a checkpoint has led the mission elsewhere, so nothing is made of the handler.
        """
        self._handling, self._keep, self._tell = handling, keep, tell
        self._keeping = set[asyncio.Task[None]]()
        self._turn = asyncio.Lock()
        self._failed: BaseException | None = None
        self._ended = self.over = False

    def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Tell how far it is.

        Raises:
            ValueError: see `reporting.progress`.
        """
        said = progress(done, total, message)
        if not self._ended:
            self._tell(said)

    async def checkpoint(self, context: BaseModel) -> None:
        """Keep the context as it is now.

        Raises:
            CheckpointError: it cannot be kept.
            CancelledError: the handler is to end here.
            LostError: the mission is not ours any more.
        """
        if self._ended:
            raise asyncio.CancelledError  # of something that the handler has left behind
        try:
            snapshot = to_json(context)
        except UNWRITABLE as error:
            raise CheckpointError(f"the context cannot be written as JSON: {error}", ErrorCode.PERMANENT) from error
        task = asyncio.get_running_loop().create_task(self._one(snapshot))
        self._keeping.add(task)
        task.add_done_callback(self._done)
        await asyncio.shield(task)
        if self.over:
            raise asyncio.CancelledError

    async def _one(self, snapshot: bytes) -> None:
        async with self._turn:
            if self.over:
                return
            left, kept = self._handling.hold(), None
            try:
                kept = await self._keep(snapshot)
            finally:
                self._handling.limit(None if kept is not None and kept.news else left)
            if not kept.goes_on:
                self.over = True
                self._handling.interrupt()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._keeping.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, CheckpointError):
            self._failed = error

    async def settled(self) -> None:
        """Return when no checkpoint is under way any more: the handler may have been cut in the midst of one.

        Raises:
            LostError: the mission is not ours any more, whatever the handler has made of that.
        """
        self._ended = True
        while self._keeping:
            await asyncio.wait(self._keeping)
        if self._failed is not None:
            raise self._failed

    def drop(self) -> None:
        """Let go of what is under way: nothing more is made of the handler."""
        self._ended = True
        for task in self._keeping:
            task.cancel()
