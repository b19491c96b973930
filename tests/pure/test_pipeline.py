"""The scheduler of a pipeline: small lines in every order in which they can go, larger ones in many."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend_loop.budget import Budget
from backend_loop.pipeline import Line, Stage, Standing, Step

Ends = dict[str, bool | None]
THROUGH = 99


class Run:
    """A line and its children; each `end` is followed by what the line says, as a parent mission does it."""

    def __init__(self, line: Line, ends: Ends | None = None) -> None:
        self.line, self.ends = line, dict(ends or {})
        self.standing = self.advance()

    def advance(self) -> Standing:
        standing = self.line.standing(self.ends)
        begun = [step.name for step in standing.begin]
        assert not self.ends.keys() & set(begun), "nothing begins twice"
        self.ends |= dict.fromkeys(begun)
        return standing

    def end(self, name: str, *, well: bool) -> "Run":
        return Run(self.line, self.ends | {name: well})

    @property
    def live(self) -> list[str]:
        return sorted(name for name, end in self.ends.items() if end is None)

    def place(self, chunk: int) -> tuple[int, str]:
        """Which stage a chunk is in, and what it does there; THROUGH if it is past the last one."""
        for number, stage in enumerate(self.line.stages):
            match self.ends.get(Step(stage, chunk).name, "waits"):
                case None:
                    return number, "lives"
                case False:
                    return number, "failed"
                case "waits":
                    return number, "waits"
        return THROUGH, "through"

    def check(self) -> None:
        """What holds at any time."""
        places = [self.place(chunk) for chunk in range(len(self.line.sizes))]
        for number, stage in enumerate(self.line.stages):
            assert places.count((number, "lives")) <= stage.at_once
            between = {(number, "lives"), (number + 1, "waits"), (number + 1, "lives")}
            if number + 1 < len(self.line.stages):
                assert sum(place in between for place in places) <= stage.ahead
                left = [chunk for chunk, place in enumerate(places) if place[1] != "failed" and place[0] <= number + 1]
                assert all(chunk < left[0] + stage.ahead for chunk in left if places[chunk] in between)
            if stage.in_order:
                began = [place[0] > number or place == (number, "lives") for place in places if place[1] != "failed"]
                assert began == sorted(began, reverse=True)
                assert places.count((number, "lives")) <= 1
        sizes = list(zip(self.line.sizes, places, strict=True))
        assert self.standing.through == sum(size for size, place in sizes if place[1] == "through")
        assert self.standing.lost == sum(size for size, place in sizes if place[1] == "failed")
        assert self.standing.live + len(self.standing.begin) == len(self.live)
        assert self.standing.over is not bool(self.live)
        assert (self.standing.spent is not None) == (self.standing.lost > (self.line.budget.count or 0))
        if self.standing.over and self.standing.spent is None:
            assert {place[1] for place in places} <= {"through", "failed"}, (
                "every chunk is through, or is counted failed"
            )


def stages(*shape: tuple[int, int, bool]) -> tuple[Stage, ...]:
    return tuple(
        Stage(f"s{n}", f"test.s{n}", at_once, ahead, in_order) for n, (at_once, ahead, in_order) in enumerate(shape)
    )


def explore(run: Run, visit: Callable[[Run], None]) -> int:
    """Every standing that can be reached, whichever child ends next and however it does."""
    seen, open_ = set[frozenset[tuple[str, bool | None]]](), [run]
    while open_:
        one = open_.pop()
        if (key := frozenset(one.ends.items())) not in seen:
            seen.add(key)
            visit(one)
            open_ += [one.end(name, well=well) for name in one.live for well in (True, False)]
    return len(seen)


@pytest.mark.parametrize("budget", [0, 1, 9])
@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize(("at_once", "ahead"), list(product((1, 2), (1, 2))))
def test_every_order_of_ends_keeps_the_bounds_and_comes_to_an_end(
    at_once: int, ahead: int, in_order: bool, budget: int
) -> None:
    line = Line(stages((at_once, ahead, False), (at_once, ahead, False), (1, 1, in_order)), (1, 2, 1), Budget(budget))
    assert explore(Run(line), Run.check) > 10


def test_it_goes_on_from_any_standing_as_if_it_had_never_stopped() -> None:
    line = Line(stages((2, 2, False), (1, 1, False)), (1, 1, 1), Budget(9))

    def again(run: Run) -> None:
        resumed = Run(line, run.ends)
        assert (resumed.ends, resumed.standing.begin) == (run.ends, ()), "it has begun all that there was to begin"

    explore(Run(line), again)


def test_other_bounds_after_a_restart_hold_for_what_begins_from_then_on() -> None:
    wide = Run(Line(stages((4, 4, False), (4, 4, False)), (1,) * 12))
    assert len(wide.live) == 4
    narrow = Run(Line(stages((1, 9, False), (1, 1, False)), (1,) * 12), wide.ends)
    assert narrow.standing.begin == ()
    for name in wide.live:
        narrow = narrow.end(name, well=True)
    assert narrow.live == ["s0:4", "s1:0"]


shapes = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5), st.booleans()), min_size=1, max_size=4)


@settings(deadline=None)
@given(shapes, st.lists(st.integers(0, 5), max_size=12), st.integers(0, 20), st.data())
def test_a_line_of_any_shape_goes_through(
    shape: list[tuple[int, int, bool]], sizes: list[int], budget: int, data: st.DataObject
) -> None:
    run = Run(Line(stages(*shape), sizes, Budget(budget)))
    run.check()
    for _ in range(len(shape) * len(sizes)):
        if not run.live:
            break
        run = run.end(data.draw(st.sampled_from(run.live)), well=data.draw(st.integers(0, 5)) > 0)
        run.check()
    assert run.standing.over


def test_a_stage_does_not_run_ahead_of_one_that_stands_still() -> None:
    run = Run(Line(stages((3, 4, False), (2, 9, False), (1, 9, False)), (1,) * 20))
    while moving := [name for name in run.live if not name.startswith("s1")]:
        run = run.end(moving[0], well=True)
    assert run.live == ["s1:0", "s1:1"]
    assert sorted(name for name in run.ends if name.startswith("s0")) == ["s0:0", "s0:1", "s0:2", "s0:3"]


def test_a_chunk_that_lags_finds_room_where_the_others_wait_for_it() -> None:
    run = Run(Line(stages((2, 2, False), (2, 2, False), (1, 9, True)), (1,) * 6))
    while moving := [name for name in run.live if name != "s0:0"]:
        run = run.end(moving[0], well=True)
    assert sorted(run.ends) == ["s0:0", "s0:1", "s1:1"]
    while run.live:
        run = run.end(run.live[-1], well=True)
    assert run.standing.through == 6


def test_what_is_nearly_through_goes_first() -> None:
    run = Run(Line(stages((1, 9, False), (1, 9, False)), (1, 1, 1)))
    run = run.end("s0:0", well=True)
    assert [step.name for step in run.standing.begin] == ["s1:0", "s0:1"]


def test_the_budget_counts_what_was_lost_inside_of_chunks_too() -> None:
    line = Line(stages((1, 1, False)), (10, 10), Budget(12))
    assert line.standing({"s0:0": False}, lost=2).spent is None
    spent = line.standing({"s0:0": False}, lost=3)
    assert (spent.spent, spent.begin) == ("13 of 20 items failed, and 12 may", ())
    assert (spent.over, spent.lost) == (True, 10)


def test_a_share_is_one_of_all_that_there_is() -> None:
    line = Line(stages((1, 1, False)), (10,) * 100, Budget(share=0.01))
    assert line.standing({}, lost=10).spent is None
    assert line.standing({}, lost=11).spent == "11 of 1000 items failed, and 1 % of them may"


def test_once_the_budget_is_spent_what_is_under_way_is_waited_for() -> None:
    run = Run(Line(stages((2, 9, False), (2, 9, False)), (1,) * 4)).end("s0:0", well=False)
    assert (run.standing.over, run.live) == (False, ["s0:1"])
    assert run.standing.spent == "1 of 4 items failed, and none may"
    assert run.end("s0:1", well=True).standing.over


def test_it_knows_its_own_children_alone() -> None:
    line = Line(stages((1, 1, False)), (1,))
    assert [step.name for step in line.standing({"s0:7": True, "s0": None, "other:0": False}).begin] == ["s0:0"]


def test_nothing_to_do_is_done() -> None:
    assert Line(stages((1, 1, False)), ()).standing({}).over


@pytest.mark.parametrize(
    "wrong",
    [(), (Stage("a", "t"), Stage("a", "u")), (Stage("a:b", "t"),), (Stage("a", "t", 0),), (Stage("a", "t", 1, 0),)],
)
def test_a_line_that_nothing_could_go_through_is_refused(wrong: tuple[Stage, ...]) -> None:
    with pytest.raises(ValueError, match=r"stages are called|numbers from 1"):
        Line(wrong, (1,))
