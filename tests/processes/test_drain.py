"""B28: a stop drains. It claims no more, finishes or hands on, gives leases back, and exits 0."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from signal import SIGINT, SIGTERM

import pytest

from backend_loop.redis_clock import boottime
from backend_loop.worker import DOUBLED_S
from tests.processes.commands import Front, acting, events, tally
from tests.processes.restartable import Restartable
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url, tmp_path, DUALLOOP_DRAIN_S="100", DUALLOOP_TEST_TALLY=str(tmp_path / "tally")
    ) as stack:
        yield stack


async def drained_in(stack: Stack, front: Front) -> str:
    """A mission in whose act the worker begins to drain; it ends once the gate is open."""
    one = await front.send("test.slow", payload={"gate": str(stack.folder / "gate")})
    await eventually(partial(acting, front, one))
    worker = stack.workers[0]
    worker.running.terminate()
    await eventually(lambda: "drain" in worker.tail(10**6))
    return one


async def test_b28_what_can_finish_its_state_does_and_the_next_state_is_another_worker_s(
    stack: Stack, front: Front
) -> None:
    one = await drained_in(stack, front)
    (stack.folder / "gate").touch()
    await eventually(lambda: stack.workers[0].running.poll() is not None)
    assert stack.workers[0].running.returncode == 0
    assert await front.state(one) == ("WAITING", "CHECKING")
    assert (await front.result(one, wait=0))["waiting_for"] == "worker"
    await stack.workers[0].start()
    assert (await front.result(one))["status"] == "SUCCEEDED"
    assert [line[0] for line in tally(stack)] == ["begin", "end", "run"]
    assert b"reclaimed" not in b"".join(events(stack, one))


async def test_b28_what_cannot_finish_in_time_is_handed_back_without_a_death(stack: Stack, front: Front) -> None:
    await stack.workers[0].restart(DUALLOOP_DRAIN_S="2")
    one = await front.send("test.slow", payload={"seconds": 600})
    await eventually(partial(acting, front, one))
    spare = stack.worker()
    await stack.start([spare])
    assert await stack.workers[0].stop() == 0
    await eventually(lambda: [line[0] for line in tally(stack)] == ["begin", "begin"])
    assert b"reclaimed" not in b"".join(events(stack, one))
    assert (await front.cancel(one)).status_code == 202
    assert (await front.result(one))["status"] == "CANCELLED"


async def test_b28_nothing_is_claimed_any_more_and_readiness_says_so(stack: Stack, front: Front) -> None:
    await drained_in(stack, front)
    worker = stack.workers[0]
    late = await front.send("test.noop")
    answer = await front.client.get(f"{worker.url}/readyz")
    assert (answer.status_code, "draining" in answer.text) == (503, True)
    (stack.folder / "gate").touch()
    await eventually(lambda: worker.running.poll() is not None)
    assert worker.running.returncode == 0
    assert await front.state(late) == ("PENDING", "WORKING")


async def test_b28_a_second_signal_means_now(stack: Stack, front: Front) -> None:
    one = await drained_in(stack, front)
    worker = stack.workers[0]
    await hurry(worker)
    assert worker.running.returncode == 0
    assert await front.state(one) == ("PENDING", "ACTING")


async def hurry(worker: Part) -> None:
    """A second signal, which is not the first one sent twice, and the end that is to follow on it."""
    later = boottime() + 2 * DOUBLED_S
    await eventually(lambda: boottime() > later)
    worker.running.terminate()
    await eventually(lambda: worker.running.poll() is not None)  # in no case the 100 s of the drain


async def test_b28_a_signal_that_is_sent_twice_is_one(stack: Stack, front: Front) -> None:
    worker = stack.workers[0]
    one = await front.send("test.slow", payload={"gate": str(stack.folder / "gate")})
    await eventually(partial(acting, front, one))
    worker.freeze()
    worker.running.send_signal(SIGTERM)
    worker.running.send_signal(SIGINT)
    worker.thaw()  # and hears both in the same moment
    await eventually(partial(_says, worker, "drain"))
    (stack.folder / "gate").touch()
    await eventually(lambda: worker.running.poll() is not None)
    assert not _says(worker, "drain cut short")
    assert [line[0] for line in tally(stack)] == ["begin", "end"]


async def test_b28_a_second_signal_is_heard_though_the_drain_has_hardly_begun(
    server: Restartable, tmp_path: Path
) -> None:
    """A Redis that gives no answer holds it up where it hands its offices on."""
    async with running(server.url, tmp_path, DUALLOOP_DRAIN_S="100") as stack:
        front, worker = Front(stack.foregrounds[0]), stack.workers[0]
        async with front.client:
            await eventually(partial(_says, worker, "lead"))
            one = await front.send("test.slow", payload={"gate": str(tmp_path / "gate")})
            await eventually(partial(acting, front, one))
            server.freeze()
            worker.running.terminate()
            await eventually(partial(_says, worker, "drain"))
            await hurry(worker)
            assert _says(worker, "drain cut short")
            assert worker.running.returncode == 0
            server.thaw()


def _says(worker: Part, event: str) -> bool:
    return f'"event":"{event}"' in worker.tail(10**6)


async def test_the_front_finishes_what_it_has_begun_to_answer(stack: Stack, front: Front) -> None:
    await stack.workers[0].stop()
    one = await front.send("test.noop")
    assert await stack.foregrounds[0].stop() == 0
    await stack.foregrounds[0].start()
    await stack.workers[0].start()
    assert (await front.result(one))["status"] == "SUCCEEDED"
