"""What has become of the chunks of a run so far, as its children tell it."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from backend_loop.etl.chunk_file import Tally
from backend_loop.pipeline import Line, Step
from backend_loop.toolbox import ChildMission

ROUND: Final = "@"
"""In the name of a child, between that of its step and what tells the children of one run from those of others."""


class Account(NamedTuple):
    """How far the chunks are.

    Attributes:
        ends: of the children, for `Line.standing`.
        rejected: rows that were rejected so far, but for those of chunks that have failed as a whole.
        loaded: the chunks that are in the table.
        failed: the chunks that go no further, and why.
    """

    ends: Mapping[str, bool | None]
    rejected: int
    loaded: Mapping[int, Tally]
    failed: Mapping[int, str]


def account(line: Line, children: Iterable[ChildMission]) -> Account:
    """By the children of a run, whose results are tallies: each stage hands on what the one before has rejected."""
    known = {(child.name or "").partition(ROUND)[0]: child for child in children}
    rejected, loaded, failed = 0, dict[int, Tally](), dict[int, str]()
    for chunk in range(len(line.sizes)):
        tally = None
        for stage in line.stages:
            child = known.get(Step(stage, chunk).name)
            if child is None or not child.ended:
                break
            if not child.succeeded:
                failed[chunk] = f"{child.type} ended {child.status}: {(child.error or {}).get('message', child.reason)}"
                break
            tally = Tally(**child.result)
        else:
            loaded[chunk] = tally or Tally(0, 0)
        if tally is not None and chunk not in failed:
            rejected += tally.rejected
    ends = {name: child.succeeded if child.ended else None for name, child in known.items()}
    return Account(ends, rejected, loaded, failed)
