"""Many items in one state, one after the other or some at once: counted, reported, and gone on with after a kill.

::

    class Context(BaseModel):
        letters: Ledger = Ledger()

    @state("SENDING", timeout_s=60)
    async def send(self, tools: Toolbox[Payload, Context]) -> Outcome:
        ledger = tools.context.letters

        async def one(address: str, key: str) -> None:
            ...  # the effect carries the key, so that a second try does it no second time

        await each(tools, ledger, addresses(), one, key=str, at_once=8, budget=Budget(share=0.05))
        return Go("sent", result=ledger.summary())
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator, Iterable, Sized
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from backend_loop.budget import NONE_MAY_FAIL, Budget, BudgetSpentError
from backend_loop.files import File, FilesTooLargeError
from backend_loop.item_report import ItemReport
from backend_loop.ledger import Chunk, Failure, Item, Ledger, keyed, said
from backend_loop.reporting import progress
from backend_loop.services import ServiceUnavailable
from backend_loop.sources import Seek, walk, walk_sync
from backend_loop.store import LostError
from backend_loop.toolbox import DeadlinePassedError

__all__ = ["Budget", "BudgetSpentError", "Failure", "Ledger", "Seek", "each", "each_sync"]

T = TypeVar("T")

REPORT: Final = "items.jsonl"
EVERY: Final = 100
EVERY_S: Final = 5.0
CHECK_S: Final = 0.1
FROM_WITHIN: Final = "it was cancelled from within"

Errors = tuple[type[Exception], ...]


class _Tools(Protocol):
    @property
    def key(self) -> str: ...
    def file(self, name: str) -> File: ...
    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None: ...


class LoopTools(_Tools, Protocol):
    """What `each` needs of a `Toolbox`."""

    async def checkpoint(self) -> None:
        """See there."""


class PlainTools(_Tools, Protocol):
    """What `each_sync` needs of a `StepTools`."""

    def check(self) -> None:
        """See there."""

    def checkpoint(self) -> None:
        """See there."""


async def each(  # noqa: PLR0913  what may be said of a batch
    tools: LoopTools,
    ledger: Ledger,
    items: Iterable[T] | AsyncIterable[T] | Seek[T],
    work: Callable[[T, str], Awaitable[Any]],
    *,
    key: Callable[[T], str],
    every: int = EVERY,
    every_s: float = EVERY_S,
    at_once: int = 1,
    budget: Budget = NONE_MAY_FAIL,
    total: int | None = None,
    report: str | None = REPORT,
    transient: Errors = (ServiceUnavailable,),
) -> None:
    """Work on all items of a source, from the first one that the ledger does not have; write a checkpoint now and then.

    A killed batch goes on behind its last checkpoint; what was worked on since then is worked on again, under the same
    key. What `work` raises is that item's failure, and the others go on, until the budget is spent.

    Args:
        tools: the handler's.
        ledger: a field of its context.
        items: the same ones in the same order each time, or `Seek`. Those that are done are passed over.
        work: done for each, with the key that its effect carries, the same in every try and takeover. What it returns
            goes into the report, so let it be small.
        key: of an item: a text of its own, such as its number.
        every: items between two checkpoints at most, which are in memory.
        every_s: seconds likewise, but for the items under way: the state's `timeout_s` counts from one to the next.
        at_once: items under way.
        budget: how many may fail; unless it is said, none.
        total: items in all, for the progress; a source with a length says it itself.
        report: name of a file with a line for each item, ``{"index", "key", "ok", "result" or "error"}``, downloaded by
            `ledger.report` once the batch has ended; None: there is none. A second batch of the mission needs another
            name, or its report takes the place of the first one's.
        transient: errors of all rather than of one: they end the try, and the next one goes on with that item.

    Raises:
        BudgetSpentError: too much has failed. Let it pass: it ends the mission as `permanent`, with the summary.
        ValueError: an argument is not what it may be.
        Exception: what the source raised, or a transient error.
    """
    terms = _Terms(every, every_s, at_once, budget, transient)
    if not ledger.ended:
        await _each(tools, _Batch(tools, ledger, key, terms, _total(items, total), report), items, work)


def each_sync(  # noqa: PLR0913  as above
    tools: PlainTools,
    ledger: Ledger,
    items: Iterable[T] | Seek[T],
    work: Callable[[T, str], Any],
    *,
    key: Callable[[T], str],
    every: int = EVERY,
    every_s: float = EVERY_S,
    budget: Budget = NONE_MAY_FAIL,
    total: int | None = None,
    report: str | None = REPORT,
    transient: Errors = (ServiceUnavailable,),
) -> None:
    """As `each`, for a plain ``def`` handler in a thread or a process: one item after the other.

    Raises:
        BudgetSpentError, ValueError, Exception: as `each`.
    """
    terms = _Terms(every, every_s, 1, budget, transient)
    if not ledger.ended:
        _each_sync(tools, _Batch(tools, ledger, key, terms, _total(items, total), report), items, work)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What was said of a batch; raises ValueError where it cannot be."""

    every: int
    every_s: float
    at_once: int
    budget: Budget
    transient: Errors

    def __post_init__(self) -> None:
        for name in ("every", "at_once"):
            if type(value := getattr(self, name)) is not int or value < 1:
                raise ValueError(f"{name} is {value!r}: say a whole number from 1")
        if not self.every_s > 0:
            raise ValueError(f"every_s is {self.every_s!r}: say seconds, more than 0")


