"""How a handler outside of the event loop reaches its run there: may it go on, how far is it, what is to be kept."""

import asyncio
import threading
from concurrent.futures import CancelledError, Future
from typing import Any, Final

from pydantic import BaseModel

from backend_loop.midway import CheckpointError
from backend_loop.reporting import Progress
from backend_loop.step_frames import Frame
from backend_loop.step_tools import REFUSALS, CutError, refused
from backend_loop.store import LostError
from backend_loop.toolbox import Toolbox
from shared.status import ErrorCode

UNKEPT: Final = "unkept"
"""The word where a context cannot be kept."""

GATHERED_S: Final = 0.05
"""What a handler says of its progress is handed over so often at most: it may say it for each of a million items."""


class ThreadLine:
    """From a thread of the worker's own. Made in the event loop.

    Args:
        tools: of the run.
    """

    def __init__(self, tools: Toolbox[Any, Any]) -> None:
        """Nothing is said yet."""
        self._tools, self._loop = tools, asyncio.get_running_loop()
        self._cut = threading.Event()
        self._waiting = set[Future[None]]()
        self._saying = threading.Lock()
        self._said: Progress | None = None
        self._timer: asyncio.TimerHandle | None = None

    def check(self) -> None:
        """As `Line` says."""
        if self._cut.is_set():
            raise CutError
        self._tools.check()

    def progress(self, said: Progress) -> None:
        """As `Line` says."""
        with self._saying:
            gathered, self._said = self._said is not None, said
        if not gathered:
            self._loop.call_soon_threadsafe(self._gather)

    def checkpoint(self, context: BaseModel) -> None:
        """As `Line` says."""
        if self._cut.is_set():
            raise CutError
        waiting = asyncio.run_coroutine_threadsafe(self._keep(context.model_copy(deep=True)), self._loop)
        self._waiting.add(waiting)
        if self._cut.is_set():  # meanwhile: whoever cuts sees only what waits by then
            waiting.cancel()
        try:
            waiting.result()
        except (CancelledError, LostError) as error:
            self._cut.set()
            raise CutError from error
        finally:
            self._waiting.discard(waiting)

    @property
    def is_cut(self) -> bool:
        """Whether `cut` was called."""
        return self._cut.is_set()

    def cut(self) -> None:
        """The next question is answered by CutError, and so is one that waits for its answer."""
        self._cut.set()
        for waiting in tuple(self._waiting):
            waiting.cancel()

    def tell(self) -> None:
        """Hand over what was said last; in the event loop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with self._saying:
            said, self._said = self._said, None
        if said is not None:
            self._tools.progress(*said)

    def _gather(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(GATHERED_S, self.tell)

    async def _keep(self, context: BaseModel) -> None:
        self.tell()
        self._tools.context = context
        await self._tools.keep()


class ChildLine:
    """From a child process: its worker's end, which answers frames. It lives in the event loop.

    Args:
        tools: of the run.
    """

    def __init__(self, tools: Toolbox[Any, Any]) -> None:
        """Nothing is asked yet."""
        self._tools = tools
        self._cut = False
        self._waiting: asyncio.Future[None] | None = None

    async def answer(self, frame: Frame) -> Frame | None:
        """What is answered to a frame of a handler that goes on; None: nothing."""
        if "progress" in frame:
            self.heard(frame)
        if "checkpoint" in frame:
            return await self._kept(frame["checkpoint"])
        if "check" in frame:
            return {"go": self._verdict()}
        return None

    def heard(self, frame: Frame) -> None:
        """What it says of its progress, if it does."""
        if "progress" in frame:
            self._tools.progress(*frame["progress"])

    def cut(self) -> None:
        """It may not go on; nor does it wait for a checkpoint any more."""
        self._cut = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _verdict(self) -> str:
        if self._cut:
            return "cut"
        try:
            self._tools.check()
        except tuple(REFUSALS.values()) as refusal:
            return refused(refusal)
        return ""

    async def _kept(self, content: Any) -> Frame:
        if self._cut:
            return {"go": "cut"}
        try:
            self._tools.context = type(self._tools.context).model_validate(content)
        except Exception as error:  # noqa: BLE001  an author's validator may raise anything
            why = f"the context does not come back from JSON: {error}"
            return {"go": UNKEPT, "why": why, "code": ErrorCode.PERMANENT}
        waiting = self._waiting = asyncio.ensure_future(self._tools.keep())
        await asyncio.wait({waiting})
        self._waiting = None
        if waiting.cancelled():
            return {"go": "cut"}
        failed = waiting.exception()
        if isinstance(failed, CheckpointError):
            return {"go": UNKEPT, "why": str(failed), "code": failed.code}
        if isinstance(failed, LostError):
            return {"go": "cut"}  # the runner knows it
        if failed is not None:
            raise failed
        return {"go": ""}
