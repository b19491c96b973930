"""Handlers in threads and in child processes, midway: what they keep, what they say, and how they end there."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from backend_loop.midway import CheckpointError, Kept
from backend_loop.mission import Mission
from backend_loop.outcomes import Fail, Go, Retry
from backend_loop.step_lines import GATHERED_S
from backend_loop.store import LostError
from shared.status import ErrorCode
from tests.missions.heavy import InProcess, InThread
from tests.processes.executing import Bench, executing
from tests.waiting import eventually

GRACE_S = 100
BOTH = pytest.mark.parametrize("mission", [InThread, InProcess])


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench() -> AsyncIterator[Bench]:
    """One for all: the start of a child is what costs most."""
    async with executing(cut_grace_s=GRACE_S) as bench:
        yield bench


@BOTH
async def test_what_it_has_is_kept_as_it_was_then(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "keep")
    assert isinstance(await run.end(), Go)
    done = ["before", "keep", "item 1", "after 1", "item 2", "after 2", "item 3", "after 3"]
    assert [kept["done"] for kept in run.kept] == [done[:3], done[:5], done[:7]]
    assert run.tools.context.done == done
    assert run.said == [(n, 3, f"item {n}") for n in (1, 2, 3)]  # each before its checkpoint


@BOTH
async def test_it_ends_at_a_checkpoint_that_says_so(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "keep on")
    left = 3

    async def keeping() -> Kept:
        nonlocal left
        left -= 1
        return Kept(news=True, goes_on=left > 0)

    run.keeping = keeping
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await run.end()
    assert len(run.kept) == 3
    assert time.monotonic() - began < GRACE_S / 2  # it did not take the grace


@BOTH
async def test_a_cut_is_heard_by_one_that_waits_for_its_checkpoint(bench: Bench, mission: type[Mission]) -> None:
    """However long Redis is away."""
    run = bench.run(mission, "keep on")
    run.keeping = asyncio.Event().wait  # type: ignore[assignment]  # it never answers
    await eventually(lambda: run.kept)
    run.task.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await run.end()
    assert time.monotonic() - began < GRACE_S / 2


async def test_a_child_that_is_cut_while_it_speaks_says_it_to_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a frame would take what comes behind it for its other half: the worker would hear nothing any more."""
    deaf, reading = asyncio.Event(), list[asyncio.StreamReader]()
    exactly = asyncio.StreamReader.readexactly

    async def slowly(reader: asyncio.StreamReader, count: int) -> bytes:
        if count > 2_000_000:
            reading.append(reader)
            await deaf.wait()
        return await exactly(reader, count)

    monkeypatch.setattr(asyncio.StreamReader, "readexactly", slowly)
    run = bench.run(InProcess, "keep much")
    await eventually(lambda: reading)
    run.task.cancel()
    await asyncio.sleep(0)  # from here on it is cut, and in the midst of its frame
    await eventually(lambda: reading[0]._paused)  # type: ignore[attr-defined]  # the pipe is full
    deaf.set()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await run.end()
    assert time.monotonic() - began < GRACE_S / 2
    assert len(run.tools.context.done) == 3


async def test_what_a_thread_does_that_was_left_behind_is_in_no_context() -> None:
    """Not even where it has kept something before."""
    async with executing(cut_grace_s=0.1) as bench:
        run = bench.run(InThread, "keep, then deaf")
        await eventually(lambda: run.kept)
        run.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run.end()
        run.may_hear()
        name = f"{InThread.__name__}.work"
        await eventually(lambda: name not in {one.name for one in threading.enumerate()})
        assert run.tools.context.done == ["before", "keep, then deaf", "kept"]


async def test_what_a_handler_has_left_in_a_child_says_nothing_in_the_name_of_the_next_one(bench: Bench) -> None:
    """The next one is another mission's: its context would be this one's."""
    assert isinstance(await bench.run(InProcess, "leave").end(), Go)
    run = bench.run(InProcess, "let speak")
    assert isinstance(await run.end(), Go)
    assert (run.kept, run.said) == ([], [])
    assert run.tools.context.done == ["before", "let speak"]


@BOTH
async def test_what_cannot_be_kept_is_said_to_the_handler(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "unkept", seconds=0)

    async def keeping() -> Kept:
        if len(run.kept) == 1:
            raise CheckpointError("it is too much", ErrorCode.TOO_LARGE)
        return Kept(news=True, goes_on=True)

    run.keeping = keeping
    assert await run.end() == Fail("it is too much", ErrorCode.TOO_LARGE)
    assert [len(kept["done"]) for kept in run.kept] == [3, 2]


@BOTH
async def test_so_is_what_json_cannot_carry(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "unkept", seconds=1)
    outcome = await run.end()
    assert isinstance(outcome, Fail)
    assert outcome.code is ErrorCode.PERMANENT
    assert "the context cannot be written as JSON" in outcome.message
    assert [kept["done"] for kept in run.kept] == [["before", "unkept"]]


@BOTH
async def test_let_through_it_is_the_end_of_the_state(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "unkept, and lets it pass")

    async def keeping() -> Kept:
        raise CheckpointError("it is too much", ErrorCode.TOO_LARGE)

    run.keeping = keeping
    if mission is InThread:
        with pytest.raises(CheckpointError):
            await run.end()
    else:
        assert await run.end() == Fail("it is too much", ErrorCode.TOO_LARGE)


@BOTH
async def test_a_lost_mission_cuts_it_and_the_runner_knows_why(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "keep on")

    async def keeping() -> Kept:
        raise LostError("FENCED")

    run.keeping = keeping
    if mission is InThread:
        with pytest.raises(asyncio.CancelledError):
            await run.end()
    else:
        assert isinstance(await run.end(), Retry)
    assert len(run.kept) == 1
    with pytest.raises(LostError):
        await run.midway.settled()


@BOTH
async def test_progress_is_gathered_and_the_newest_comes_without_another_word(
    bench: Bench, mission: type[Mission]
) -> None:
    began = time.monotonic()
    run = bench.run(mission, "say")
    await eventually(lambda: run.said and run.said[-1].done == 20_000, within=60)
    assert len(run.said) <= 2 + (time.monotonic() - began) / GATHERED_S
    run.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.end()


@BOTH
async def test_what_was_said_last_comes_with_the_outcome(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "say last")
    await run.end()
    assert run.said == [(7, None, None)]
    again = bench.run(mission, "answer")
    await again.end()
    assert again.said == []


@BOTH
async def test_nonsense_is_a_failed_try(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "say nonsense")
    if mission is InThread:
        with pytest.raises(ValueError, match="progress: done is -1"):
            await run.end()
    else:
        assert await run.end() == Retry("ValueError: progress: done is -1: say a number from 0")
