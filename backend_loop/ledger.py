"""How far a batch is: what stands in the mission's context, and what a chunk of items adds to it. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel
from pydantic_core import to_json

from backend_loop.budget import Budget
from shared.shortened import shortened

T = TypeVar("T")

KEPT: Final = 20
"""Failures that the context has; the report has all of them."""
TOLD: Final = 300
"""Characters of an item's error."""
LONGEST_KEY: Final = 200


class Failure(BaseModel):
    """An item that failed."""

    index: int
    key: str
    error: str


class Ledger(BaseModel):
    """How far a batch is; a field of the mission's Context, such as ``letters: Ledger = Ledger()``, one for each batch.

    Attributes:
        done: items that were worked on, in the order of the source; those that failed included.
        failed: how many of them failed.
        failures: the first ones.
        cursor: where a source that can seek goes on.
        reported: bytes of the report that are right.
        report: the link to it, once it is published.
        ended: there are no more items.
    """

    done: int = 0
    failed: int = 0
    failures: list[Failure] = []
    cursor: Any = None
    reported: int = 0
    report: str | None = None
    ended: bool = False

    @property
    def succeeded(self) -> int:
        """How many did not fail."""
        return self.done - self.failed

    def summary(self) -> dict[str, Any]:
        """For a result: ``done failed failures report``, the failures being the first ones."""
        return self.model_dump(include={"done", "failed", "failures", "report"})


@dataclass(frozen=True, slots=True)
class Item(Generic[T]):
    """An item of the source: its place, its key, and where the source goes on behind it."""

    value: T
    index: int
    key: str
    cursor: Any = None
    fault: str | None = None
    """Why it has no key of its own, and fails."""


def keyed(value: T, index: int, key: Callable[[T], str], cursor: Any = None) -> Item[T]:
    """An item by its key; one that has none goes by its place, and fails."""
    try:
        name = key(value)
    except Exception as error:  # noqa: BLE001  whatever may be wrong with an item, it is that item's fault
        return Item(value, index, f"#{index}", cursor, f"it has no key: {said(error)}")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_KEY or not _is_text(name):
        return Item(value, index, f"#{index}", cursor, f"its key is no text of 1 to {LONGEST_KEY} characters")
    return Item(value, index, name, cursor)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def said(error: BaseException) -> str:
    """An exception in a line."""
    try:
        told = str(error)
    except Exception:  # noqa: BLE001  a fault of whoever wrote the exception
        told = "it cannot say what it is"
    text = f"{type(error).__name__}: {told}" if told else type(error).__name__
    text = text.encode(errors="replace").decode()
    return shortened(text, TOLD)


@dataclass(frozen=True, slots=True)
class _Settled:
    line: bytes
    cursor: Any
    failure: Failure | None = None


class Chunk:
    """The items between two checkpoints.

    Only those before the first one that did not settle count; what came after it is worked on again, under its key.
    """

    def __init__(self, ledger: Ledger, budget: Budget) -> None:
        """Nothing is in it yet."""
        self._ledger, self._budget = ledger, budget
        self._settled: dict[int, _Settled] = {}
        self.failed = 0
        self.fault: Exception | None = None
        """What ended the whole try."""

    @property
    def done(self) -> int:
        """Items of the whole batch that were worked on."""
        return self._ledger.done + len(self._settled)

    @property
    def failures(self) -> int:
        """Items of the whole batch that failed."""
        return self._ledger.failed + self.failed

    def succeed(self, item: Item[Any], result: Any) -> None:
        """The item is done; `result` goes into the report."""
        line = {"index": item.index, "key": item.key, "ok": True, "result": result}
        self._settled[item.index] = _Settled(_line(line), item.cursor)

    def fail(self, item: Item[Any], error: str) -> None:
        """The item failed."""
        failure = Failure(index=item.index, key=item.key, error=error)
        line = {"index": item.index, "key": item.key, "ok": False, "error": error}
        self._settled[item.index] = _Settled(_line(line), item.cursor, failure)
        self.failed += 1

    def spent(self, *, whole: bool = False) -> str | None:
        """Why no more may fail; None: something may."""
        return self._budget.spent(self.done, self.failures, whole=whole)

    def lines(self) -> bytes:
        """What it adds to the report."""
        return b"".join(settled.line for settled in self._counting())

    def settle(self, reported: int) -> None:
        """Enter it into the ledger, with the length that the report has now."""
        ledger = self._ledger
        for settled in self._counting():
            ledger.done += 1
            ledger.cursor = settled.cursor
            if settled.failure is not None:
                ledger.failed += 1
                if len(ledger.failures) < KEPT:
                    ledger.failures.append(settled.failure)
        ledger.reported = reported
        self._settled.clear()
        self.failed = 0

    def _counting(self) -> Iterator[_Settled]:
        index = self._ledger.done
        while (settled := self._settled.get(index)) is not None:
            yield settled
            index += 1


def _line(fields: dict[str, Any]) -> bytes:
    try:
        return to_json(fields, fallback=repr, inf_nan_mode="null") + b"\n"
    except ValueError:  # half a character, or a circle: the item is done all the same
        return to_json(fields | {"result": _in_words(fields.get("result"))}) + b"\n"


def _in_words(result: Any) -> str:
    try:
        return ascii(result)
    except Exception:  # noqa: BLE001  too deep, or a fault of whoever wrote its repr
        return f"a {type(result).__name__} that cannot be told"
