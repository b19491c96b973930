"""Handlers that compute, as a real worker runs them: leases, cancels, deadlines, drains and kills do what they say."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from backend_loop.redis_clock import boottime
from tests.processes.commands import Front, events, tally
from tests.processes.proc import gone, offspring
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LEASE_S = 1.5
BOTH = pytest.mark.parametrize("type_", ["test.thread", "test.process"])


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_MISSIONS="tests.missions.plain,tests.missions.heavy",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_CUT_GRACE_S="0.5",
        DUALLOOP_DRAIN_S="4",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


def begun(stack: Stack, task_id: str) -> list[list[str]]:
    """The lines of its handler's beginnings."""
    return [line for line in tally(stack) if line[:2] == ["begin", task_id]]


@BOTH
async def test_b17_a_long_computation_costs_no_lease_and_no_neighbour_its_time(
    stack: Stack, front: Front, type_: str
) -> None:
    gate = stack.folder / "gate"
    one = await front.send(type_, payload={"how": "gate", "mark": str(gate)})
    await eventually(partial(begun, stack, one))
    long = boottime() + 3 * LEASE_S
    assert (await front.result(await front.send("test.noop")))["status"] == "SUCCEEDED"
    assert (await front.state(one))[0] == "RUNNING"
    await eventually(lambda: boottime() > long)
    gate.touch()
    assert (await front.result(one))["status"] == "SUCCEEDED"
    assert len(begun(stack, one)) == 1
    assert b"reclaimed" not in b"".join(events(stack, one))


async def test_p21_what_waits_for_a_child_process_has_not_begun_and_leaves_nothing_to_undo(
    stack: Stack, front: Front
) -> None:
    await stack.workers[0].restart(DUALLOOP_PROCESSES="1")
    busy = await front.send("test.process", payload={"how": "gate"})
    await eventually(partial(begun, stack, busy))
    waits = await front.send("test.process_undone")
    await eventually(lambda: len(events(stack, waits)) == 1)  # it is leased
    await front.cancel(waits)
    document = await front.result(waits)
    assert (document["status"], document["result"]) == ("CANCELLED", None)
    assert (await front.state(busy))[0] == "RUNNING"  # so nobody has made room for it
    await front.cancel(busy)


@BOTH
async def test_b27_cancel_and_deadline_reach_a_computation(stack: Stack, front: Front, type_: str) -> None:
    one = await front.send(type_, payload={"how": "spin"})
    await eventually(partial(begun, stack, one))
    await front.cancel(one)
    document = await front.result(one)
    assert (document["status"], document["reason"]) == ("CANCELLED", "requested")

    document = await front.overdue(partial(begun, stack), type_, payload={"how": "spin"})
    assert (document["status"], document["error"]["code"]) == ("FAILED", "deadline")
    assert len(begun(stack, document["task_id"])) == 1


@BOTH
async def test_b27_a_cancel_does_not_wait_longer_than_the_grace(stack: Stack, front: Front, type_: str) -> None:
    one = await front.send(type_, payload={"how": "deaf", "seconds": 600})
    await eventually(partial(begun, stack, one))
    await front.cancel(one)
    assert (await front.result(one))["status"] == "CANCELLED"
    word = "handler left behind" if type_ == "test.thread" else "handler killed"
    assert word in stack.workers[0].tail(10**6)
    assert (await front.result(await front.send("test.noop")))["status"] == "SUCCEEDED"
    assert await stack.workers[0].stop() == 0  # a thread that was left behind keeps no process from ending


@pytest.mark.parametrize("type_", ["test.thread_short", "test.process_short"])
async def test_a_time_out_cuts_a_computation_and_counts_as_a_try(stack: Stack, front: Front, type_: str) -> None:
    one = await front.send(type_, payload={"how": "spin"})
    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "timeout")
    assert b"".join(events(stack, one)).count(b'"event":"retry"') == 1  # its two tries
    assert {line[3] for line in begun(stack, one)} <= {"1", "2"}  # half a second may pass before it has said so


async def test_b18_a_process_may_hold_its_interpreter_and_die_without_the_worker(stack: Stack, front: Front) -> None:
    one = await front.send("test.process", payload={"how": "hold", "seconds": 2 * LEASE_S})
    await eventually(partial(begun, stack, one))
    crash = await front.send("test.process", payload={"how": "segfault"})
    document = await front.result(crash)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "retries_exhausted")
    assert "SIGSEGV" in document["error"]["message"]
    assert len(begun(stack, crash)) == 2
    assert (await front.result(one))["status"] == "SUCCEEDED"
    assert "blocks the event loop" not in stack.workers[0].tail(10**6)
    assert stack.workers[0].running.poll() is None


async def test_errors_are_the_type_s_own_in_both(stack: Stack, front: Front) -> None:
    for type_ in ("test.thread", "test.process"):
        one = await front.result(await front.send(type_, payload={"how": "paper"}))
        assert (one["status"], one["error"]["code"]) == ("FAILED", "permanent")
        assert one["error"]["message"].startswith("OutOfPaperError: empty tray")
        two = await front.result(await front.send(type_, payload={"how": "value"}))
        assert (two["status"], two["error"]["code"]) == ("FAILED", "retries_exhausted")
    assert stack.workers[0].tail(10**6).count('raise ValueError(\\"no such value\\")') == 2  # once a visit


async def test_the_context_goes_through_processes_and_threads_and_an_undo_may_be_one_too(
    stack: Stack, front: Front
) -> None:
    one = await front.send("test.process_undone")
    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
    assert [line[0] for line in tally(stack)] == ["did", "undid-did-failed"]


async def test_b28_a_drain_waits_for_a_computation_and_then_cuts_it(stack: Stack, front: Front) -> None:
    worker, gate = stack.workers[0], stack.folder / "gate"
    short = await front.send("test.process", payload={"how": "gate", "mark": str(gate)})
    long = await front.send("test.process", payload={"how": "gate"})
    threaded = await front.send("test.thread", payload={"how": "gate"})
    for one in (short, long, threaded):
        await eventually(partial(begun, stack, one))
    worker.running.terminate()
    await eventually(lambda: "drain" in worker.tail(10**6))
    gate.touch()
    await eventually(lambda: worker.running.poll() is not None)
    assert worker.running.returncode == 0
    assert (await front.result(short, wait=0))["status"] == "SUCCEEDED"
    for one in (long, threaded):
        assert (await front.state(one))[0] == "PENDING"
        assert b"reclaimed" not in b"".join(events(stack, one))


async def test_b02_who_kills_a_worker_kills_its_children_and_what_they_started(stack: Stack, front: Front) -> None:
    one = await front.send("test.process", payload={"how": "offspring"})
    pid = await eventually(lambda: offspring(stack.folder / "tally"))
    assert not gone(pid)
    stack.workers[0].kill()
    await eventually(lambda: gone(pid))
    assert (await front.state(one))[0] == "RUNNING"  # its lease has still to lapse
