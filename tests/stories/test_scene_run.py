"""`scene.run` against a real Redis, a real worker and a real home: what each device does, and what the scene says."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from backend_loop.missions import device_control
from backend_loop.missions.device_control import DeviceControl
from backend_loop.missions.scene_run import SceneRun
from tests.device_commands import LAMP, Document, Door, served_door
from tests.home import Home, running_home
from tests.waiting import eventually

HALL, STUDY, BLIND = "light.hall", "light.study", "cover.living_room"
SCENE = SceneRun.definition


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """One for each test: a home remembers the fences of a Redis that began anew."""
    with running_home(tmp_path) as home:
        yield home


@pytest.fixture
async def door(redis_url: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    """The door, with a worker behind it that has more patience than on a machine that does nothing else."""
    monkeypatch.setattr(device_control, "LOOK_S", 8.0)
    monkeypatch.setattr(device_control, "ACT_S", 8.0)
    monkeypatch.setattr(device_control, "PATIENCE_ELSE_S", 60.0)
    async with served_door(redis_url, home, tmp_path, SCENE, DeviceControl.definition) as door:
        yield door


def on(entity: str, **more: Any) -> Document:
    return {"entity": entity, "action": "turn_on", **more}


def outcomes(done: Document) -> list[str]:
    return [row["outcome"] for row in done["result"]["actions"]]


def acted(home: Home, *entities: str) -> list[str]:
    """Which of them were told something, in the order in which they were."""
    lines = [(line["at"], entity) for entity in entities for line in home.acts(entity)]
    return [entity for _, entity in sorted(lines)]


async def test_all_at_once_and_a_row_for_each(home: Home, door: Door) -> None:
    home.hand(HALL, power="on")
    home.hold(LAMP, "act")
    task = await door.submit(SCENE, {"actions": [on(LAMP), on(HALL), on(STUDY)]})
    await door.held()
    await eventually(lambda: len(home.acts(STUDY)) == 1, what="nobody waits for the first one")
    home.release(LAMP)
    done = await door.end(task)
    assert (done["status"], outcomes(done)) == ("SUCCEEDED", ["confirmed", "already_done", "confirmed"])
    assert {name: done["result"][name] for name in ("done", "failed", "not_begun")} == {
        "done": 3,
        "failed": 0,
        "not_begun": 0,
    }
    row = done["result"]["actions"][0]
    assert (row["value"], row["error"]) == ({"power": "on", "brightness": 80}, None)
    child = await door.end(row["task_id"])
    assert (child["type"], child["correlation_id"]) == ("device.control", task)


async def test_in_sequence_one_begins_when_the_one_before_has_ended(home: Home, door: Door) -> None:
    home.hold(LAMP, "acted")
    actions = [on(LAMP), on(HALL), on(LAMP, action="set_brightness", value=30)]
    task = await door.submit(SCENE, {"order": "sequence", "actions": actions, "pause_s": 0.1})
    await door.held()
    assert home.acts(HALL) == []
    home.release(LAMP)
    done = await door.end(task)
    assert outcomes(done) == ["confirmed"] * 3
    assert acted(home, LAMP, HALL) == [LAMP, HALL, LAMP]
    assert done["progress"] == {"done": 3, "total": 3, "message": None}
    pauses = [event for event in await door.events(task) if event["status"] == "WAITING" and event["data"] is None]
    assert len(pauses) == 2


async def test_a_failure_that_may_be_is_counted_and_the_rest_is_done(home: Home, door: Door) -> None:
    home.faults(LAMP, refuse=True)
    for order in ("parallel", "sequence"):
        home.hand(HALL, power="off")
        done = await door.end(await door.submit(SCENE, {"order": order, "actions": [on(LAMP), on(HALL)]}))
        assert (done["status"], outcomes(done)) == ("SUCCEEDED", ["device_refused", "confirmed"])
        assert done["result"]["failed"] == 1
        assert LAMP in done["result"]["actions"][0]["error"]["message"]


async def test_a_failure_that_stops_keeps_the_rest_from_beginning(
    home: Home, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_control, "PATIENCE_ELSE_S", 0.5)
    home.faults(HALL, lie=True)
    actions = [on(LAMP), on(HALL, on_failure="stop"), on(STUDY)]
    done = await door.end(await door.submit(SCENE, {"order": "sequence", "actions": actions}))
    assert (done["status"], done["error"]["code"]) == ("FAILED", "child_failed")
    assert HALL in done["error"]["message"]
    assert outcomes(done) == ["confirmed", "unconfirmed", "not_begun"]
    assert done["result"]["not_begun"] == 1
    assert home.acts(STUDY) == []
    assert home.look(LAMP)["value"]["power"] == "on", "nothing is undone: the rows say what was done"


async def test_what_is_under_way_beside_a_failure_is_watched_to_its_end(home: Home, door: Door) -> None:
    home.faults(LAMP, refuse=True)
    home.hold(HALL, "acted")
    task = await door.submit(SCENE, {"on_failure": "stop", "actions": [on(LAMP), on(HALL)]})
    await door.held(HALL)

    async def refused() -> bool:
        return any((event["data"] or {}).get("code") == "device_refused" for event in await door.events(task))

    await eventually(refused, what="one has failed")
    assert await door.unfinished(task)
    home.release(HALL)
    done = await door.end(task)
    assert (done["status"], outcomes(done)) == ("FAILED", ["device_refused", "confirmed"])


async def test_nothing_done_is_no_success(home: Home, door: Door) -> None:
    home.faults(LAMP, offline=True)
    done = await door.end(await door.submit(SCENE, {"actions": [on(LAMP)]}))
    assert (done["status"], done["error"]["code"]) == ("FAILED", "child_failed")
    assert outcomes(done) == ["device_unreachable"]


async def test_a_hand_after_the_scene_was_asked_for_wins_also_where_its_turn_comes_later(
    home: Home, door: Door
) -> None:
    home.hold(LAMP, "acted")
    task = await door.submit(SCENE, {"order": "sequence", "actions": [on(LAMP), on(HALL)]})
    await door.held()
    home.hand(HALL, power="on")
    home.hand(HALL, power="off")
    home.release(LAMP)
    done = await door.end(task)
    assert (done["status"], outcomes(done)) == ("SUCCEEDED", ["confirmed", "overridden"])
    assert home.acts(HALL) == []


async def test_a_scene_is_as_old_as_it_was_asked_for_and_a_newer_command_replaces_its_action(
    home: Home, door: Door
) -> None:
    home.hold(LAMP, "acted")
    scene = await door.submit(SCENE, {"order": "sequence", "actions": [on(LAMP), on(HALL)]})
    await door.held()
    newer = await door.end(await door.send("set_brightness", 20, entity=HALL))
    off = await door.end(await door.send("turn_off", entity=HALL))
    assert (newer["result"]["outcome"], off["result"]["outcome"]) == ("confirmed", "confirmed")
    home.release(LAMP)
    assert outcomes(await door.end(scene)) == ["confirmed", "superseded"]
    assert home.look(HALL)["value"]["power"] == "off"


async def test_a_cancel_reaches_what_is_under_way_and_nothing_further_begins(home: Home, door: Door) -> None:
    home.hold(LAMP, "act")
    task = await door.submit(SCENE, {"order": "sequence", "actions": [on(LAMP), on(HALL)]})
    await door.held()
    await door.cancel(task)
    done = await door.end(task)
    assert (done["status"], done["reason"]) == ("CANCELLED", "requested")
    [child] = await door.children(task)
    assert (await door.end(child["task_id"]))["status"] == "CANCELLED"
    home.release(LAMP)
    assert home.acts(HALL) == []


async def test_it_holds_no_target_while_its_actions_run(home: Home, door: Door) -> None:
    home.hold(LAMP, "acted")
    task = await door.submit(SCENE, {"actions": [on(LAMP)]}, target=HALL)
    await door.held()
    assert (await door.end(await door.send("turn_on", entity=HALL)))["result"]["outcome"] == "confirmed"
    home.release(LAMP)
    assert (await door.end(task))["status"] == "SUCCEEDED"
