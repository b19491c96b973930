"""Stages over chunks: what may begin next, by what has ended so far. Pure; each chunk is a child mission per stage.

A mission that moves chunks asks each time that a child has ended, and spawns what it is told::

    line = Line((Stage("extract", "etl.extract", at_once=4, ahead=8), Stage("load", "etl.load")), sizes=(500, 500, 120))
    standing = line.standing({one.name: one.succeeded if one.ended else None for one in tools.children})
    for step in standing.begin:
        tools.spawn(step.stage.type, {...}, name=step.name)
    if not standing.over:
        return WaitForChildren("any", "continue")

A stage's type says in which pool its missions wait, so each stage is given workers of its own by ``DUALLOOP_POOLS``.
What one stage leaves for the next is handed on as a file, whose link the next one's payload has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from backend_loop.budget import NONE_MAY_FAIL, Budget

SIGN: Final = ":"
"""Stands between stage and chunk in the name of a child."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One of the things that are done to each chunk.

    Args:
        name: by which its children are told from those of other stages.
        type: of its missions.
        at_once: so many of them may live.
        ahead: a chunk begins here once it is less than so many in front of the first one that is not through the next
            stage. So there are never more between the two, and their files are bounded.
        in_order: a chunk begins once all before it have ended here, or failed anywhere.
    """

    name: str
    type: str
    at_once: int = 1
    ahead: int = 2
    in_order: bool = False


class Step(NamedTuple):
    """One chunk in one stage: one child."""

    stage: Stage
    chunk: int

    @property
    def name(self) -> str:
        """Of the child."""
        return f"{self.stage.name}{SIGN}{self.chunk}"


class Standing(NamedTuple):
    """How far all chunks are.

    Attributes:
        begin: to be spawned now.
        live: how many children have not ended.
        failed: where a chunk has failed; it goes no further.
        through: sizes of the chunks that have ended in the last stage, summed up. lost: of those that have failed.
        spent: why nothing begins any more: more was lost than may be; None: it was not.
    """

    begin: tuple[Step, ...]
    live: int
    failed: tuple[Step, ...]
    through: int
    lost: int
    spent: str | None

    @property
    def over(self) -> bool:
        """Every chunk is through or has failed, or the budget is spent and what was under way has ended."""
        return not self.begin and not self.live


@dataclass(frozen=True, slots=True)
class Line:
    """The stages, one behind the other, and what goes through them.

    Args:
        stages: in order.
        sizes: of the chunks, in the unit of the budget, such as rows.
        budget: so much of all that there is may be lost.
    """

    stages: Sequence[Stage]
    sizes: Sequence[int]
    budget: Budget = NONE_MAY_FAIL

    def __post_init__(self) -> None:
        """Raises ValueError: nothing could ever go through."""
        names = [stage.name for stage in self.stages]
        if not names or len(set(names)) < len(names) or any(SIGN in name for name in names):
            raise ValueError(f"the stages are called {names}: give each a name of its own, without {SIGN!r}")
        for stage in self.stages:
            if stage.at_once < 1 or stage.ahead < 1:
                raise ValueError(f"{stage.name}: at_once and ahead are numbers from 1")

    def standing(self, ends: Mapping[str, bool | None], lost: int = 0) -> Standing:
        """What is to be done next.

        Args:
            ends: the children by name: whether they succeeded; None: they live. Other names are ignored.
            lost: what counts against the budget besides whole chunks, such as rows that were rejected.
        """
        waiting: list[list[int]] = [[] for _ in self.stages]
        live: list[list[int]] = [[] for _ in self.stages]
        failed, through = list[Step](), 0
        for chunk, size in enumerate(self.sizes):
            for at, stage in enumerate(self.stages):
                end = ends.get(Step(stage, chunk).name, ...)
                if end is True:
                    continue
                if end is False:
                    failed.append(Step(stage, chunk))
                else:
                    (waiting if end is ... else live)[at].append(chunk)
                break
            else:
                through += size
        gone = sum(self.sizes[step.chunk] for step in failed)
        spent = self.budget.spent(sum(self.sizes), lost + gone, whole=True)
        begin = () if spent is not None else tuple(self._begin(waiting, live))
        return Standing(begin, sum(map(len, live)), tuple(failed), through, gone, spent)

    def _begin(self, waiting: Sequence[Sequence[int]], live: Sequence[Sequence[int]]) -> list[Step]:
        """The last stage first, so that what is nearly through goes before what would only follow."""
        steps = list[Step]()
        for at, stage in reversed(tuple(enumerate(self.stages))):
            chunks = waiting[at][: max(0, stage.at_once - len(live[at]))]
            if at + 1 < len(self.stages):
                # by place and not by number: the first one that is left always has room, so nobody waits for ever
                end = _first(waiting[: at + 2], live[: at + 2]) + stage.ahead
                chunks = [chunk for chunk in chunks if chunk < end]
            if stage.in_order:
                first = _first(waiting[: at + 1], live[: at + 1])
                chunks = [chunk for chunk in chunks if chunk == first]
            steps += [Step(stage, chunk) for chunk in chunks]
        return steps


def _first(*groups: Sequence[Sequence[int]]) -> int:
    """The first chunk of those that are somewhere there; 0: there is none."""
    return min((chunk for group in groups for chunks in group for chunk in chunks), default=0)
