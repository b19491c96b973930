"""How much of a batch may fail: an error budget, and what is said once it is spent. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


@dataclass(frozen=True, slots=True)
class Budget:
    """What may fail before the whole batch is given up; what is None sets no limit.

    Args:
        count: so many items.
        share: this part of those worked on, from 0 to 1.
        judged_from: the share is looked at once so many items were worked on, and at the end: one failure among the
            first two is no half.
    """

    count: int | None = None
    share: float | None = None
    judged_from: int = 100

    def __post_init__(self) -> None:
        """Raises ValueError: one of them is not what it may be."""
        if self.count is not None and not (type(self.count) is int and self.count >= 0):
            raise ValueError(f"Budget.count is {self.count!r}: say a whole number from 0, or None")
        if self.share is not None and not (isinstance(self.share, int | float) and 0 <= self.share <= 1):
            raise ValueError(f"Budget.share is {self.share!r}: say a number from 0 to 1, or None")
        if type(self.judged_from) is not int or self.judged_from < 1:
            raise ValueError(f"Budget.judged_from is {self.judged_from!r}: say a whole number from 1")

    def spent(self, done: int, failed: int, *, whole: bool = False) -> str | None:
        """Why no more may fail; None: it is not spent.

        Args:
            done: items that were worked on, those that failed included.
            failed: items that failed.
            whole: there are no more.
        """
        if self.count is not None and failed > self.count:
            return f"{failed} of {done} items failed, and {self.count or 'none'} may"
        judged = done > 0 and (whole or done >= self.judged_from)
        if self.share is not None and judged and failed / done > self.share:
            return f"{failed} of {done} items failed, and {100 * self.share:.4g} % of them may"
        return None

    def allowed(self, total: int) -> int:
        """How many of so many may fail."""
        failed = 0
        while failed < total and self.spent(total, failed + 1, whole=True) is None:
            failed += 1
        return failed


NONE_MAY_FAIL = Budget(count=0)


class MayFail(BaseModel):
    """How much may fail, as a payload says it."""

    model_config = ConfigDict(extra="forbid")

    count: Annotated[int, Field(ge=0)] | None = None
    share: Annotated[float, Field(ge=0, le=1)] | None = None

    @property
    def budget(self) -> Budget:
        """As pipelines and batches count by it."""
        return Budget(self.count, self.share)


class BudgetSpentError(Exception):
    """Too much of a batch has failed; let through, it ends the mission as `permanent`, with the report as its result.

    Args:
        sentence: for a person.
        report: ``done failed failures report``.
    """

    def __init__(self, sentence: str, report: Mapping[str, Any]) -> None:
        """Raised by `each`; by an author's own batch, with a report of its own."""
        super().__init__(sentence)
        self.report = report
