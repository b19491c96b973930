"""An export whose workers are killed goes on behind its last checkpoint; its file is the same to the last byte."""

import contextlib
import hashlib
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

from tests.processes import fatal
from tests.processes.commands import Front
from tests.processes.test_commit_boundaries import one_dies, revived
from tests.reports import fill
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

COUNT = 50_000
TRIES = 10
"""Exports that may be over before anybody is met in their midst: on a busy machine the test may be the slower one."""

COMMAND = {"payload": {"table": "people"}}


async def exported(front: Front, one: str) -> bytes:
    """The file of a mission that succeeds; it is what the result says."""
    document = await front.end(one)
    assert document["status"] == "SUCCEEDED", document
    data = (await front.client.get(document["result"]["file"])).content
    assert document["result"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert document["result"]["rows"] == COUNT
    return data


async def whole(stack: Stack, front: Front) -> bytes:
    """What an export is that nobody disturbs."""
    fill(stack.folder / "data.sqlite", COUNT)
    return await exported(front, await front.send("report.export", **COMMAND))


async def done(front: Front, one: str) -> float:
    """How many rows it says that it has written."""
    progress: dict[str, Any] = (await front.result(one, wait=0))["progress"] or {}
    return float(progress.get("done", 0))


async def test_b02_two_kills_in_the_middle_leave_the_file_as_it_would_have_been(redis_url: str, tmp_path: Path) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    async with running(redis_url, tmp_path, workers=0, DUALLOOP_LEASE_S="1.2") as stack:
        workers = [stack.worker(**{fatal.VARIABLE: str(deaths)}) for _ in range(2)]
        for worker in workers:
            worker.module = "tests.processes.fatal"
        await stack.start(workers)
        front = Front(stack.foregrounds[0])
        undisturbed = await whole(stack, front)
        for worker in workers:
            worker.kill()  # so that nobody begins before its death is planned
        one = await front.send("report.export", **COMMAND)
        far = 0.0
        for point in ("after 5", "before 9"):
            await one_dies(workers, deaths, one, point)
            far, before = await done(front, one), far
            assert COUNT > far > before, "what was kept is told while nobody works on it"
        async with revived(workers):
            assert await exported(front, one) == undisturbed
        assert [path.name for path in _files(stack, one)] == ["report.csv"], "no part is left behind"
        await front.client.aclose()


async def test_a_killed_child_process_costs_a_try_and_not_the_file(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack:
        front = Front(stack.foregrounds[0])
        undisturbed = await whole(stack, front)
        kills = 0
        for _ in range(TRIES):
            one = await front.send("report.export", **COMMAND)
            while kills < 2 and (await front.result(one, wait=0))["finished_at"] is None:
                far = await done(front, one)
                await eventually(partial(_further, front, one, far))
                kills += _signal_children(stack.workers[0], signal.SIGKILL)
            if kills:
                break
        assert kills, "each was over before anything could be killed"
        assert await exported(front, one) == undisturbed
        await front.client.aclose()


async def test_b17_whoever_thaws_after_its_takeover_spoils_nothing(redis_url: str, tmp_path: Path) -> None:
    """Worker and child are frozen with the file open; another worker goes on, and is done before they wake up."""
    async with running(redis_url, tmp_path, DUALLOOP_LEASE_S="1.2") as stack:
        front, [old] = Front(stack.foregrounds[0]), stack.workers
        undisturbed = await whole(stack, front)
        for _ in range(TRIES):
            one = await front.send("report.export", **COMMAND)
            await eventually(partial(_further, front, one, 0))
            frozen = _signal_children(old, signal.SIGSTOP)
            old.freeze()
            if in_midst := frozen > 0 and await done(front, one) < COUNT:
                break
            old.thaw()
            _signal_children(old, signal.SIGCONT)
        assert in_midst, "each was over before anybody could be frozen"
        await stack.start([stack.worker()])
        assert await exported(front, one) == undisturbed
        old.thaw()
        _signal_children(old, signal.SIGCONT)
        await eventually(lambda: "lease lost" in old.tail(10**6), what="it has seen that it was overtaken")
        assert await old.stop() == 0
        assert await exported(front, one) == undisturbed
        assert [path.name for path in _files(stack, one)] == ["report.csv"], "no part is left behind"
        await front.client.aclose()


async def _further(front: Front, one: str, far: float) -> bool:
    document = await front.result(one, wait=0)
    return document["finished_at"] is not None or (document["progress"] or {}).get("done", 0) > far


def _signal_children(worker: Part, signum: signal.Signals) -> int:
    """To the processes in which a worker runs handlers; how many."""
    pid = worker.running.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    met = 0
    for child in children:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(int(child), signum)
            met += 1
    return met


def _files(stack: Stack, one: str) -> list[Path]:
    return sorted((stack.folder / "files" / one).iterdir())