class _Batch(Generic[T]):
    """What both twins share: the terms, the report, the progress."""

    def __init__(  # noqa: PLR0913, PLR0917  made by the two only
        self,
        tools: _Tools,
        ledger: Ledger,
        key: Callable[[T], str],
        terms: _Terms,
        total: int | None,
        report: str | None,
    ) -> None:
        self.key, self.terms, self.ledger, self._tools, self._total = key, terms, ledger, tools, total
        self.base = f"{tools.key}:"
        self._report = None if report is None else ItemReport(tools.file(report), ledger.done)

    def taken(self, value: T, index: int, cursor: Any) -> Item[T]:
        return keyed(value, index, self.key, cursor)

    def begun(self) -> Chunk:
        """The next chunk."""
        return Chunk(self.ledger, self.terms.budget)

    def ended(self, chunk: Chunk, *, whole: bool) -> str | None:
        """What becomes of the batch behind a chunk that is settled: it goes on, or that is why not.

        Raises:
            Exception: what has ended the try.
        """
        if chunk.fault is not None:
            raise chunk.fault
        return chunk.spent(whole=whole)

    def ends_try(self) -> Errors:
        """Errors that are not an item's."""
        return (LostError, DeadlinePassedError, FilesTooLargeError, *self.terms.transient)

    def tell(self, chunk: Chunk) -> None:
        failures = chunk.failures
        self._tools.progress(chunk.done, self._total, f"{failures} failed" if failures else None)

    def write(self, chunk: Chunk) -> int:
        """Blocks; the length of the report then."""
        if self._report is None:
            return 0
        return self._report.append(self.ledger.reported, chunk.lines())

    def publish(self) -> str | None:
        """Blocks; the report's link."""
        return None if self._report is None else self._report.publish()


async def _each(
    tools: LoopTools,
    batch: _Batch[T],
    items: Iterable[T] | AsyncIterable[T] | Seek[T],
    work: Callable[[T, str], Awaitable[Any]],
) -> None:
    ledger, whole = batch.ledger, False
    async with contextlib.aclosing(walk(items, ledger)) as source:
        while not whole:
            chunk = batch.begun()
            whole = await _Window(batch, chunk, source, work).work_off()
            if isinstance(chunk.fault, LostError):
                raise chunk.fault
            chunk.settle(await asyncio.to_thread(batch.write, chunk))
            if (sentence := batch.ended(chunk, whole=whole)) is not None:
                ledger.report = await asyncio.to_thread(batch.publish)
                raise BudgetSpentError(sentence, ledger.summary())
            if not whole:
                await tools.checkpoint()
    ledger.report = await asyncio.to_thread(batch.publish)
    ledger.ended = True


def _each_sync(
    tools: PlainTools, batch: _Batch[T], items: Iterable[T] | Seek[T], work: Callable[[T, str], Any]
) -> None:
    ledger, whole = batch.ledger, False
    with contextlib.closing(walk_sync(items, ledger)) as source:
        while not whole:
            chunk = batch.begun()
            whole = _work_off(tools, batch, chunk, source, work)
            chunk.settle(batch.write(chunk))
            if (sentence := batch.ended(chunk, whole=whole)) is not None:
                ledger.report = batch.publish()
                raise BudgetSpentError(sentence, ledger.summary())
            if not whole:
                tools.checkpoint()
    ledger.report = batch.publish()
    ledger.ended = True


