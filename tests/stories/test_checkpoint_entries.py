"""What comes to a handler that may have acted already, at a checkpoint: it is undone, and none begins past a cancel."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.stories.midway import Bench, Tools, benched


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with benched(redis_url) as bench:
        yield bench


async def test_p21_a_cancel_at_one_with_nothing_new_undoes_what_may_have_happened(bench: Bench) -> None:
    """A pause was heard of, and the commit that reacts to it meets a cancel as well."""
    maybe: list[bool] = []

    async def play(tools: Tools) -> None:
        await bench.pause()
        await runner.signal()
        await bench.cancel()
        await tools.checkpoint()

    async def back(tools: Tools) -> None:
        maybe.append(tools.may_have_happened)

    await bench.take(play, back)
    runner = await bench.claim()
    await runner.run()
    assert maybe == [True]
    assert (await bench.result())["result"] == {"undone": ["WORKING"]}


async def test_p21_so_does_one_that_a_cut_handler_writes_last(bench: Bench) -> None:
    maybe: list[bool] = []

    async def play(tools: Tools) -> None:
        await bench.cancel()
        await runner.signal()
        try:
            await asyncio.Event().wait()
        finally:
            await tools.checkpoint()

    async def back(tools: Tools) -> None:
        maybe.append(tools.may_have_happened)

    await bench.take(play, back)
    runner = await bench.claim()
    await runner.run()
    assert maybe == [True]


async def test_p3_no_handler_begins_past_a_cancel_that_came_before_the_answer_to_its_checkpoint(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the answer was lost with its connection: what was posted meanwhile is read before it is sent again."""
    began: list[list[int]] = []
    written, let = asyncio.Event(), asyncio.Event()
    store = bench.store()
    sent = store.commit

    async def late(commit: Any) -> Any:
        answer = await sent(commit)
        written.set()
        await let.wait()
        return answer

    async def play(tools: Tools) -> None:
        began.append(list(tools.context.items))
        tools.context.items.append(1)
        await tools.checkpoint()

    await bench.take(play)
    runner = await bench.claim(store)
    monkeypatch.setattr(store, "commit", late)
    task = asyncio.create_task(runner.run())
    await written.wait()
    await bench.cancel()
    await runner.signal()
    let.set()
    await task
    assert began == [[]]
    assert await bench.log() == ["WORKING", "working", "CANCELLED"]
