"""P8: who gets a little further each time before it kills its worker is run alone in the end, and convicted."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.processes.commands import Front, tally
from tests.stories.stack import Stack, running
from tests.waiting import eventually


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_MISSIONS="tests.missions.creeping",
        DUALLOOP_LEASE_S="1.5",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


@pytest.mark.long
async def test_p8_who_makes_a_checkpoint_before_each_kill_is_found_out(stack: Stack, front: Front) -> None:
    """Four workers, as a toll of ten each less one each says, and three processes of its own."""
    one, worker = await front.send("test.creeping"), stack.workers[0]
    for _ in range(4):
        await eventually(lambda: worker.running.poll() is not None, within=60, what="the worker dies")
        await worker.start()
    await eventually(lambda: "quarantined" in worker.tail(10**6), within=120, what="it is convicted")

    document = await front.result(one)
    assert (document["status"], document["error"]["code"]) == ("FAILED", "worker_lost")
    assert "since workers died with it again and again" in document["error"]["message"]
    assert document["error"]["not_undone"] == ["BOOKING"]
    begun = [line[0] for line in tally(stack) if line[0].startswith("begin-")]
    assert len(begun) == len(set(begun)) == 7
    assert worker.running.poll() is None, "it killed no worker any more once it was alone"
