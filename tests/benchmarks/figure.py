"""A figure: what is measured, against what, and the least it has to be."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tests.benchmarks.stage import Stage

Verdict = Literal["ok", "MISSED", "–"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement of ours, and of the peer right beside it; without a peer there is no ratio."""

    ours: float
    peer: float = math.nan

    @property
    def ratio(self) -> float:
        """Ours as a multiple of the peer's."""
        return self.ours / self.peer if self.peer else math.nan


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table.

    Args:
        name: what ``--only`` and the JSON call it.
        what: what is measured, for a reader.
        unit: of ours and the peer's.
        peer: what it is compared with; empty: nothing.
        least: floor of the median ratio. most: ceiling of it. Both None: for information.
    """

    name: str
    what: str
    unit: str
    peer: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def limit(self) -> str:
        """The floor as it is printed."""
        if self.least is not None:
            return f"≥ {self.least:g}"
        return f"≤ {self.most:g}" if self.most is not None else ""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run: the full length, or a smoke that shows that everything still works."""

    quick: bool = False
    reps: int = 3

    @property
    def patience_s(self) -> float:
        """How long a measurement may wait for a quiet machine."""
        return 0.0 if self.quick else 15.0

    def of(self, full: int) -> int:
        """A count, a fifteenth of it in a smoke."""
        return max(10, full // 15) if self.quick else full


Measure = Callable[["Stage", Size], dict[str, Sample]]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What is run at once and gives one sample to each of its rows."""

    name: str
    rows: tuple[Row, ...]
    measure: Measure
    once: bool = False
    """It counts instead of timing: one repetition tells all."""


@dataclass(slots=True)
class Figure:
    """A row on one server, with its samples."""

    row: Row
    server: str
    judged: bool
    samples: list[Sample] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        """Whether the median ratio keeps the floor; only where floors hold, and there is one."""
        if not self.judged or not self.samples or (self.row.least is None and self.row.most is None):
            return "–"
        ratio = median([sample.ratio for sample in self.samples])
        kept = ratio >= (self.row.least or 0) and ratio <= (math.inf if self.row.most is None else self.row.most)
        return "ok" if kept else "MISSED"


def median(values: Sequence[float]) -> float:
    """The middle; NaN of nothing."""
    return statistics.median(values) if values else math.nan


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of all stays below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
