"""kill -9 at every commit boundary of a command that asks back, and of its answer: done once, and after the yes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic_core import to_json

from dualloop.home.model import Device
from dualloop.home.store import Store
from tests.home import Home, running_home
from tests.processes import fatal
from tests.processes.commands import Front
from tests.processes.test_commit_boundaries import client_of, revived
from tests.processes.test_sequences import commits, mortal
from tests.stories.stack import running
from tests.waiting import eventually

WITHIN_S = 240.0
NAMES: Final = (
    *("alpha", "bravo", "charlie", "delta", "foxtrot", "golf", "hotel", "india", "juliet", "kilo", "lima", "mike"),
    *("oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor", "whiskey", "yankee", "zulu"),
)
"""Of doors: nobody says the same as another one."""


def lock(name: str) -> str:
    return f"lock.{name}"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """With a door for each command."""
    with contextlib.closing(Store(tmp_path / "home")) as store:
        for name in NAMES:
            store.save(Device(entity=lock(name), limits={"lock": ["locked", "unlocked"]}, value={"lock": "locked"}))
    with running_home(tmp_path) as home:
        yield home


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    """What the doors are called."""
    file = tmp_path / "doors.json"
    devices = [{"entity": lock(name), "names": {"en": [f"{name} door"]}} for name in NAMES]
    file.write_bytes(to_json({"devices": devices}))
    return file


async def say(front: Front, name: str, text: str) -> str:
    """In the session of this door."""
    answer = await front.client.post("/v1/commands", json={"text": text, "locale": "en", "session": name})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["correlation_id"])


async def unlock(front: Front, name: str) -> dict[str, str]:
    """Ask for a door to be unlocked, and say yes to what will be asked back: in a session all is heard in its order."""
    return {"command": await say(front, name, f"unlock the {name} door"), "answer": await say(front, name, "yes")}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("victim", ["answer", pytest.param("command", marks=pytest.mark.long)])
async def test_a_kill_at_every_commit_boundary_unlocks_the_door_once(
    redis_url: str, tmp_path: Path, home: Home, inventory: Path, victim: str
) -> None:
    deaths = tmp_path / "deaths"
    deaths.mkdir()
    async with (
        running(redis_url, tmp_path, workers=0, DUALLOOP_HOME_FILE=str(inventory)) as stack,
        client_of(stack) as front,
    ):
        workers = await mortal(stack, home, deaths)
        await eventually(lambda: furnished(front), what="the foreground has taken the home in")
        whole = await unlock(front, NAMES[0])
        await check(front, home, NAMES[0], whole)
        count = commits(stack, whole[victim])
        points = [f"{when} {n + 1}" for n in range(count) for when in ("before", "after")]
        assert len(points) < len(NAMES)
        for worker in workers:
            worker.kill()  # so that nobody begins before its death is planned
        said = {name: await unlock(front, name) for name, _ in zip(NAMES[1:], points, strict=False)}
        for ids, point in zip(said.values(), points, strict=True):
            fatal.plan(deaths, ids[victim], point)
        for worker in workers:
            worker.spawn()
        async with revived(workers):
            for name, ids in said.items():
                await check(front, home, name, ids)
        for ids, point in zip(said.values(), points, strict=True):
            assert fatal.died(deaths, ids[victim]), f"nobody died {point}"


async def furnished(front: Front) -> bool:
    """Whether the inventory was taken in; workers that start from here on begin with it."""
    return bool((await front.client.get("/v1/home")).json()["inventory"]["devices"])


async def check(front: Front, home: Home, name: str, ids: dict[str, str]) -> None:
    """It was unlocked once, and both say so."""
    answer: dict[str, Any] = await front.end(ids["answer"], WITHIN_S)
    assert (answer["status"], answer["result"].get("answers")) == ("SUCCEEDED", ids["command"]), answer
    command: dict[str, Any] = await front.end(ids["command"], WITHIN_S)
    assert (command["status"], command["freshness"]["verified"]) == ("SUCCEEDED", True), command
    acts = home.acts(lock(name))
    assert home.look(lock(name))["value"] == {"lock": "unlocked"}
    assert [act["action"] for act in acts if act["changed"]] == ["unlock"], acts
    assert len({act["key"] for act in acts}) == 1, acts
