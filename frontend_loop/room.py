"""How many bytes of recordings one process holds at a time: each is held whole until Redis has it."""

import contextlib
from collections.abc import Iterator

from starlette.types import Message, Receive

from shared.errors import Problem


class Room:
    """Counts what has come, and not who is to send it: whoever sends slowly keeps nobody else from being heard."""

    def __init__(self, most: int) -> None:
        """Nothing is held; `most` bytes may be."""
        self._left = most

    @contextlib.contextmanager
    def of(self, receive: Receive) -> Iterator[Receive]:
        """To receive one body by; what came of it is held until this is left.

        Raises:
            Problem: from who receives, 429: there is no room for it now.
        """
        held = 0

        async def counted() -> Message:
            nonlocal held
            message = await receive()
            size = len(message.get("body", b""))
            if size > self._left:
                detail = "too much is being said to this process already: say it a little later"
                raise Problem("too_many_voices", detail, retryable=True, retry_after=1)
            self._left -= size
            held += size
            return message

        try:
            yield counted
        finally:
            self._left += held
