"""Batches on a real stack: killed at their checkpoints, drained between them, down for once, and out of budget."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.missions.batches import VARIABLE
from tests.processes import fatal
from tests.processes.commands import Front
from tests.processes.test_commit_boundaries import one_dies, revived
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
COUNT, EVERY = 200, 40
KINDS = ("test.batch_loop", "test.batch_thread", "test.batch_process")
kinds = pytest.mark.parametrize("kind", [KINDS[0], pytest.param(KINDS[1], marks=pytest.mark.long), KINDS[2]])


class Hall:
    """Two workers that may die where it is planned, and what their batches leave."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        self.stack, self.front, self.deaths = stack, Front(stack.foregrounds[0]), folder / "deaths"
        self.folder, self._items = folder, folder / "items"

    async def send(self, kind: str, **payload: Any) -> str:
        return await self.front.send(kind, payload={"count": COUNT, "every": EVERY} | payload)

    def items(self, one: str) -> Counter[str]:
        """How often each item of a mission was worked on, by key."""
        lines = self._items.read_text().splitlines() if self._items.exists() else []
        return Counter(line for line in lines if line.startswith(one))

    async def report(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        answer = await self.front.client.get(document["result"]["report"])
        return [json.loads(line) for line in answer.text.splitlines()]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_hall(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Hall]:
    folder = tmp_path_factory.mktemp("batches")
    (folder / "deaths").mkdir()
    env = {"DUALLOOP_LEASE_S": "1.2", fatal.VARIABLE: f"{folder}/deaths", VARIABLE: f"{folder}/items"}
    async with running(module_redis_url, folder, workers=0, DUALLOOP_MISSIONS="tests.missions.batches") as stack:
        workers = [stack.worker(**env) for _ in range(2)]
        for worker in workers:
            worker.module = "tests.processes.fatal"
        await stack.start(workers)
        hall = Hall(stack, folder)
        yield hall
        await hall.front.client.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def hall(shared_hall: Hall) -> Hall:
    """Both workers live, whatever the test before has done to them."""
    for worker in shared_hall.stack.workers:
        if worker.running.poll() is not None:
            worker.spawn()
        await worker.ready()
    return shared_hall


@kinds
async def test_b02_a_killed_batch_goes_on_behind_its_checkpoint(hall: Hall, kind: str) -> None:
    workers = hall.stack.workers
    for worker in workers:
        worker.kill()  # so that nobody begins before its death is planned
    one = await hall.send(kind, fails_each=50, may_fail=4)
    for point in ("after 3", "before 5"):
        await one_dies(workers, hall.deaths, one, point)
    async with revived(workers):
        document = await hall.front.end(one)
    assert document["status"] == "SUCCEEDED", document
    assert document["progress"] == {"done": COUNT, "total": COUNT, "message": "4 failed"}
    assert [failure["index"] for failure in document["result"]["failures"]] == [0, 50, 100, 150]
    report = await hall.report(document)
    assert [line["index"] for line in report] == list(range(COUNT)), "each once, in order"
    assert report[50] == {"index": 50, "key": "50", "ok": False, "error": "ValueError: item 50 cannot be had"}
    items = hall.items(one)
    assert items.keys() == {f"{one}:1:WORKING:1:{n}" for n in range(COUNT)}, "one key an item, whoever died"
    assert 0 < sum(times - 1 for times in items.values()) <= 2 * EVERY, (
        "only what came after a checkpoint is done again"
    )


@kinds
async def test_b28_a_drain_ends_a_batch_at_its_next_checkpoint(hall: Hall, kind: str) -> None:
    gate, workers = hall.folder / f"gate of {kind}", hall.stack.workers
    one = await hall.send(kind, gate=str(gate))
    await eventually(lambda: sum(hall.items(one).values()) == COUNT // 2)
    for worker in workers:
        said = worker.tail(10**6).count("drain")
        worker.running.terminate()
        await eventually(partial(_says_more, worker, said))
    gate.touch()
    await eventually(lambda: all(worker.running.poll() is not None for worker in workers))
    assert [worker.running.returncode for worker in workers] == [0, 0]
    assert COUNT // 2 < sum(hall.items(one).values()) < COUNT
    for worker in workers:
        worker.spawn()
    document = await hall.front.end(one)
    assert (document["status"], document["result"]["done"]) == ("SUCCEEDED", COUNT)
    assert max(hall.items(one).values()) == 1, "nothing is done again"
    assert [line["index"] for line in await hall.report(document)] == list(range(COUNT))


def _says_more(worker: Part, said: int) -> bool:
    return worker.tail(10**6).count("drain") > said


@kinds
async def test_what_is_down_for_once_costs_a_try_and_no_item(hall: Hall, kind: str) -> None:
    one = await hall.send(kind, down_at=100)
    document = await hall.front.end(one)
    assert (document["status"], document["result"]["failed"]) == ("SUCCEEDED", 0)
    assert [line["ok"] for line in await hall.report(document)] == [True] * COUNT


@kinds
async def test_a_batch_whose_budget_is_spent_fails_with_its_report(hall: Hall, kind: str) -> None:
    document = await hall.front.end(await hall.send(kind, fails_each=10, may_fail=2))
    assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
    assert "items failed, and 2 may" in document["error"]["message"]
    assert [failure["index"] for failure in document["result"]["failures"][:3]] == [0, 10, 20]
    report = await hall.report(document)
    assert len(report) == document["result"]["done"] < COUNT
    logs = [line for worker in hall.stack.workers for line in worker.tail(10**6).splitlines()]
    said = [line for line in logs if "BudgetSpentError" in line]
    assert said
    assert not any("Traceback" in line for line in said), "what is foreseen is a line, not a stack"
