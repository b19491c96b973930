"""What may go wrong for a client, and how long it bears it."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

PAUSES_S: Final = (0.1, 2.0)
"""First and longest pause before a try that follows a failed one."""


class ClientProblem(Exception):  # noqa: N818  RFC 9457 calls it a problem
    """What the foreground refused. `document` is its problem+json; `status code detail retryable` are parts of it."""

    def __init__(self, document: Mapping[str, Any], retry_after_s: float = 0.0) -> None:
        """From the answer's body and its ``Retry-After``, in seconds."""
        self.document = dict(document)
        self.status = int(document.get("status", 0))
        self.code = str(document.get("code", ""))
        self.detail = str(document.get("detail") or document.get("title") or self.code)
        self.retryable = bool(document.get("retryable"))
        self.retry_after_s = retry_after_s
        super().__init__(self.detail)


class UnreachableError(ConnectionError):
    """No foreground answered. Where `sent` is true, what was asked for may have been done nevertheless."""

    def __init__(self, sentence: str, *, sent: bool) -> None:
        """`sent`: the request had left."""
        super().__init__(sentence)
        self.sent = sent


class Patience:
    """Bears faults that may pass, for so many seconds on end; after each it pauses, longer and longer."""

    def __init__(self, seconds: float) -> None:
        """Nothing has gone wrong yet."""
        self._seconds = seconds
        self.rest()

    def rest(self) -> None:
        """All is well: what went wrong before counts no more."""
        self._since: float | None = None
        self._pause = PAUSES_S[0]

    @asynccontextmanager
    async def bear(self) -> AsyncIterator[None]:
        """Leave the block after a fault that may pass, and a pause.

        Raises:
            ClientProblem, UnreachableError: it will not pass, or has lasted for too long.
        """
        try:
            yield
        except (ClientProblem, UnreachableError) as fault:
            now = asyncio.get_running_loop().time()
            self._since = self._since if self._since is not None else now
            if now - self._since >= self._seconds or (isinstance(fault, ClientProblem) and not fault.retryable):
                raise
            asked = fault.retry_after_s if isinstance(fault, ClientProblem) else 0.0
            await asyncio.sleep(max(asked, random.uniform(self._pause / 2, self._pause)))  # noqa: S311  jitter
            self._pause = min(2 * self._pause, PAUSES_S[1])
