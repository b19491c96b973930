"""kill -9 at every commit boundary of a `device.sequence` and of its steps, one by one: every door is locked again."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import pytest
import redis

from dualloop.home.model import Device
from dualloop.home.store import Store
from shared import keys
from shared.fleet import Fleet
from shared.ids import Ids
from shared.redis import Link
from tests.home import Home, running_home
from tests.processes import fatal
from tests.processes.commands import Front
from tests.processes.test_commit_boundaries import client_of, revived
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

WORKERS = 4
WITHIN_S = 240.0  # there are some forty deaths, each of which costs a takeover
DOORS = 60
SENSOR = "sensor.front_door"


@dataclass(frozen=True)
class Way:
    """A way that a sequence goes; `places`: where it spawns the missions that are killed at their commits too."""

    name: str
    status: str
    second: dict[str, Any]
    places: tuple[str, ...]

    def payload(self, lock: str) -> dict[str, Any]:
        """Unlock, the second step, and locked in the end."""
        steps = [{"entity": lock, "action": "unlock"}, self.second]
        return {"steps": steps, "finally": [{"entity": lock, "action": "lock"}]}


LOOK: Final = {"entity": SENSOR, "expect": {"contact": "closed"}}
WAYS: Final = (
    Way("done", "SUCCEEDED", LOOK, ("DOING_STEPS:1:1", "DOING_STEPS:1:2", "FINISHING:1:1")),
    Way(
        "failed",
        "FAILED",
        {"entity": SENSOR, "expect": {"contact": "open"}},
        ("UNDO_DOING_STEPS:1:1",),
    ),
    Way("cancelled", "CANCELLED", {"wait_s": 3_600}, ("UNDO_DOING_STEPS:1:1",)),
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """With a door for each sequence."""
    with contextlib.closing(Store(tmp_path / "home")) as store:
        for n in range(DOORS):
            store.save(Device(entity=door(n), limits={"lock": ["locked", "unlocked"]}, value={"lock": "locked"}))
    with running_home(tmp_path) as home:
        yield home


def door(n: int) -> str:
    return f"lock.door_{n}"


async def ids_of(stack: Stack) -> Ids:
    """Those of its fleet, so that a child's id is known before it is born."""
    fleet, link = Fleet(1), await Link(stack.redis_url, timeout_s=5).open(wait_s=10)
    try:
        await fleet.join(link)
        return fleet.ids
    finally:
        await link.close()


def child(ids: Ids, root: str, place: str) -> str:
    """The id of the child that is spawned at this place."""
    mother = ids.read(root)
    assert mother is not None
    return ids.derived(0, mother.ms, f"{root}:1:{place}")


def commits(stack: Stack, task_id: str) -> int:
    """How many a mission has had in all."""
    with redis.Redis.from_url(stack.redis_url) as client:
        return int(cast("bytes", client.hget(keys.mission(0, task_id), "rev")))


async def cancel_open_ones(front: Front, home: Home, roots: Mapping[str, str]) -> None:
    """Cancel each sequence, by its lock, once that is unlocked."""
    left = dict(roots)

    async def all_are() -> bool:
        devices = (await asyncio.to_thread(home.http.get, "/devices")).json()["devices"]
        for lock in [one["entity"] for one in devices if one["value"].get("lock") == "unlocked"]:
            if (root := left.pop(lock, None)) is not None:
                assert (await front.cancel(root)).status_code == 202
        return not left

    await eventually(all_are, WITHIN_S, "all are unlocked")


async def ends(front: Front, home: Home, way: Way, roots: Mapping[str, str]) -> list[dict[str, Any]]:
    """The ends of these sequences; those that are to be cancelled are, once their door is open."""
    if way.status == "CANCELLED":
        await cancel_open_ones(front, home, roots)
    return await asyncio.gather(*(front.end(root, WITHIN_S) for root in roots.values()))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=() if way.name == "failed" else pytest.mark.long) for way in WAYS],
    ids=lambda way: way.name,
)
async def test_a_kill_at_every_commit_boundary_leaves_the_door_locked(
    redis_url: str, tmp_path: Path, home: Home, way: Way
) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    async with running(redis_url, tmp_path, workers=0) as stack, client_of(stack) as front:
        workers = await mortal(stack, home, deaths)
        ids, whole = await ids_of(stack), await front.send("device.sequence", payload=way.payload(door(0)))
        [document] = await ends(front, home, way, {door(0): whole})
        assert document["status"] == way.status
        counts = {"": commits(stack, whole)} | {at: commits(stack, child(ids, whole, at)) for at in way.places}
        points = [(at, f"{when} {n + 1}") for at in counts for n in range(counts[at]) for when in ("before", "after")]
        assert len(points) < DOORS
        for worker in workers:
            worker.kill()  # so that nobody begins before its death is planned
        roots = [await front.send("device.sequence", payload=way.payload(door(n + 1))) for n in range(len(points))]
        victims = [child(ids, root, at) if at else root for root, (at, _) in zip(roots, points, strict=True)]
        for victim, (_, point) in zip(victims, points, strict=True):
            fatal.plan(deaths, victim, point)
        for worker in workers:
            worker.spawn()
        async with revived(workers):
            documents = await ends(front, home, way, {door(n + 1): root for n, root in enumerate(roots)})
        for n, (document, victim, (at, point)) in enumerate(zip(documents, victims, points, strict=True)):
            assert document["status"] == way.status, (at, point, document["error"])
            fewer = int(point.split()[1]) > commits(stack, victim)  # a cancel may come while the step is under way
            assert fatal.died(deaths, victim) or fewer, f"nobody died {point} of {at or 'the sequence'}"
            check_door(home, door(n + 1), (at, point))


def check_door(home: Home, lock: str, point: tuple[str, str]) -> None:
    """It was unlocked once, is locked, and no act was had twice."""
    acts = home.acts(lock)
    assert home.look(lock)["value"] == {"lock": "locked"}, (point, acts)
    assert [act["action"] for act in acts if act["changed"]] == ["unlock", "lock"], (point, acts)
    assert len({act["key"] for act in acts}) == len(acts), (point, acts)


async def mortal(stack: Stack, home: Home, deaths: Path) -> list[Part]:
    """Workers with one slot each: a death takes one mission along, the one that it was meant for."""
    slots = {"DUALLOOP_SLOTS": "1", "DUALLOOP_URGENT_SLOTS": "0", "DUALLOOP_LEASE_S": "1.2"}
    own = {"DUALLOOP_HOME_URL": home.url, fatal.VARIABLE: str(deaths)}
    workers = [stack.worker(**slots, **own) for _ in range(WORKERS)]
    for worker in workers:
        worker.module = "tests.processes.fatal"
    await stack.start(workers)
    return workers
