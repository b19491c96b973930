"""B17, B18: whoever blocks the event loop is named, the line too; and what is only frozen blames nobody."""

import ctypes
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import pytest

from backend_loop.blocking import BlockWatch
from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome
from backend_loop.redis_clock import boottime
from tests.missions.heavy import hold, sleeps
from tests.processes.commands import Front, events, tally
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LIMIT_S = 0.2
LEASE_S = 1.5


class Indirect(Mission):
    """Does what it is given two calls below its handler, behind an await."""

    type = "test.indirect"
    table = steps("WORKING")

    @state("WORKING")
    async def work(self, tools: Callable[[], object]) -> Outcome:
        await _looks_innocent(tools)
        return Go("done")


async def _looks_innocent(does: Callable[[], object]) -> None:
    does()


def _blocks() -> None:
    sleeps(3 * LIMIT_S)


LONGER: Final = (3, 12, 48)
"""Limits to block for: where the machine is so slow that a thread saw too little of it, longer the next time."""


Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """What was logged, as fields."""
    return lambda: [cast("dict[str, Any]", record.msg) for record in caplog.records if isinstance(record.msg, dict)]


@contextmanager
def watched(ticked: Callable[[], float], limit_s: float = LIMIT_S) -> Iterator[BlockWatch]:
    watch = BlockWatch([Indirect.definition], limit_s)
    watch.begin(ticked)
    try:
        yield watch
    finally:
        watch.stop()


async def test_b18_the_handler_is_named_again_and_again_and_with_the_line(
    lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    for times in LONGER:
        caplog.clear()
        began = boottime()
        with watched(lambda began=began: began):  # type: ignore[misc]  # bound in the loop
            await Indirect().work(lambda times=times: sleeps(times * LIMIT_S))  # type: ignore[misc]  # bound now
        told, blocked_s = lines(), boottime() - began
        assert len(told) <= blocked_s / LIMIT_S  # once a limit, and not at each look
        if len(told) > 1:
            break
    for line in told[:2]:  # after these, it may be seen at its very end
        assert line["event"] == "handler blocks the event loop"
        assert line["level"] == "warning"
        assert (line["type"], line["state"], line["handler"]) == ("test.indirect", "WORKING", "Indirect.work")
        assert "heavy.py:" in line["line"]
        assert line["line"].endswith(" sleeps")
        assert 'runs="process"' in line["advice"]
    assert LIMIT_S <= told[0]["blocked_s"] < told[1]["blocked_s"]


async def test_b18_native_code_that_holds_the_interpreter_is_seen_once_it_lets_go(lines: Lines) -> None:
    """By a thread if one comes in before the handler has answered, else by the loop, right then."""
    began = boottime()
    with watched(lambda: began) as watch:
        await Indirect().work(lambda: hold(3 * LIMIT_S))
        watch.ran(Indirect.work)
    assert {line["handler"] for line in lines()} == {"Indirect.work"}


async def test_b18_no_thread_has_to_come_in_between(lines: Lines) -> None:
    watch = BlockWatch([Indirect.definition], LIMIT_S)
    watch.ran(Indirect.work)  # it watches nothing yet
    watch._ticked = lambda: boottime() - 2 * LIMIT_S
    watch.ran(Indirect.work)
    watch.ran(Indirect.work)
    (line,) = lines()
    assert (line["type"], line["state"], line["handler"]) == ("test.indirect", "WORKING", "Indirect.work")
    assert line["line"].endswith(" Indirect.work")


async def test_where_no_handler_is_found_the_line_is_named(lines: Lines) -> None:
    for times in LONGER:
        began = boottime()
        with watched(lambda began=began: began):  # type: ignore[misc]  # bound in the loop
            sleeps(times * LIMIT_S)
        if lines():
            break
    assert {line["event"] for line in lines()} == {"event loop blocked"}
    assert lines()[0]["line"].endswith(" sleeps")


async def test_a_loop_that_ticks_is_left_alone(lines: Lines) -> None:
    with watched(boottime):
        await Indirect().work(_blocks)
    assert lines() == []


async def test_a_process_that_was_frozen_blames_nobody(lines: Lines) -> None:
    """To the watch a freeze looks like this: all threads stand still, and the loop has not ticked since."""
    ticks = [boottime()]
    limit_s = 5 * LIMIT_S  # before its next look, a quarter of this, the loop must have ticked
    with watched(lambda: ticks[0], limit_s):
        ctypes.PyDLL(None).usleep(round(1.5e6 * limit_s))
        ticks[0] = boottime()
    assert lines() == []


async def test_who_has_blocked_once_is_named_again_the_next_time(lines: Lines) -> None:
    for times in LONGER:
        ticks = [boottime()]
        with watched(lambda ticks=ticks: ticks[0]):  # type: ignore[misc]  # bound in the loop
            await Indirect().work(lambda times=times: sleeps(times * LIMIT_S))  # type: ignore[misc]  # bound now
            first = len(lines())
            ticks[0] = boottime()
            await Indirect().work(lambda times=times: sleeps(times * LIMIT_S))  # type: ignore[misc]  # bound now
        if len(lines()) >= first + 2:
            break
    assert len(lines()) >= first + 2


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        workers=2,
        DUALLOOP_MISSIONS="tests.missions.plain,tests.missions.heavy",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


async def test_b17_a_block_shorter_than_the_lease_costs_a_warning_and_nothing_else(stack: Stack, front: Front) -> None:
    one = await front.send("test.blocks", payload={"how": "sleep", "seconds": 0.8 * LEASE_S})
    assert (await front.result(one))["status"] == "SUCCEEDED"
    assert b"reclaimed" not in b"".join(events(stack, one))
    lines = [line for line in said(stack, "handler blocks the event loop") if line["type"] == "test.blocks"]
    assert {(line["state"], line["handler"]) for line in lines} == {("WORKING", "InLoop.work")}


async def test_b17_b18_a_late_commit_is_refused_and_logged(stack: Stack, front: Front) -> None:
    """The handler holds the interpreter, so the thread that renews stands still too, and another worker takes over."""
    fifo = stack.folder / "fifo"
    os.mkfifo(fifo)
    one = await front.send("test.blocks", payload={"how": "hold", "mark": str(fifo)})
    document = await front.result(one)
    assert document["status"] == "SUCCEEDED"
    fences = [line[4] for line in tally(stack) if line[1] == one]
    assert len(fences) == 2
    os.close(os.open(fifo, os.O_WRONLY))  # the first worker comes back
    (refused,) = await eventually(lambda: said(stack, "stale_writes_rejected"))
    assert (refused["task_id"], refused["why"]) == (one, "FENCED")
    assert {line["handler"] for line in said(stack, "handler blocks the event loop")} == {"InLoop.work"}
    log = [json.loads(line) for line in events(stack, one)]
    assert [line["seq"] for line in log] == [1, 2, 3]  # started, reclaimed, the end: recorded once
    again = await front.send("test.noop")
    assert (await front.result(again))["status"] == "SUCCEEDED"


def said(stack: Stack, event: str) -> list[dict[str, Any]]:
    """Lines of the workers' logs."""
    texts = [worker.tail(10**6) for worker in stack.workers]
    lines = [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == event]