class _Window(Generic[T]):
    """The items of one chunk, some at once."""

    def __init__(
        self,
        batch: _Batch[T],
        chunk: Chunk,
        source: AsyncGenerator[tuple[T, Any], None],
        work: Callable[[T, str], Awaitable[Any]],
    ) -> None:
        self._batch, self._chunk, self._source, self._work = batch, chunk, source, work
        self._first, self._taken, self._whole = chunk.done, 0, False
        self._taking = asyncio.Lock()
        self._clock = asyncio.get_running_loop().time
        self._ends_at = self._clock() + batch.terms.every_s

    async def work_off(self) -> bool:
        """Whether the source has no more items."""
        terms = self._batch.terms
        async with asyncio.TaskGroup() as group:
            for _ in range(min(terms.at_once, terms.every)):
                group.create_task(self._worker())
        return self._whole

    async def _worker(self) -> None:
        task = asyncio.current_task()
        while (item := await self._take()) is not None:
            await self._do(item)
            self._batch.tell(self._chunk)
            if task is not None and task.cancelling():  # the work has swallowed it: no more is begun all the same
                raise asyncio.CancelledError

    async def _take(self) -> Item[T] | None:
        """The next item, if one more is to be begun in this chunk."""
        async with self._taking:
            chunk, late = self._chunk, self._taken and self._clock() >= self._ends_at
            full = late or self._taken >= self._batch.terms.every
            if self._whole or full or chunk.fault is not None or chunk.spent() is not None:
                return None
            try:
                value, cursor = await anext(self._source)
            except StopAsyncIteration:
                self._whole = True
                return None
            except Exception as error:  # noqa: BLE001  of the source, whatever it is: raised once the others have ended
                chunk.fault = error
                return None
            self._taken += 1
            return self._batch.taken(value, self._first + self._taken - 1, cursor)

    async def _do(self, item: Item[T]) -> None:
        chunk = self._chunk
        if item.fault is not None:
            chunk.fail(item, item.fault)
            return
        try:
            result = await self._work(item.value, self._batch.base + item.key)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            chunk.fail(item, FROM_WITHIN)  # something it waited for was cancelled, not the batch
        except self._batch.ends_try() as error:
            chunk.fault = chunk.fault or error
        except Exception as error:  # noqa: BLE001  that no item ends the others is what this is for
            chunk.fail(item, said(error))
        else:
            chunk.succeed(item, result)


def _work_off(
    tools: PlainTools,
    batch: _Batch[T],
    chunk: Chunk,
    source: Generator[tuple[T, Any], None, None],
    work: Callable[[T, str], Any],
) -> bool:
    ends_at, check_at = time.monotonic() + batch.terms.every_s, 0.0
    first = chunk.done
    for index in range(first, first + batch.terms.every):
        now = time.monotonic()
        if index > first and now >= ends_at:
            return False
        if now >= check_at:
            tools.check()
            check_at = now + CHECK_S
        try:
            value, cursor = next(source)
        except StopIteration:
            return True
        except Exception as error:  # noqa: BLE001  of the source: raised once what is done is written
            chunk.fault = error
            return False
        item = batch.taken(value, index, cursor)
        _do(batch, chunk, item, work)
        if chunk.fault is not None or chunk.spent() is not None:
            return False
        batch.tell(chunk)
    return False


def _do(batch: _Batch[T], chunk: Chunk, item: Item[T], work: Callable[[T, str], Any]) -> None:
    if item.fault is not None:
        chunk.fail(item, item.fault)
        return
    try:
        result = work(item.value, batch.base + item.key)
    except LostError:
        raise
    except batch.ends_try() as error:
        chunk.fault = error
    except Exception as error:  # noqa: BLE001  as above
        chunk.fail(item, said(error))
    else:
        chunk.succeed(item, result)


def _total(items: object, total: int | None) -> int | None:
    progress(0, total)  # said of each item: what it cannot be is refused before there is one
    return len(items) if total is None and isinstance(items, Sized) else total
