"""Handlers in threads and in child processes: what they are given, how they end, how they are cut, what they leave."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from backend_loop.mission import Mission
from backend_loop.outcomes import Fail, Go, Retry
from backend_loop.store import LapsedError
from backend_loop.toolbox import DeadlinePassedError
from shared.status import ErrorCode
from tests.missions import heavy
from tests.missions.heavy import InProcess, InThread
from tests.missions.tally import VARIABLE
from tests.processes.executing import Bench, executing
from tests.processes.proc import gone, offspring
from tests.waiting import eventually

BOTH = pytest.mark.parametrize("mission", [InThread, InProcess])


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench() -> AsyncIterator[Bench]:
    """One for all: the start of a child is what costs most."""
    async with executing() as bench:
        yield bench


@BOTH
async def test_a_handler_is_given_the_facts_of_its_run(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "answer")
    outcome = await run.end()
    assert isinstance(outcome, Go)
    facts = dict(outcome.result or {})
    assert (
        facts
        | {
            "key": "m:1:WORKING:1",
            "fence": 7,
            "attempt": 2,
            "visit": 1,
            "taken_over": False,
            "in_time": True,
            "received": None,
            "session": "kitchen",
        }
        == facts
    )
    assert facts["traceparent"].startswith("00-")
    assert (facts["pid"] == os.getpid()) == (mission is InThread)
    assert facts["main"] == (mission is InProcess)  # signals reach the handler there
    assert run.tools.context.done == ["before", "answer"]
    assert run.began.is_set()


@BOTH
async def test_the_event_loop_goes_on_meanwhile(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "sleep", seconds=0.5)
    ticks = 0
    while not run.task.done():
        await asyncio.sleep(0)
        ticks += 1
    assert isinstance(await run.end(), Go)
    assert ticks > 100


@BOTH
async def test_exceptions_are_the_type_s_own(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "value")
    if mission is InThread:
        with pytest.raises(ValueError, match="no such value"):
            await run.end()
        return
    assert await run.end() == Retry("ValueError: no such value")
    assert run.tools.context.done == ["before", "value"]
    assert await bench.run(mission, "paper").end() == Fail("OutOfPaperError: empty tray")
    assert await bench.run(mission, "sysexit").end() == Retry("SystemExit: 4")


async def test_the_traceback_of_a_child_is_in_our_log(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    run = bench.run(InProcess, "value")
    run.tools.attempt = 1  # later tries have nothing new to say of it
    await run.end()
    assert "handler failed" in caplog.text
    assert 'raise ValueError("no such value")' in caplog.text


@pytest.mark.parametrize(("how", "sentence"), [("segfault", "ended by SIGSEGV"), ("exit", "exited with 3")])
async def test_a_child_that_dies_is_a_retry_and_the_next_one_works(bench: Bench, how: str, sentence: str) -> None:
    outcome = await bench.run(InProcess, how).end()
    assert isinstance(outcome, Retry)
    assert outcome.code is ErrorCode.RETRIES_EXHAUSTED
    assert sentence in outcome.message
    assert isinstance(await bench.run(InProcess, "answer").end(), Go)


async def test_a_child_that_is_killed_from_outside_is_a_retry(bench: Bench) -> None:
    first = await bench.run(InProcess, "answer").end()
    run = bench.run(InProcess, "spin")
    await run.runs()
    os.kill(first.result["pid"], signal.SIGKILL)  # it is warm, so it is the one that runs now
    outcome = await run.end()
    assert isinstance(outcome, Retry)
    assert "SIGKILL" in outcome.message


async def test_what_a_handler_prints_does_not_break_the_protocol(bench: Bench) -> None:
    assert isinstance(await bench.run(InProcess, "print").end(), Go)


async def test_answers_that_no_commit_could_carry_fail(bench: Bench) -> None:
    nonsense = await bench.run(InProcess, "nonsense").end()
    assert isinstance(nonsense, Fail)
    assert "returned 42: return one of backend_loop.outcomes: Go" in nonsense.message
    unwritable = await bench.run(InProcess, "unwritable").end()
    assert isinstance(unwritable, Fail)
    assert "cannot be written as JSON" in unwritable.message
    much = await bench.run(InProcess, "much").end()
    assert isinstance(much, Fail)
    assert much.code is ErrorCode.TOO_LARGE


@BOTH
async def test_b27_a_cut_raises_in_the_handler(mission: type[Mission]) -> None:
    async with executing(cut_grace_s=60) as bench:
        run = bench.run(mission, "spin")
        await run.runs()
        run.task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await run.end()
        assert time.monotonic() - began < 40  # it did not take the grace


@BOTH
async def test_an_outcome_within_the_grace_counts(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "late")
    await run.runs()
    run.task.cancel()
    assert await run.end() == Fail("cut, and this is what I know")
    assert run.tools.context.done == ["before", "late"]


@BOTH
async def test_b27_who_does_not_listen_is_left_behind_or_killed_after_the_grace(
    bench: Bench, mission: type[Mission], caplog: pytest.LogCaptureFixture
) -> None:
    run = bench.run(mission, "deaf")
    await run.runs()
    began = time.monotonic()
    run.task.cancel()
    await asyncio.sleep(0)
    run.task.cancel()  # cancels while it has its grace change nothing
    with pytest.raises(asyncio.CancelledError):
        await run.end()
    assert 0.4 < time.monotonic() - began < 60
    assert ("handler left behind" if mission is InThread else "handler killed") in caplog.text
    assert f"{mission.__name__}.work" in caplog.text
    assert run.tools.context.done == ["before"]  # it worked on a copy, and what it says later is dropped
    run.may_hear()
    name = f"{mission.__name__}.work"
    await eventually(lambda: name not in {one.name for one in threading.enumerate()})


async def test_b27_what_a_killed_handler_has_started_dies_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "tally"))
    async with executing() as bench:
        run = bench.run(InProcess, "offspring")
        pid = await eventually(lambda: offspring(tmp_path / "tally"))
        assert not gone(pid)
        run.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run.end()
        await eventually(lambda: gone(pid))


@BOTH
async def test_p14_a_check_past_the_deadline_refuses(bench: Bench, mission: type[Mission]) -> None:
    with pytest.raises(DeadlinePassedError):
        await bench.run(mission, "spin", left_s=0.3).end()
    assert isinstance(await bench.run(mission, "answer").end(), Go)


@BOTH
async def test_p6_a_check_without_a_lease_refuses(bench: Bench, mission: type[Mission]) -> None:
    run = bench.run(mission, "spin")
    await run.runs()
    run.lease.begin()
    with pytest.raises(LapsedError):
        await run.end()


async def test_children_are_warm_and_replaced_after_so_many_runs() -> None:
    async with executing(process_runs=3) as bench:
        pids = [(await bench.run(InProcess, "answer").end()).result["pid"] for _ in range(5)]
    assert pids[0] == pids[1] == pids[2] != pids[3] == pids[4]


async def test_children_are_bounded_and_who_waits_for_one_has_not_begun() -> None:
    async with executing(processes=2) as bench:
        busy = [bench.run(InProcess, "spin") for _ in range(2)]
        await asyncio.gather(*(run.runs() for run in busy))
        waits = bench.run(InProcess, "answer")
        await asyncio.sleep(0)
        assert not waits.began.is_set()  # so its time-out does not count yet
        busy[0].task.cancel()
        await asyncio.wait({busy[0].task})
        assert isinstance(await waits.end(), Go)
        assert not busy[1].task.done()
        busy[1].task.cancel()
        await asyncio.wait({busy[1].task})


async def test_a_child_without_work_is_ended_after_a_while() -> None:
    async with executing(process_idle_s=0.3) as bench:
        pid = (await bench.run(InProcess, "answer").end()).result["pid"]
        await eventually(lambda: gone(pid))
        assert (await bench.run(InProcess, "answer").end()).result["pid"] != pid


async def test_threads_are_bounded_and_one_left_behind_counts() -> None:
    async with executing(slots=1, urgent_slots=0, cut_grace_s=0.1) as bench:
        first = bench.run(InThread, "deaf")
        await first.runs()
        first.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first.end()
        second = bench.run(InThread, "answer")
        await asyncio.sleep(0)
        assert not second.began.is_set()
        first.may_hear()
        assert isinstance(await second.end(), Go)


async def test_who_waits_for_a_place_can_be_cut() -> None:
    async with executing(processes=1) as bench:
        first, second = bench.run(InProcess, "spin"), bench.run(InProcess, "spin")
        await first.began.wait()
        second.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second.end()
        first.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first.end()
        assert isinstance(await bench.run(InProcess, "answer").end(), Go)


async def test_the_end_of_a_worker_is_the_end_of_its_children() -> None:
    async with executing() as bench:
        idle = (await bench.run(InProcess, "answer").end()).result["pid"]
        run = bench.run(InProcess, "deaf")
        await run.runs()
    assert gone(idle)
    assert isinstance(await run.end(), Retry)


async def test_the_handlers_are_what_this_file_says() -> None:
    assert {spec.runs for kind in (InThread, InProcess) for spec in kind.definition.states.values()} == {
        "thread",
        "process",
    }
    assert heavy.InLoop.definition.states["WORKING"].runs == "loop"
