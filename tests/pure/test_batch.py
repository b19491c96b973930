"""What both `each` and `each_sync` promise: counted, reported, and gone on with wherever they are cut."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend_loop.batch import Budget, BudgetSpentError, Ledger, Seek
from backend_loop.files import Files, FilesTooLargeError
from backend_loop.ledger import KEPT
from backend_loop.services import ServiceUnavailable
from backend_loop.store import LapsedError
from backend_loop.toolbox import DeadlinePassedError
from tests.batch_desk import TASK, Desk, Killed, Run, beside_it, dies_at, double, in_loop, picky

both = pytest.mark.parametrize("run", [in_loop, beside_it])


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@both
async def test_all_items_are_worked_on_counted_told_and_reported(desk: Desk, run: Run) -> None:
    ledger = await run(desk, list(range(25)), double, every=10)
    assert (ledger.done, ledger.failed, ledger.ended, ledger.succeeded) == (25, 0, True, 25)
    assert desk.checkpoints == [10, 20]
    assert desk.report() == [{"index": n, "key": str(n), "ok": True, "result": 2 * n} for n in range(25)]
    assert ledger.report == f"/v1/files/{TASK}/items.jsonl"
    assert ledger.summary() == {"done": 25, "failed": 0, "failures": [], "report": ledger.report}
    assert desk.told[-1] == (25, 25, None)


POINTS = 27
"""Before each of 25 items, and at each of two checkpoints."""


@both
@pytest.mark.parametrize("point", range(POINTS + 1))
async def test_wherever_it_is_killed_it_goes_on_behind_its_checkpoint_and_reports_the_same(
    tmp_path: Path, run: Run, point: int
) -> None:
    """At the last point nothing but the commit is left."""
    whole, desk = Desk(tmp_path / "whole"), Desk(tmp_path / "killed")
    await run(whole, range(25), picky, every=10, budget=Budget())
    worked = Counter[tuple[int, str]]()
    die = desk.on_checkpoint = dies_at(point + 1)

    def work(item: int, key: str) -> int:
        die()
        worked[item, key] += 1
        return picky(item, key)

    survived = True
    try:
        await run(desk, range(25), work, every=10, budget=Budget())
    except (Killed, BaseExceptionGroup):
        survived = False
    assert survived == (point == POINTS)
    behind = Ledger.model_validate_json(desk.kept).done
    die = desk.on_checkpoint = lambda: None
    ledger = await run(desk, range(25), work, every=10, budget=Budget())
    assert ledger == whole.ledger
    assert desk.report() == whole.report()
    assert {item for (item, _), times in worked.items() if times > 1} <= set(range(behind, 25))
    assert {key for _, key in worked} == {f"{desk.key}:{n}" for n in range(25)}, "one key an item, whatever happens"


@both
async def test_what_an_item_raises_is_its_own_failure(desk: Desk, run: Run) -> None:
    ledger = await run(desk, range(20), picky, every=6, budget=Budget(count=3))
    assert (ledger.done, ledger.failed) == (20, 3)
    assert [(one.index, one.key, one.error) for one in ledger.failures] == [
        (n, str(n), f"ValueError: {n} is not liked") for n in (3, 10, 17)
    ]
    assert desk.report()[10] == {"index": 10, "key": "10", "ok": False, "error": "ValueError: 10 is not liked"}
    assert desk.told[-1] == (20, 20, "3 failed")


@both
async def test_the_context_has_the_first_failures_and_the_report_has_all(desk: Desk, run: Run) -> None:
    def never(_item: int, _key: str) -> None:
        raise ValueError("x" * 1000)

    ledger = await run(desk, range(3 * KEPT), never, every=7, budget=Budget())
    assert (ledger.failed, len(ledger.failures)) == (3 * KEPT, KEPT)
    assert len(ledger.model_dump_json()) < KEPT * 500
    assert len(desk.report()) == 3 * KEPT


@both
async def test_once_the_budget_is_spent_no_more_is_begun_and_the_report_says_why(desk: Desk, run: Run) -> None:
    seen: list[int] = []

    def work(item: int, key: str) -> int:
        seen.append(item)
        return picky(item, key)

    with pytest.raises(BudgetSpentError, match="2 of 11 items failed, and 1 may") as spent:
        await run(desk, range(100), work, every=50, budget=Budget(count=1))
    assert seen == list(range(11))
    assert spent.value.report["report"] == desk.ledger.report
    assert (spent.value.report["done"], spent.value.report["failed"]) == (11, 2)
    assert len(desk.report()) == 11


@both
async def test_unless_it_is_said_no_item_may_fail(desk: Desk, run: Run) -> None:
    with pytest.raises(BudgetSpentError, match="none may"):
        await run(desk, range(10), picky)


@both
async def test_a_share_of_few_items_is_looked_at_when_there_are_no_more(desk: Desk, run: Run) -> None:
    def never(_item: int, _key: str) -> None:
        raise ValueError

    with pytest.raises(BudgetSpentError, match="5 of 5"):
        await run(desk, range(5), never, every=2, budget=Budget(share=0.5))


@both
async def test_what_is_wrong_with_all_ends_the_try_and_the_next_one_goes_on_there(desk: Desk, run: Run) -> None:
    down = True
    seen: list[int] = []

    def work(item: int, _key: str) -> int:
        if item == 7 and down:
            raise ServiceUnavailable("it is down", 3.0)
        seen.append(item)
        return item

    with pytest.raises(ServiceUnavailable) as fault:
        await run(desk, range(10), work, every=5)
    assert fault.value.after_s == 3.0
    desk.keep()  # as the commit of a failed try does
    down = False
    ledger = await run(desk, range(10), work, every=5)
    assert seen == list(range(10))
    assert (ledger.done, ledger.failed, len(desk.report())) == (10, 0, 10)


@both
async def test_an_author_says_what_is_wrong_with_all(desk: Desk, run: Run) -> None:
    def work(item: int, _key: str) -> None:
        raise (ServiceUnavailable("one is down") if item else ConnectionError("the line is"))

    with pytest.raises(ConnectionError):
        await run(desk, range(3), work, transient=(ConnectionError,))
    ledger = await run(desk, range(1, 3), work, transient=(ConnectionError,), budget=Budget())
    assert ledger.failed == 2


@both
@pytest.mark.parametrize("error", [LapsedError(), DeadlinePassedError(), FilesTooLargeError()], ids=repr)
async def test_why_the_run_may_not_go_on_is_no_failure_of_an_item(desk: Desk, run: Run, error: Exception) -> None:
    def work(item: int, _key: str) -> None:
        if item == 3:
            raise error

    with pytest.raises(type(error)):
        await run(desk, range(10), work, budget=Budget())
    assert desk.ledger.failed == 0
    assert desk.ledger.done == (0 if isinstance(error, LapsedError) else 3)


@both
async def test_what_the_source_raises_is_raised_once_what_is_done_is_kept(desk: Desk, run: Run) -> None:
    def source() -> Iterator[int]:
        yield from range(5)
        raise OSError("the file ends here")

    with pytest.raises(OSError, match="ends here"):
        await run(desk, source(), double, every=3)
    assert desk.ledger.done == 5


@both
async def test_a_slow_batch_writes_checkpoints_before_it_has_enough_items(desk: Desk, run: Run) -> None:
    await run(desk, range(4), double, every=100, every_s=1e-9)
    assert desk.checkpoints == [1, 2, 3, 4]


@both
async def test_a_source_that_can_seek_goes_on_from_its_cursor(desk: Desk, run: Run) -> None:
    asked: list[Any] = []

    def after(cursor: int | None) -> Iterator[tuple[int, int]]:
        asked.append(cursor)
        begin = 0 if cursor is None else cursor
        yield from ((n, n + 1) for n in range(begin, 12))

    desk.on_checkpoint = dies_at(2)
    with pytest.raises(Killed):
        await run(desk, Seek(after), double, every=4)
    desk.on_checkpoint = lambda: None
    ledger = await run(desk, Seek(after), double, every=4)
    assert asked == [None, 8]
    assert (ledger.done, ledger.cursor) == (12, 12)
    assert [line["index"] for line in desk.report()] == list(range(12))


@both
async def test_one_without_a_proper_key_fails_by_its_place(desk: Desk, run: Run) -> None:
    def key(item: int) -> Any:
        return {0: "", 1: 1, 2: "x" * 201, 3: "\ud800", 4: "fine"}[item]

    ledger = await run(desk, range(6), double, key=key, budget=Budget())
    assert [one.index for one in ledger.failures] == [0, 1, 2, 3, 5]
    assert [line["key"] for line in desk.report()] == ["#0", "#1", "#2", "#3", "fine", "#5"]


@both
async def test_what_json_cannot_carry_is_reported_in_words(desk: Desk, run: Run) -> None:
    values: list[Any] = ["\ud800", float("nan"), {1, 2}, object, b"\xff", {"key": object()}]
    ledger = await run(desk, range(6), lambda item, _key: values[item])
    assert (ledger.done, len(desk.report())) == (6, 6)


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise KeyError("no words")

    __repr__ = __str__


@both
async def test_what_cannot_be_told_at_all_ends_no_other_item(desk: Desk, run: Run) -> None:
    def work(item: int, _key: str) -> Any:
        if item == 1:
            raise UnspeakableError
        return UnspeakableError() if item == 2 else _nested(5000)

    ledger = await run(desk, range(4), work, budget=Budget())
    assert [one.error for one in ledger.failures] == ["UnspeakableError: it cannot say what it is"]
    told = [line.get("result") for line in desk.report()]
    assert told[1:3] == [None, "a UnspeakableError that cannot be told"]
    assert told[0] == told[3] == "a list that cannot be told"


def _nested(depth: int) -> list[Any]:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


@both
async def test_an_error_of_half_characters_is_kept(desk: Desk, run: Run) -> None:
    def work(_item: int, _key: str) -> None:
        raise ValueError("half \ud800")

    ledger = await run(desk, range(1), work, budget=Budget())
    assert ledger.failures[0].error == "ValueError: half ?"
    assert desk.report()[0]["error"] == "ValueError: half ?"


@both
async def test_one_that_has_ended_is_not_begun_again(desk: Desk, run: Run) -> None:
    await run(desk, range(3), double)
    desk.keep()

    def never(_item: int, _key: str) -> None:
        raise AssertionError

    assert (await run(desk, range(3), never)).done == 3


@both
async def test_an_empty_source_is_done_at_once(desk: Desk, run: Run) -> None:
    ledger = await run(desk, [], double)
    assert (ledger.done, ledger.ended, desk.report(), desk.checkpoints) == (0, True, [], [])


@both
async def test_without_a_report_there_is_no_file(desk: Desk, run: Run) -> None:
    ledger = await run(desk, range(30), double, report=None, every=7)
    assert (ledger.done, ledger.report) == (30, None)
    assert desk.files.folder is not None
    assert list(desk.files.folder.iterdir()) == []


@both
async def test_a_report_that_stayed_on_another_machine_says_so_and_goes_on(
    desk: Desk, run: Run, tmp_path: Path
) -> None:
    desk.on_checkpoint = dies_at(2)
    with pytest.raises(Killed):
        await run(desk, range(10), double, every=3)
    desk.on_checkpoint, desk.files = (lambda: None), Files(tmp_path / "another machine")
    await run(desk, range(10), double, every=3)
    assert desk.report()[0] == {"lost": 6}
    assert [line["index"] for line in desk.report()[1:]] == [6, 7, 8, 9]


@both
@pytest.mark.parametrize(
    "wrong", [{"every": 0}, {"every": 1.5}, {"every_s": 0}, {"every_s": float("nan")}, {"total": -1}]
)
async def test_terms_that_cannot_be_are_refused(desk: Desk, run: Run, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        await run(desk, range(3), double, **wrong)
