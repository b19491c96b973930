"""Group commit: calls of one script that are ready together leave in one flush, at most two flushes under way.

With one flight Redis and Python take turns to idle; a second one, once enough waits for it, keeps both busy.
"""

import asyncio
from collections import deque
from functools import partial
from typing import Any, Final

from shared.redis import Link, ReplyError
from shared.scripts import SCRIPTS

MOST: Final = 25
"""Items that leave together; P4 allows 50, but with fewer Redis and Python overlap better: a sixth more a second."""

Arg = str | bytes | int


_Waiting = tuple[tuple[Arg, ...], tuple[Arg, ...], asyncio.Future[Any]]
"""Head, item, answer: a plain tuple, since one is made for every commit and accept."""


class Flights:
    """Batches the items of one verb on one shard. The script answers epoch ms, then one answer per item.

    Args:
        link: where to.
        verb: the script.
        prefix: of the shard.
        second_from: items that must wait before a second flight leaves.
        stamped: each answer comes with the script's epoch ms, as ``(ms, answer)``.
    """

    def __init__(self, link: Link, verb: str, prefix: str, *, second_from: int, stamped: bool = False) -> None:
        """Nothing flies yet."""
        self._stamped = stamped
        self._link, self._script, self._prefix, self._second_from = link, SCRIPTS[verb], prefix, second_from
        self._waiting: deque[_Waiting] = deque()
        self._flying = 0
        self._due = False
        self.now_ms = 0  # Redis' clock at the last landing

    def add(self, head: tuple[Arg, ...], item: tuple[Arg, ...]) -> asyncio.Future[Any]:
        """Queue one item; `head` goes in front of a flush, so items with another head wait for the next one.

        Raises, in the future: what `Link.call` raises; the item's own answer else.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._waiting.append((head, item, answer))
        if not self._due:
            self._due = True
            loop.call_soon(self._leave)
        return answer

    def _leave(self) -> None:
        self._due = False
        waiting = self._waiting
        while waiting and (self._flying == 0 or (self._flying == 1 and len(waiting) >= self._second_from)):
            head, batch = waiting[0][0], list[_Waiting]()
            args = list(head)
            while waiting and len(batch) < MOST and waiting[0][0] == head:
                one = waiting.popleft()
                batch.append(one)
                args += one[1]
            try:
                flight = self._link.call("EVALSHA", self._script.sha, 1, self._prefix, *args)
            except (TypeError, UnicodeEncodeError) as error:
                _fail(batch, error)  # not sent; raised here it would end nobody's wait, and the flight would never land
                continue
            self._flying += 1
            flight.add_done_callback(partial(self._land, batch, args))

    def _land(self, batch: list[_Waiting], args: list[Arg], flight: asyncio.Future[Any]) -> None:
        error = flight.exception()
        if isinstance(error, ReplyError) and str(error).startswith("NOSCRIPT"):
            # nothing ran: the server forgot its scripts (a flush, another master)
            again = self._link.call("EVAL", self._script.text, 1, self._prefix, *args)
            again.add_done_callback(partial(self._land, batch, args))
            return
        self._flying -= 1
        if error is None:
            answers = flight.result()
            self.now_ms = answers[0]
            for (_, _, waiter), answer in zip(batch, answers[1:], strict=True):
                if not waiter.done():
                    waiter.set_result((self.now_ms, answer) if self._stamped else answer)
        else:
            _fail(batch, error)
        if self._waiting:
            self._leave()


def _fail(batch: list[_Waiting], error: BaseException) -> None:
    for _, _, waiter in batch:
        if not waiter.done():
            waiter.set_exception(error)
