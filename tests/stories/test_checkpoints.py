"""A checkpoint in the middle of a handler: what it keeps, what it costs, and who goes on behind it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_core import from_json

from backend_loop.midway import CheckpointError
from backend_loop.outcomes import Outcome, Sleep, WaitForChildren
from backend_loop.outcomes import Retry as Again
from backend_loop.store import LostError
from shared import keys
from shared.redis import ReplyError
from tests.stories.midway import Bench, Deaf, Long, Tools, benched


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with benched(redis_url) as bench:
        yield bench


async def test_context_and_progress_are_kept_and_the_handler_goes_on(bench: Bench) -> None:
    seen: list[Any] = []

    async def play(tools: Tools) -> None:
        for n in (1, 2, 3):
            tools.context.items.append(n)
            tools.progress(n, 3, f"item {n}")
            await tools.checkpoint()
            record = await bench.record()
            seen.append((record["rev"], await bench.items(), from_json(record["progress"])))

    await bench.take(play)
    await bench.run()

    told = [{"done": n, "total": 3, "message": f"item {n}"} for n in (1, 2, 3)]
    assert seen == [(f"{n}", list(range(1, n + 1)), told[n - 1]) for n in (1, 2, 3)]
    result = await bench.result()
    assert (result["result"], result["progress"]) == ({"items": [1, 2, 3]}, told[2])
    assert await bench.log() == ["WORKING", "SUCCEEDED"]


async def test_one_with_nothing_new_writes_nothing(bench: Bench) -> None:
    async def play(tools: Tools) -> None:
        await tools.checkpoint()
        assert (await bench.record()).get("rev", "0") == "0"
        tools.context.items.append(1)
        for _ in range(3):
            tools.progress(1)
            await tools.checkpoint()
        assert (await bench.record())["rev"] == "1"

    await bench.take(play)
    await bench.run()
    assert (await bench.record())["rev"] == "2"


async def test_the_next_worker_goes_on_behind_the_last_one(bench: Bench) -> None:
    """The first one dies: all that its handler did since is forgotten, and what is done again has the same key."""
    found: list[Any] = []
    kept = asyncio.Event()

    async def play(tools: Tools) -> None:
        found.append((list(tools.context.items), tools.attempt, tools.key))
        if tools.context.items:
            return
        tools.context.items.append(1)
        await tools.checkpoint()
        tools.context.items.append(2)
        kept.set()
        await asyncio.Event().wait()

    await bench.take(play)
    runner = await bench.claim()
    task = asyncio.create_task(runner.run())
    await kept.wait()
    runner.drop()
    task.cancel()
    await asyncio.wait({task})
    held = [(runner.claimed.task_id, runner.claimed.fence)]
    await bench.store().release(runner.claimed.owner, held)

    await bench.run()
    key = f"{bench.task_id}:1:WORKING:1"
    assert found == [([], 1, key), ([1], 1, key)]
    assert (await bench.result())["result"] == {"items": [1]}


@pytest.mark.parametrize(("news", "runs"), [(True, 3), (False, 2)])
async def test_tries_count_anew_behind_one_with_something_new(bench: Bench, news: bool, runs: int) -> None:
    """So a batch that fails now and then gets through, and one that fails at the same item each time does not."""
    ran = 0

    async def play(tools: Tools) -> Outcome:
        nonlocal ran
        ran += 1
        if news and ran < 3:
            tools.context.items.append(ran)
        await tools.checkpoint()
        return Again(f"failed at {ran}")

    await bench.take(play)
    while (await bench.record())["place"] != "ended":
        await bench.run()
    assert ran == runs
    assert await bench.log() == ["WORKING", *["WORKING"] * (runs - 1), "AFTER", "SUCCEEDED"]


async def test_the_time_out_counts_anew_behind_one_with_something_new(bench: Bench) -> None:
    limits: list[float] = []

    def limit() -> float:
        handle = runner._handling._limit
        assert handle is not None
        assert not handle.cancelled()
        return handle.when()

    async def play(tools: Tools) -> None:
        limits.append(limit())
        runner._handling._timeout_s = 1000.0  # to be seen where it counts anew
        await tools.checkpoint()
        limits.append(limit())
        tools.context.items.append(1)
        await tools.checkpoint()
        limits.append(limit())

    await bench.take(play)
    runner = await bench.claim()
    await runner.run()
    first, second, third = limits
    assert second == pytest.approx(first, abs=20)
    assert third > first + 500


async def test_a_failed_try_keeps_what_it_has_left_as_ever(bench: Bench) -> None:
    async def play(tools: Tools) -> Outcome | None:
        if len(tools.context.items) == 2:
            return None
        tools.context.items.append(1)
        await tools.checkpoint()
        tools.context.items.append(2)
        return Sleep(0)

    await bench.take(play)
    await bench.run()
    await bench.run()
    assert (await bench.result())["result"] == {"items": [1, 2]}


async def test_an_undo_has_them_too(bench: Bench) -> None:
    """It has two tries, and needs more; each gets on."""
    ran: list[tuple[list[int], bool]] = []

    async def play(tools: Tools) -> None:
        tools.context.items = [1, 2, 3]
        await bench.cancel()
        await tools.checkpoint()

    async def back(tools: Tools) -> Outcome | None:
        ran.append((list(tools.context.items), tools.may_have_happened))
        if not tools.context.items:
            return None
        tools.context.items.pop()
        await tools.checkpoint()
        return Again("again")

    await bench.take(play, back)
    while (await bench.record())["place"] != "ended":
        await bench.run()
    assert ran == [([1, 2, 3], True), ([1, 2], True), ([1], True), ([], True)]
    assert (await bench.result())["status"] == "CANCELLED"


async def test_children_begin_with_the_outcome_and_not_with_a_checkpoint(bench: Bench) -> None:
    rows = keys.outbox(0, "")

    async def play(tools: Tools) -> Outcome:
        tools.spawn(Long.type, {"work": "none"})
        tools.context.items.append(1)
        await tools.checkpoint()
        assert (await bench.kept()).course.children == ()
        assert await bench.link.call("EXISTS", rows + bench.task_id) == 0
        return WaitForChildren()

    await bench.take(play)
    await bench.run()
    assert len((await bench.kept()).course.children) == 1
    assert await bench.link.call("LLEN", rows + bench.task_id) == 1


# what cannot be kept


@pytest.mark.parametrize(("left", "code"), [("x" * 2_000_000, "too_large"), (object(), "permanent")])
async def test_what_cannot_be_kept_ends_it_unless_the_handler_does_something_about_it(
    bench: Bench, left: Any, code: str
) -> None:
    async def play(tools: Tools) -> None:
        tools.context.items.append(1)
        tools.context.left = left
        with pytest.raises(CheckpointError) as caught:
            await tools.checkpoint()
        assert caught.value.code == code
        tools.context.left = None
        await tools.checkpoint()  # all is well again
        tools.context.items.append(2)
        tools.context.left = left
        await tools.checkpoint()

    await bench.take(play)
    await bench.run()
    assert await bench.log() == ["WORKING", "AFTER", "SUCCEEDED"]  # it may be left out, and has failed for good
    data = from_json(await bench.link.call("LINDEX", keys.log(0, bench.task_id), 1))["data"]
    assert (data["event"], data["code"]) == ("skipped", code)
    assert await bench.items() == [1]


# whose mission it is not


async def test_a_mission_that_is_somebody_else_s_is_left_alone_whatever_the_handler_makes_of_it(bench: Bench) -> None:
    seen: list[BaseException] = []

    async def play(tools: Tools) -> None:
        tools.context.items.append(1)
        tools.progress(1)
        await bench.link.call("HSET", keys.mission(0, bench.task_id), "fence", tools.fence + 1)
        try:
            await tools.checkpoint()
        except Exception as error:  # noqa: BLE001  what a careless author does
            seen.append(error)

    await bench.take(play)
    store = bench.store()
    with pytest.raises(LostError):
        await (await bench.claim(store)).run()
    assert [type(error) for error in seen] == [LostError]
    assert (await bench.record()).get("rev", "0") == "0"
    assert store.reports._newest == {}  # nor is anything more told of it


async def test_a_fault_of_ours_is_no_failed_try_of_the_handler(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is handed back, as after any other; whatever the handler has made of it."""

    async def broken(_commit: Any) -> Any:
        raise ReplyError("commit: it broke")

    async def play(tools: Tools) -> None:
        tools.context.items.append(1)
        with pytest.raises(ReplyError):
            await tools.checkpoint()
        monkeypatch.undo()

    store = bench.store()
    monkeypatch.setattr(store, "commit", broken)
    await bench.take(play)
    with pytest.raises(ReplyError):
        await (await bench.claim(store)).run()
    assert (await bench.record()).get("rev", "0") == "0"


