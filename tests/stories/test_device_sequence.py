"""`device.sequence` against a real Redis, a real worker and a real home: whatever happens, the door is locked again."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from backend_loop.mission import undo
from backend_loop.missions import device_control, device_query
from backend_loop.missions.device_control import DeviceControl
from backend_loop.missions.device_query import DeviceQuery
from backend_loop.missions.device_sequence import DeviceSequence
from backend_loop.outcomes import Outcome
from backend_loop.retry import Retry as Policy
from backend_loop.toolbox import Toolbox
from tests.device_commands import LAMP, Document, Door, served_door
from tests.home import Home, running_home
from tests.waiting import eventually

LOCK, SENSOR = "lock.front_door", "sensor.front_door"
UNLOCK, LOCKED = {"entity": LOCK, "action": "unlock"}, {"entity": LOCK, "action": "lock"}
LOOK = {"entity": SENSOR, "expect": {"contact": "closed"}}
VISIT: Document = {"steps": [UNLOCK, LOOK], "finally": [LOCKED]}


class Impatient(DeviceSequence):
    """Gives up sooner."""

    @undo("DOING_STEPS", retry=Policy(tries=3, base_s=0.05))
    async def finish_nevertheless(self, tools: Toolbox[Any, Any]) -> Outcome | None:
        return await super().finish_nevertheless(tools)


SEQUENCE, IMPATIENT = DeviceSequence.definition, Impatient.definition


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """One for each test: a home remembers the fences of a Redis that began anew."""
    with running_home(tmp_path) as home:
        yield home


@pytest.fixture
async def door(redis_url: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    """The door, with a worker behind it that has more patience than on a machine that does nothing else."""
    for module, name, seconds in (
        (device_control, "LOOK_S", 8.0),
        (device_control, "ACT_S", 8.0),
        (device_control, "PATIENCE_ELSE_S", 60.0),
        (device_query, "LOOK_S", 8.0),
    ):
        monkeypatch.setattr(module, name, seconds)
    types = (SEQUENCE, DeviceControl.definition, DeviceQuery.definition)
    async with served_door(redis_url, home, tmp_path, *types) as door:
        yield door


def done_to(home: Home, entity: str = LOCK) -> list[str]:
    return [line["action"] for line in home.acts(entity)]


def is_locked(home: Home) -> bool:
    return bool(home.look(LOCK)["value"]["lock"] == "locked")


async def test_one_after_the_other_and_locked_in_the_end(home: Home, door: Door) -> None:
    task = await door.submit(SEQUENCE, VISIT)
    done = await door.end(task)
    assert (done["status"], done["error"]) == ("SUCCEEDED", None)
    steps, last = done["result"]["steps"], done["result"]["finally"]
    assert [(row["entity"], row["outcome"], row["value"]) for row in (*steps, *last)] == [
        (LOCK, "confirmed", {"lock": "unlocked"}),
        (SENSOR, "observed", {"contact": "closed"}),
        (LOCK, "confirmed", {"lock": "locked"}),
    ]
    assert (done_to(home), is_locked(home)) == (["unlock", "lock"], True)
    assert (await door.states(task)) == ["DOING_STEPS", "FINISHING", "SUCCEEDED"]
    assert done["progress"] == {"done": 3, "total": 3, "message": None}


async def test_a_step_begins_when_the_one_before_was_seen_to_be_done(home: Home, door: Door) -> None:
    home.hold(LOCK, "acted")
    steps = [UNLOCK, {"wait_s": 0.05}, {"entity": LAMP, "action": "turn_on"}]
    task = await door.submit(SEQUENCE, {"steps": steps, "finally": [LOCKED]})
    await door.held(LOCK)
    assert done_to(home, LAMP) == []
    home.release(LOCK)
    done = await door.end(task)
    assert [row.get("outcome") for row in done["result"]["steps"]] == ["confirmed", None, "confirmed"]
    assert (done_to(home, LAMP), is_locked(home)) == (["turn_on"], True)


async def test_what_was_not_as_expected_ends_it_and_the_door_is_locked(home: Home, door: Door) -> None:
    home.hand(SENSOR, contact="open")
    task = await door.submit(SEQUENCE, VISIT)
    done = await door.end(task)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "child_failed")
    assert done["error"]["message"] == f"step 2, look at {SENSOR}: {SENSOR} shows contact open, not closed"
    assert (done["result"].keys(), done["result"]["undone"]) == ({"steps", "undone"}, ["DOING_STEPS"])
    assert [row["outcome"] for row in done["result"]["steps"]] == ["confirmed", "unconfirmed"]
    assert (done_to(home), is_locked(home)) == (["unlock", "lock"], True)


async def test_a_look_may_wait_for_what_is_expected(home: Home, door: Door) -> None:
    home.hand(SENSOR, contact="open")
    task = await door.submit(SEQUENCE, {"steps": [UNLOCK, {**LOOK, "within_s": 20}], "finally": [LOCKED]})
    await eventually(lambda: done_to(home) == ["unlock"])
    home.hand(SENSOR, contact="closed")
    assert (await door.end(task))["status"] == "SUCCEEDED"
    assert is_locked(home)


async def test_a_cancel_between_the_act_and_its_answer_locks_the_door(home: Home, door: Door) -> None:
    home.hold(LOCK, "acted")
    task = await door.submit(SEQUENCE, VISIT)
    await door.held(LOCK)
    assert not is_locked(home)
    await door.cancel(task)
    done = await door.end(task)
    assert (done["status"], done["reason"], done["result"]["undone"]) == ("CANCELLED", "requested", ["DOING_STEPS"])
    assert (done_to(home), is_locked(home)) == (["unlock", "lock"], True)


async def test_an_unlocking_that_a_slow_bridge_held_back_comes_too_late(home: Home, door: Door) -> None:
    """The lock looks locked all the while: whoever is content with that leaves the door open."""
    home.hold(LOCK, "act")
    task = await door.submit(SEQUENCE, VISIT)
    await door.held(LOCK)
    await door.cancel(task)
    assert (await door.end(task))["status"] == "CANCELLED"
    home.release(LOCK)
    await eventually(lambda: not home.standing(LOCK), what="the unlocking has arrived")
    assert (done_to(home), is_locked(home)) == (["lock"], True)


async def test_a_deadline_in_the_middle_locks_the_door(home: Home, door: Door) -> None:
    steps = [UNLOCK, {"wait_s": 3_600}]
    task = await door.submit(SEQUENCE, {"steps": steps, "finally": [LOCKED]})
    await eventually(lambda: done_to(home) == ["unlock"])
    await door.expire(task)
    done = await door.end(task)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "deadline")
    assert done["result"]["undone"] == ["DOING_STEPS"]
    assert (done_to(home), is_locked(home)) == (["unlock", "lock"], True)


async def test_a_deadline_between_the_act_and_its_answer_locks_the_door(home: Home, door: Door) -> None:
    home.hold(LOCK, "acted")
    task = await door.submit(SEQUENCE, VISIT)
    await door.held(LOCK)
    await door.expire(task)
    done = await door.end(task)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "deadline")
    assert (done_to(home), is_locked(home)) == (["unlock", "lock"], True)


async def test_a_lock_that_is_away_is_locked_once_it_is_back(home: Home, door: Door) -> None:
    task = await door.submit(SEQUENCE, {"steps": [UNLOCK, {"wait_s": 3_600}], "finally": [LOCKED]})
    await eventually(lambda: done_to(home) == ["unlock"])
    home.faults(LOCK, offline=True)
    await door.cancel(task)

    async def tried_twice() -> bool:
        return len([event for event in await door.events(task) if (event["data"] or {}).get("event") == "retry"]) > 1

    await eventually(tried_twice, within=60, what="it was tried twice")
    assert await door.unfinished(task)
    home.faults(LOCK)
    assert (await door.end(task, within=90))["status"] == "CANCELLED"
    assert is_locked(home)


async def test_a_door_that_cannot_be_locked_is_told_loudly(
    redis_url: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_control, "PATIENCE_ELSE_S", 0.2)
    types = (IMPATIENT, DeviceControl.definition, DeviceQuery.definition)
    async with served_door(redis_url, home, tmp_path, *types) as door:
        home.hold(LOCK, "acted")
        last = [LOCKED, {"entity": LAMP, "action": "turn_off"}]
        task = await door.submit(SEQUENCE, {"steps": [UNLOCK, LOOK], "finally": last})
        await door.held(LOCK)
        home.faults(LOCK, lie=True)
        await door.cancel(task)
        done = await door.end(task)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "compensation_failed")
    assert done["error"]["not_undone"] == ["DOING_STEPS"]
    assert f"lock {LOCK}: {LOCK} shows lock unlocked" in done["error"]["message"]
    assert done_to(home, LAMP) == ["turn_off"], "what can be done is done, whatever cannot"


async def test_a_cancel_while_it_finishes_locks_the_door_all_the_same(home: Home, door: Door) -> None:
    home.hold(LOCK, "acted")
    task = await door.submit(SEQUENCE, {"steps": [UNLOCK], "finally": [LOCKED]})
    await door.held(LOCK)
    home.hold(LOCK, "act")  # where the locking is to stand
    home.release(LOCK, "acted")
    await eventually(lambda: home.standing(LOCK) == ["act"], what="it is about to lock")
    await door.cancel(task)
    done = await door.end(task)
    assert (done["status"], done["result"]["undone"]) == ("CANCELLED", ["DOING_STEPS"])
    assert is_locked(home)
    home.release(LOCK)


async def test_a_hand_does_not_keep_the_door_open(home: Home, door: Door) -> None:
    home.hold(SENSOR, "observe")
    task = await door.submit(SEQUENCE, VISIT)
    await door.held(SENSOR)
    home.hold(LOCK, "observed")
    home.release(SENSOR)
    await door.held(LOCK)  # it is looked at, and about to be locked
    home.hand(LOCK, lock="locked")
    home.hand(LOCK, lock="unlocked")
    home.release(LOCK)
    assert (await door.end(task))["status"] == "SUCCEEDED"
    assert is_locked(home)
    assert [child["name"] for child in await door.children(task)] == ["step 1", "step 2", "finally 1.1"]


async def test_a_newer_command_that_locks_the_door_leaves_nothing_to_do(home: Home, door: Door) -> None:
    """What is newer wins over the sequence's own lock, and what it left is what was wanted."""
    home.hold(SENSOR, "observe")
    task = await door.submit(SEQUENCE, VISIT)
    await door.held(SENSOR)
    assert (await door.end(await door.send("lock", entity=LOCK)))["status"] == "SUCCEEDED"
    home.release(SENSOR)
    done = await door.end(task)
    assert (done["status"], done["result"]["finally"][0]["outcome"]) == ("SUCCEEDED", "already_done")
    assert (done_to(home), is_locked(home)) == (["unlock", "lock"], True)


