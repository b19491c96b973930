"""What only one of the twins promises: items at once, cancels, asynchronous sources; and the check of a plain one."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from backend_loop.batch import Budget, BudgetSpentError, Ledger, Seek, each, each_sync
from backend_loop.services import ServiceUnavailable
from backend_loop.store import LapsedError
from tests.batch_desk import Awaited, Desk, Killed, beside_it, dies_at, double, in_loop, picky


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_an_asynchronous_source_is_taken_as_it_comes(desk: Desk) -> None:
    async def source() -> AsyncIterator[int]:
        for n in range(10):
            await asyncio.sleep(0)
            yield n

    desk.on_checkpoint = dies_at(1)
    with pytest.raises(Killed):
        await in_loop(desk, source(), double, every=4)
    desk.on_checkpoint = lambda: None
    ledger = await in_loop(desk, source(), double, every=4)
    assert (ledger.done, [line["index"] for line in desk.report()]) == (10, list(range(10)))
    with pytest.raises(TypeError, match="asynchronous"):
        await beside_it(Desk(desk.files.folder or Path()), Seek(lambda _cursor: _pairs()), double)


async def _pairs() -> AsyncIterator[tuple[int, int]]:
    yield 1, 1


async def test_so_many_are_under_way_at_once_and_no_more(desk: Desk) -> None:
    under_way, most = 0, 0
    together = asyncio.Event()

    async def work(_item: int, _key: str) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 4:
            together.set()
        await together.wait()
        await asyncio.sleep(0)
        under_way -= 1

    await each(Awaited(desk), desk.begin(), range(40), work, key=str, at_once=4, every=12)
    assert most == 4
    assert [line["index"] for line in desk.report()] == list(range(40)), "in order, whoever came first"


async def test_what_overtook_the_one_that_ended_the_try_is_worked_on_again(desk: Desk) -> None:
    seen = Counter[str]()
    second_done = asyncio.Event()
    down = True

    async def work(item: int, key: str) -> None:
        if item == 0 and down:
            await second_done.wait()
            raise ServiceUnavailable("down")
        seen[key] += 1
        if item == 1:
            second_done.set()

    terms: dict[str, Any] = {"key": str, "at_once": 2, "every": 4}
    with pytest.raises(ServiceUnavailable):
        await each(Awaited(desk), desk.begin(), range(4), work, **terms)
    assert desk.ledger.done == 0, "only what stands without a gap counts"
    desk.keep()
    down = False
    await each(Awaited(desk), desk.begin(), range(4), work, **terms)
    assert seen[f"{desk.key}:1"] == 2
    assert [line["index"] for line in desk.report()] == list(range(4))


async def test_a_cancel_cuts_all_that_is_under_way(desk: Desk) -> None:
    begun, cut = asyncio.Barrier(4), 0

    async def work(_item: int, _key: str) -> None:
        nonlocal cut
        await begun.wait()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut += 1
            raise

    ledger = desk.begin()
    task = asyncio.create_task(each(Awaited(desk), ledger, range(10), work, key=str, at_once=3))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (cut, ledger.done, ledger.failed) == (3, 0, 0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_work_that_swallows_a_cancel_is_the_last_that_is_begun(desk: Desk) -> None:
    begun, going = list[int](), asyncio.Event()

    async def work(item: int, _key: str) -> None:
        begun.append(item)
        going.set()
        if item < 2:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()

    task = asyncio.create_task(each(Awaited(desk), desk.begin(), range(100), work, key=str, at_once=2))
    await going.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert begun == [0, 1]


async def test_a_cancel_from_within_is_that_item_s_failure(desk: Desk) -> None:
    async def work(item: int, _key: str) -> None:
        if item == 1:
            inner = asyncio.create_task(asyncio.Event().wait())
            await asyncio.sleep(0)
            inner.cancel()
            await inner

    ledger = desk.begin()
    await each(Awaited(desk), ledger, range(3), work, key=str, budget=Budget(count=1))
    assert [one.error for one in ledger.failures] == ["it was cancelled from within"]
    assert ledger.done == 3


async def test_what_is_done_is_passed_over_without_holding_up_the_loop(desk: Desk) -> None:
    desk.kept = Ledger(done=50_000).model_dump_json()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    ledger = await in_loop(desk, range(50_003), double, report=None)
    beside.cancel()
    assert ledger.done == 50_003
    assert turns >= 50


async def test_beside_the_loop_it_asks_whether_it_may_go_on(desk: Desk) -> None:
    asked = 0

    def check() -> None:
        nonlocal asked
        asked += 1
        raise LapsedError("the lease has run out")

    desk.on_check = check
    with pytest.raises(LapsedError):
        await beside_it(desk, range(10), double)
    assert (asked, desk.ledger.done) == (1, 0)


def test_a_source_is_opened_once_and_closed(desk: Desk) -> None:
    closed: list[bool] = []

    def after(_cursor: Any) -> Iterable[tuple[int, int]]:
        try:
            for n in range(10):
                yield n, n
        finally:
            closed.append(True)

    with pytest.raises(BudgetSpentError):
        each_sync(desk, desk.begin(), Seek(after), picky, key=str)
    with pytest.raises(BudgetSpentError):
        asyncio.run(in_loop(desk, Seek(after), picky))
    assert closed == [True, True]
