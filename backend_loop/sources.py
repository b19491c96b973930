"""Where the items of a batch come from, and how what is done is passed over."""

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Generator, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from backend_loop.ledger import Ledger

T = TypeVar("T")
Pairs = Generator[tuple[T, Any], None, None]
AsyncPairs = AsyncGenerator[tuple[T, Any], None]

AT_ONCE: Final = 1000
"""Items that are passed over in one turn of the event loop."""


@dataclass(frozen=True, slots=True)
class Seek(Generic[T]):
    """A source that can begin in the middle: a table by its key, a file by its offset.

    Args:
        after: of a cursor, the items behind it, each with a cursor of its own that JSON can carry; of None, all.
    """

    after: Callable[[Any], Iterable[tuple[T, Any]] | AsyncIterable[tuple[T, Any]]]


async def walk(items: Iterable[T] | AsyncIterable[T] | Seek[T], ledger: Ledger) -> AsyncPairs[T]:
    """What is left of the source, each item with its cursor. Close it."""
    if isinstance(items, Seek):
        opened = items.after(ledger.cursor)
        try:
            async with aclosing(_async(opened)) as pairs:
                async for value, cursor in pairs:
                    yield value, cursor
        finally:
            await _close(opened)
    elif isinstance(items, AsyncIterable):
        left = ledger.done
        async for value in items:
            if left:
                left -= 1
            else:
                yield value, None
    else:
        found = iter(items)
        for begin in range(0, ledger.done, AT_ONCE):
            deque(islice(found, min(AT_ONCE, ledger.done - begin)), maxlen=0)
            await asyncio.sleep(0)
        for value in found:
            yield value, None


def walk_sync(items: Iterable[T] | Seek[T], ledger: Ledger) -> Pairs[T]:
    """As `walk`.

    Raises:
        TypeError: the source is asynchronous.
    """
    if isinstance(items, Seek):
        opened = items.after(ledger.cursor)
        if isinstance(opened, AsyncIterable):
            raise TypeError('each_sync takes no asynchronous source: use each, in a state with runs="loop"')
        yield from opened  # which closes a generator too
    else:
        for value in islice(items, ledger.done, None):
            yield value, None


async def _async(opened: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[T, None]:
    if isinstance(opened, AsyncIterable):
        async for value in opened:
            yield value
    else:
        for value in opened:
            yield value


async def _close(opened: object) -> None:
    """End a generator that was opened here, where it stands."""
    if inspect.isasyncgen(opened):
        await opened.aclose()
    elif inspect.isgenerator(opened):
        opened.close()
