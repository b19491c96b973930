"""Checkpoints on a real stack: whoever runs a long handler next goes on behind the last one, whatever ended it."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.processes.commands import Front, events, tally
from tests.processes.test_quarantine import record
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LEASE_S = 1.2
KINDS = ("test.keeps", "test.keeps_thread", "test.keeps_process")
kinds = pytest.mark.parametrize("kind", [KINDS[0], pytest.param(KINDS[1], marks=pytest.mark.long), KINDS[2]])


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_MISSIONS="tests.missions.plain,tests.missions.keeping",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_DRAIN_S="110",
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


class Work:
    """One such mission, and the gate that its items go through."""

    def __init__(self, stack: Stack, front: Front, kind: str = "test.keeps") -> None:
        self._stack, self._front, self._kind = stack, front, kind
        self._gate = stack.folder / "gate"
        self.task_id = ""

    async def begin(self, items: int, **command: Any) -> None:
        payload = {"items": items, "gate": str(self._gate), "kills": command.pop("kills", False)}
        self.task_id = await self._front.send(self._kind, payload=payload, **command)

    def let(self, items: int) -> None:
        """So many may be done by now."""
        self._gate.write_bytes(b"x" * items)

    def words(self, first: str) -> list[str]:
        """What its handlers did, of this word."""
        return [line[0] for line in tally(self._stack) if line[1] == self.task_id and line[0].startswith(first)]

    async def kept(self, items: int) -> None:
        """Wait until so many are durable."""
        await eventually(lambda: f"kept-{items}" in self.words("kept-"), what=f"{items} items are kept")

    async def begun(self, times: int) -> str:
        """Wait until its handler has begun so often; in which process it did last."""
        await eventually(lambda: len(self.words("begin-")) >= times, what=f"it has begun {times} times")
        return self.words("begin-")[times - 1]

    async def suspected(self) -> None:
        """Two workers die with it before it keeps anything."""
        for times in (1, 2):
            await self.begun(times)
            self._stack.workers[0].kill()
            await self._stack.workers[0].start()


@kinds
async def test_b02_a_killed_worker_costs_what_came_after_the_last_one_and_no_try(
    stack: Stack, front: Front, kind: str
) -> None:
    """P8: three workers die with it, each after something new, and it is no suspect."""
    work = Work(stack, front, kind)
    await work.begin(4)
    for n in (1, 2, 3):
        work.let(n)
        await work.kept(n)
        assert record(stack, work.task_id).get("deaths", "0") == "0"
        assert (await front.result(work.task_id, wait=0))["progress"] == {
            "done": n,
            "total": 4,
            "message": f"item {n}",
        }
        stack.workers[0].kill()
        await stack.workers[0].start()
        await work.begun(n + 1)
        assert record(stack, work.task_id)["deaths"] == "1"
    work.let(4)
    document = await front.result(work.task_id)
    assert (document["status"], document["result"]) == ("SUCCEEDED", {"items": [1, 2, 3, 4]})
    assert work.words("item-") == [f"item-{n}" for n in (1, 2, 3, 4)]
    assert {line[3] for line in tally(stack)} == {"1"}
    assert "suspect" not in stack.workers[0].tail(10**6)


@kinds
async def test_b28_a_drain_ends_it_at_the_next_one_and_another_worker_goes_on(
    stack: Stack, front: Front, kind: str
) -> None:
    work = Work(stack, front, kind)
    await work.begin(3)
    work.let(1)
    await work.kept(1)
    spare = stack.worker()
    await stack.start([spare])
    stack.workers[0].running.terminate()
    await eventually(lambda: "drain" in stack.workers[0].tail(10**6))
    work.let(2)
    await eventually(lambda: stack.workers[0].running.poll() is not None, within=80)  # of the 110 s that it has
    assert stack.workers[0].running.returncode == 0
    await work.begun(2)
    work.let(3)
    assert (await front.result(work.task_id))["result"] == {"items": [1, 2, 3]}
    assert work.words("item-") == ["item-1", "item-2", "item-3"]
    assert work.words("kept-") == ["kept-1", "kept-3"]
    assert b"reclaimed" not in b"".join(events(stack, work.task_id))


async def test_p9_a_bulk_mission_gives_its_only_slot_to_an_urgent_one(stack: Stack, front: Front) -> None:
    await stack.workers[0].restart(DUALLOOP_SLOTS="1", DUALLOOP_URGENT_SLOTS="0")
    work = Work(stack, front)
    await work.begin(3, priority="bulk")
    work.let(1)
    await work.kept(1)
    urgent = await front.send("test.noop", priority="urgent")
    assert (await front.state(urgent))[0] == "PENDING"
    work.let(2)
    assert (await front.result(urgent))["status"] == "SUCCEEDED"
    await work.begun(2)
    work.let(3)
    assert (await front.result(work.task_id))["result"] == {"items": [1, 2, 3]}
    assert work.words("item-") == ["item-1", "item-2", "item-3"]


@pytest.mark.parametrize("verb", ["pause", "cancel"])
async def test_p23_a_pause_ends_it_at_the_next_one_and_a_cancel_undoes_what_was_kept(
    stack: Stack, front: Front, verb: str
) -> None:
    work = Work(stack, front)
    await work.begin(3)
    work.let(1)
    await work.kept(1)
    assert (await front.client.post(f"/v1/commands/{work.task_id}/{verb}")).status_code == 202
    if verb == "cancel":
        document = await front.result(work.task_id)
        assert (document["status"], document["result"]) == ("CANCELLED", {"undone": ["WORKING"]})
        assert work.words("undo-") == ["undo-1"]
        return
    work.let(2)
    await eventually(partial(_stands, front, work.task_id, "PAUSED"))
    assert work.words("item-") == ["item-1", "item-2"]
    assert (await front.client.post(f"/v1/commands/{work.task_id}/resume")).status_code == 202
    work.let(3)
    assert (await front.result(work.task_id))["result"] == {"items": [1, 2, 3]}
    assert len(work.words("item-")) == 3


async def _stands(front: Front, task_id: str, status: str) -> bool:
    return (await front.state(task_id))[0] == status


async def test_p8_a_suspect_has_them_in_its_own_process_and_a_death_behind_one_convicts_nobody(
    stack: Stack, front: Front
) -> None:
    """Two workers die before it keeps anything; the third process is its own, where it gets on, and dies then."""
    work = Work(stack, front)
    await work.begin(2, kills=True)
    await work.suspected()
    alone = await work.begun(3)
    assert alone != f"begin-{stack.workers[0].running.pid}"
    work.let(1)
    await work.kept(1)
    again = await work.begun(4)
    assert again == f"begin-{stack.workers[0].running.pid}"  # among the others again: one death is no suspicion
    assert "quarantined" not in stack.workers[0].tail(10**6)
    assert record(stack, work.task_id)["deaths"] == "1"


async def test_a_drained_suspect_ends_at_its_next_one(stack: Stack, front: Front) -> None:
    work = Work(stack, front)
    await work.begin(2)
    await work.suspected()
    await work.begun(3)
    stack.workers[0].running.terminate()
    await eventually(lambda: "drain" in stack.workers[0].tail(10**6))
    work.let(1)
    await eventually(lambda: stack.workers[0].running.poll() is not None, within=80)
    assert (stack.workers[0].running.returncode, record(stack, work.task_id)["place"]) == (0, "lane")
    await stack.workers[0].start()
    work.let(2)
    assert (await front.result(work.task_id))["result"] == {"items": [1, 2]}
    assert work.words("item-") == ["item-1", "item-2"]
