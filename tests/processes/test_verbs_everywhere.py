"""Pause, resume and cancel by HTTP in every place of a mission; all workers are killed as soon as it is said."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from shared import keys
from tests.processes.commands import Front, events, tally
from tests.stories.stack import Stack, running
from tests.waiting import eventually

LEASE_S: Final = 1.0
DAY_S: Final = 86_400
PLACES: Final = ("lane", "waiters", "waiting", "parked", "paused", "leased", "ended")
"""In the order in which they are spoken to: once the leased one is cut, others move up."""


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_SLOTS="2",
        DUALLOOP_URGENT_SLOTS="0",
        DUALLOOP_LEASE_S=str(LEASE_S),
        DUALLOOP_TEST_TALLY=str(tmp_path / "tally"),
    ) as stack:
        yield stack


def place(stack: Stack, task_id: str) -> str:
    with redis.Redis.from_url(stack.redis_url, decode_responses=True) as client:
        return str(client.hget(keys.mission(0, task_id), "place"))


async def reaches(stack: Stack, task_id: str, where: str) -> None:
    await eventually(lambda: place(stack, task_id) == where, what=f"{task_id} stands in {where}")


async def everywhere(stack: Stack, front: Front) -> dict[str, str]:
    """A mission in each place; those that hold the two slots are leased, until the gate is open."""
    newer = stack.worker(DUALLOOP_MISSIONS="tests.missions.versions.second")
    await stack.start([newer])

    async def known() -> bool:
        return (await front.client.get("/v1/mission-types/test.gift")).status_code == 200

    await eventually(known)
    assert await newer.stop() == 0
    stack.workers.remove(newer)
    sleep = {"sleep_s": DAY_S, "wait_s": DAY_S}
    found = {"parked": await front.send("test.gift"), "ended": await front.send("test.noop")}
    for where in ("waiting", "paused"):
        found[where] = await front.send("test.patient", payload=sleep, deadline_s=30 * DAY_S)
        await reaches(stack, found[where], "waiting")
    assert (await front.client.post(f"/v1/commands/{found['paused']}/pause")).json()["status"] == "PAUSED"
    await front.end(found["ended"])
    gate = {"gate": str(stack.folder / "gate")}
    found["leased"] = await front.send("test.slow", payload=gate | {"entity": "lamp"})
    await front.send("test.slow", payload=gate)
    found["waiters"] = await front.send("test.slow", payload={"seconds": 0.1, "entity": "lamp"})
    await eventually(lambda: [line[0] for line in tally(stack)].count("begin") == 2)
    found["lane"] = await front.send("test.noop")
    for where, one in found.items():
        await reaches(stack, one, where)
    return found


async def say(front: Front, verb: str, found: dict[str, str]) -> dict[str, Any]:
    """To each of them; what was answered, by place."""
    said = {}
    for where in PLACES:
        answer = await front.client.post(f"/v1/commands/{found[where]}/{verb}")
        said[where] = answer.json()["status"] if answer.status_code == 202 else answer.json()["code"]
    return said


async def restart_workers(stack: Stack) -> None:
    for worker in stack.workers:
        worker.kill()
    (stack.folder / "gate").touch()
    for worker in stack.workers:
        await worker.start()


async def test_b24_a_cancel_in_every_place(stack: Stack, front: Front) -> None:
    found = await everywhere(stack, front)
    said = await say(front, "cancel", found)
    await restart_workers(stack)
    # what never began is ended on the spot; what a worker has begun is a worker's to end
    assert said == {
        "lane": "CANCELLED",
        "leased": "RUNNING",
        "waiting": "WAITING",
        "waiters": "CANCELLED",
        "parked": "CANCELLED",
        "paused": said["paused"],
        "ended": "ended",
    }
    for where in PLACES:
        document = await front.end(found[where])
        expected = ("SUCCEEDED", None) if where == "ended" else ("CANCELLED", "requested")
        assert (document["status"], document["reason"]) == expected, where
    for where in ("lane", "waiters", "parked"):
        assert found[where] not in {line[1] for line in tally(stack)}, f"who was cancelled in {where} never ran"
    again = await say(front, "cancel", found)
    assert set(again.values()) == {"CANCELLED", "ended"}


async def test_b24_a_pause_and_a_resume_in_every_place(stack: Stack, front: Front) -> None:
    found = await everywhere(stack, front)
    said = await say(front, "pause", found)
    await restart_workers(stack)
    assert said.pop("leased") == "RUNNING", "a pause waits for the next commit"
    assert said.pop("ended") == "ended"
    assert set(said.values()) == {"PAUSED"}
    for where in PLACES[:-1]:
        await reaches(stack, found[where], "paused")
        assert (await front.state(found[where]))[0] == "PAUSED"
    fresh = await front.send("test.slow", payload={"seconds": 0.01, "entity": "lamp"})
    assert (await front.end(fresh))["status"] == "SUCCEEDED", "who is paused holds no target"
    begun = [line for line in tally(stack) if line[1] in {found["lane"], found["waiters"], found["parked"]}]
    assert begun == []
    await say(front, "pause", found)
    assert [place(stack, found[where]) for where in PLACES[:-1]] == ["paused"] * 6, "again is the same"
    await say(front, "resume", found)
    await restart_workers(stack)
    for where in ("lane", "leased", "waiters"):
        assert (await front.end(found[where]))["status"] == "SUCCEEDED", where
    for where in ("waiting", "paused"):
        assert place(stack, found[where]) == "waiting", "and its time is the one it had"
    await reaches(stack, found["parked"], "parked")
    for where in PLACES[:-1]:
        log = b"".join(events(stack, found[where]))
        assert (log.count(b'"event":"paused"'), log.count(b'"event":"resumed"')) == (1, 1), (where, log)
