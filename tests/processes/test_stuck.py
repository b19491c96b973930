"""B04: a process that lives, looks healthy and does nothing says so, and in the end ends itself."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.watchdog import STUCK
from tests.forge import forked
from tests.processes.commands import Front, acting, events, tally
from tests.processes.restartable import Restartable
from tests.stories.stack import Part, Stack, running
from tests.toxic import Toxic
from tests.waiting import eventually

STUCK_S = 1.0
ENV: dict[str, Any] = {"DUALLOOP_STUCK_S": str(STUCK_S), "DUALLOOP_DRAIN_S": "1"}


@contextmanager
def started(part: Part, module: str, **env: str) -> Iterator[None]:
    """The part, made by another program than the product's own."""
    with part.log.open("ab") as log:
        part.process = forked(
            ("-m", module), env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "."} | part.env | env, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        part.kill()


async def says(url: str, status: int, word: str) -> bool:
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        try:
            answer = await client.get(f"{url}/readyz")
        except httpx.HTTPError:
            return False
    return answer.status_code == status and word in answer.text


def _hung_foreground(redis_url: str, folder: Path) -> Part:
    part = Stack(redis_url, folder, ENV).foreground()
    part.env["DUALLOOP_PORT"] = str(part.port)
    return part


async def test_b04_a_foreground_whose_loop_hangs_is_not_ready_and_then_ends_itself(
    redis_url: str, tmp_path: Path
) -> None:
    part = _hung_foreground(redis_url, tmp_path)
    with started(part, "tests.processes.hung_foreground", DUALLOOP_TEST_HANGS="waits"):
        await eventually(partial(says, part.url, 503, "loop hanging has shown no sign of life"), within=60)
        await eventually(lambda: part.running.poll() is not None, within=60)
        assert part.running.returncode == STUCK
        assert '"loop": "hanging"' in part.tail() or '"loop":"hanging"' in part.tail()
        assert "loop stuck, ending the process" in part.tail()
        assert "foreground down" in part.tail(), "it ended in order"


async def test_b04_a_foreground_whose_event_loop_is_blocked_ends_without_an_orderly_stop(
    redis_url: str, tmp_path: Path
) -> None:
    part = _hung_foreground(redis_url, tmp_path)
    with started(part, "tests.processes.hung_foreground", DUALLOOP_TEST_HANGS="blocks"):
        await eventually(lambda: part.running.poll() is not None, within=60)
        assert part.running.returncode == STUCK
        assert "leaving now" in part.tail()


async def test_b04_while_redis_is_away_nobody_is_stuck(server: Restartable, tmp_path: Path) -> None:
    """Waiting for Redis is all that they can do: they are not ready, and are there when it comes back."""
    async with running(server.url, tmp_path, foregrounds=1, workers=1, **ENV) as stack:
        parts = [*stack.foregrounds, *stack.workers]
        server.kill()
        await eventually(partial(says, stack.workers[0].url, 503, "loop claim-s0 has shown no sign of life"), within=60)
        # past the time at which it would have ended, had Redis been there
        away = partial(_silent_for, stack.workers[0].url, 10 + 3 * STUCK_S)
        await eventually(away, within=60)
        assert [part.running.poll() for part in parts] == [None, None]
        server.start()
        front = Front(stack.foregrounds[0])
        assert (await front.end(await eventually(partial(_sent, front))))["status"] == "SUCCEEDED"
        await eventually(partial(says, stack.workers[0].url, 200, "ready"))
        await front.client.aclose()


async def _silent_for(url: str, seconds: float) -> bool:
    """Whether the claim loop says that it has waited for so long."""
    async with httpx.AsyncClient(trust_env=False, timeout=10) as client:
        try:
            text = (await client.get(f"{url}/readyz")).text
        except httpx.HTTPError:
            return False
    told = text.partition("claim-s0 has shown no sign of life for ")[2].partition(" s")[0]
    return bool(told) and float(told) > seconds


async def _sent(front: Front) -> str:
    answer = await front.client.post("/v1/commands", json={"type": "test.noop"})
    return str(answer.json()["correlation_id"]) if answer.status_code == 202 else ""


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url, tmp_path, DUALLOOP_TEST_TALLY=str(tmp_path / "tally"), DUALLOOP_TEST_CRON=str(tmp_path / "cron")
    ) as stack:
        yield stack


async def test_b04_a_background_whose_loop_hangs_hands_its_missions_back_and_ends_itself(
    stack: Stack, front: Front
) -> None:
    """The connection that arq has of its own goes silent, which nothing of arq's notices: the loop that polls hangs."""
    await stack.workers[0].stop()
    async with Toxic(stack.redis_url, word=b"arq:queue") as toxic:
        hung = stack.worker()
        hung.env |= {"DUALLOOP_REDIS_URL": toxic.url} | ENV
        with started(hung, "tests.missions.arq_worker"):
            one = await front.send("test.slow", payload={"seconds": 600})
            await eventually(partial(acting, front, one), within=60)
            toxic.hold_those()
            await eventually(lambda: hung.running.poll() is not None, within=60)
            assert hung.running.returncode == STUCK
            assert "loop arq has shown no sign of life" in hung.tail(10**6)
    await stack.workers[0].start()
    await eventually(lambda: [line[0] for line in tally(stack)].count("begin") == 2)
    assert b"reclaimed" not in b"".join(events(stack, one)), "it was handed back, not lost"
    await front.cancel(one)
    assert (await front.result(one))["status"] == "CANCELLED"