async def test_a_newer_unlocking_keeps_the_door_open_until_its_own_end(home: Home, door: Door) -> None:
    """Newer replaces older: the older one's locking is tried again until the newer one has locked the door."""
    home.hold(SENSOR, "observe")
    older = await door.submit(SEQUENCE, VISIT)
    await door.held(SENSOR)
    home.hand(LOCK, lock="locked")
    until_open = {"entity": SENSOR, "expect": {"contact": "open"}, "within_s": 60}
    newer = await door.submit(SEQUENCE, {"steps": [UNLOCK, until_open], "finally": [LOCKED]})
    await eventually(lambda: done_to(home) == ["unlock", "unlock"])
    home.release(SENSOR)

    async def superseded() -> bool:
        return any((event["data"] or {}).get("event") == "retry" for event in await door.events(older))

    await eventually(superseded, what="the older one's locking was replaced")
    assert not is_locked(home)
    home.hand(SENSOR, contact="open")
    assert (await door.end(newer))["status"] == "SUCCEEDED"
    done = await door.end(older, within=90)
    assert (done["status"], done["result"]["finally"][0]["outcome"]) == ("SUCCEEDED", "already_done")
    assert (done_to(home), is_locked(home)) == (["unlock", "unlock", "lock"], True)


async def test_a_step_that_is_refused_ends_it_and_nothing_further_is_begun(home: Home, door: Door) -> None:
    home.faults(LAMP, refuse=True)
    steps = [UNLOCK, {"entity": LAMP, "action": "turn_on"}, {"entity": "light.hall", "action": "turn_on"}]
    done = await door.end(await door.submit(SEQUENCE, {"steps": steps, "finally": [LOCKED]}))
    assert (done["status"], done["error"]["code"]) == ("FAILED", "child_failed")
    assert done["error"]["message"].startswith(f"step 2, turn_on {LAMP}: ")
    assert [row["outcome"] for row in done["result"]["steps"]] == ["confirmed", "device_refused", "not_begun"]
    assert (done_to(home, "light.hall"), is_locked(home)) == ([], True)


async def test_without_anything_to_be_so_in_the_end_nothing_is_done_about_it(door: Door) -> None:
    steps = [{"entity": LAMP, "action": "turn_on"}]
    done = await door.end(await door.submit(SEQUENCE, {"steps": steps}))
    assert (done["status"], done["result"]["finally"]) == ("SUCCEEDED", [])