async def test_a_commit_whose_answer_was_lost_is_sent_again_and_written_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(tools: Tools) -> None:
        tools.context.items.append(1)
        await tools.checkpoint()
        assert (await bench.record())["rev"] == "1"

    store = bench.store()
    deaf = Deaf(store, monkeypatch)
    await bench.take(play)
    await (await bench.claim(store)).run()
    assert deaf.sent == 3
    assert (await bench.record())["rev"] == "2"


async def test_what_a_handler_leaves_behind_says_nothing_any_more(bench: Bench) -> None:
    """Not even while the next one runs, of the same mission: here its undo."""
    left: list[asyncio.Task[None]] = []
    ended = asyncio.Event()

    async def later(tools: Tools) -> None:
        await ended.wait()
        tools.context.items.append(2)
        tools.progress(2)
        await tools.checkpoint()

    async def play(tools: Tools) -> None:
        left.append(asyncio.create_task(later(tools)))
        tools.progress(1)
        tools.context.items.append(1)
        await bench.cancel()
        await tools.checkpoint()

    async def back(_tools: Tools) -> None:
        ended.set()
        await asyncio.wait(left)
        assert (await bench.record())["rev"] == "1"

    await bench.take(play, back)
    await bench.run()
    assert left[0].cancelled()
    assert (await bench.result())["progress"]["done"] == 1
