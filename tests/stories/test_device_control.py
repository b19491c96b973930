"""`device.control` against a real Redis, a real worker and a real home, told as what happens to the lamp."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from backend_loop.missions import device_control
from backend_loop.missions.device_control import DeviceControl
from shared.clock import now_ms, parse_rfc3339, rfc3339
from tests.device_commands import LAMP, Document, Door, served_door
from tests.home import Home, running_home
from tests.waiting import eventually


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with running_home(tmp_path) as home:
        yield home


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lamp has half a second to show the effect."""
    monkeypatch.setattr(device_control, "PATIENCE_ELSE_S", 0.5)


@pytest.fixture
async def door(
    redis_url: str, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Door]:
    """The door, with a worker behind it that has more patience than on a machine that does nothing else."""
    monkeypatch.setattr(device_control, "LOOK_S", 8.0)
    monkeypatch.setattr(device_control, "ACT_S", 8.0)
    if "impatient" not in request.fixturenames:
        monkeypatch.setattr(device_control, "PATIENCE_ELSE_S", 60.0)
    async with served_door(redis_url, home, tmp_path, DeviceControl.definition) as door:
        yield door


async def test_light_on_is_confirmed_by_a_reading_newer_than_the_act(home: Home, door: Door) -> None:
    task = await door.send("turn_on")
    done = await door.end(task)
    assert done["status"] == "SUCCEEDED"
    assert done["result"] == {
        "outcome": "confirmed",
        "entity": LAMP,
        "value": {"power": "on", "brightness": 80},
        "before": {"power": "off", "brightness": 80},
    }
    fresh, act = done["freshness"], home.acts(LAMP)[0]
    assert (fresh["verified"], fresh["source"], fresh["version"]) == (True, "http", home.look(LAMP)["version"])
    assert parse_rfc3339(fresh["observed_at"]) >= parse_rfc3339(act["at"])
    assert 0 <= fresh["age_ms"] < 60_000
    assert act["key"] == f"{task}:1:EXECUTING_COMMAND:1"
    assert (await door.states(task))[-4:] == [
        "DECIDING_ACTION",
        "EXECUTING_COMMAND",
        "VERIFYING_RESULT",
        "SUCCEEDED",
    ]


async def test_a_light_that_is_on_is_left_alone(home: Home, door: Door) -> None:
    home.hand(LAMP, power="on")
    task = await door.send("turn_on")
    done = await door.end(task)
    assert (done["status"], done["result"]["outcome"]) == ("SUCCEEDED", "already_done")
    assert done["result"]["value"] == done["result"]["before"] == {"power": "on", "brightness": 80}
    assert done["freshness"]["verified"] is False, "nothing was read after an act, for there was none"
    assert home.acts(LAMP) == []
    assert (await door.states(task))[-3:] == ["DECIDING_ACTION", "ALREADY_DONE", "SUCCEEDED"]


@pytest.mark.usefixtures("impatient")
async def test_a_bridge_that_remembers_the_light_as_on_is_not_believed(home: Home, door: Door) -> None:
    """The hub believes that the lamp is on already, so that "on" sends nothing."""
    home.hand(LAMP, power="on")
    home.faults(LAMP, observe_stale=True)
    home.hand(LAMP, power="off")
    await eventually(lambda: asyncio.to_thread(lambda: home.http.get(f"/devices/{LAMP}").json()["age_ms"] > 0))
    done = await door.end(await door.send("turn_on"))
    assert [line["changed"] for line in home.acts(LAMP)] == [{"power": "on"}]
    assert (done["status"], done["error"]["code"]) == ("FAILED", "unconfirmed"), "no fresh reading was to be had"
    assert done["freshness"]["verified"] is False


@pytest.mark.parametrize(
    ("faults", "code", "acts"),
    [
        ({"offline": True}, "device_unreachable", 0),
        ({"refuse": True}, "device_refused", 0),
        ({"lie": True}, "unconfirmed", 0),
    ],
    ids=str,
)
@pytest.mark.usefixtures("impatient")
async def test_what_cannot_be_done_is_said(
    home: Home, door: Door, faults: dict[str, bool], code: str, acts: int
) -> None:
    home.faults(LAMP, **faults)
    done = await door.end(await door.send("turn_on"))
    assert (done["status"], done["error"]["code"]) == ("FAILED", code)
    assert LAMP in done["error"]["message"]
    assert len(home.acts(LAMP)) == acts
    assert home.look(LAMP)["value"]["power"] == "off"


@pytest.mark.usefixtures("impatient")
async def test_a_lie_is_told_with_what_was_seen(home: Home, door: Door) -> None:
    home.faults(LAMP, lie=True)
    done = await door.end(await door.send("turn_on"))
    assert done["result"]["value"]["power"] == "off"
    assert "power off" in done["error"]["message"]


@pytest.mark.parametrize(
    ("entity", "action", "value"), [("light.nowhere", "turn_on", None), ("climate.bedroom", "set_temperature", 5)]
)
async def test_no_such_device_and_more_than_it_can_are_refused(
    door: Door, entity: str, action: str, value: Any
) -> None:
    done = await door.end(await door.send(action, value, entity=entity))
    assert (done["status"], done["error"]["code"]) == ("FAILED", "device_refused")
    assert entity in done["error"]["message"]


async def test_a_device_that_comes_back_in_time_is_reached(home: Home, door: Door) -> None:
    home.hold(LAMP, "observe")
    home.faults(LAMP, offline=True)
    task = await door.send("turn_on")
    await door.held()
    home.release(LAMP)  # one try fails for certain

    async def retries() -> list[Document]:
        return [event for event in await door.events(task) if event["status"] == "WAITING"]

    await eventually(retries, what="a retry is waited for")
    home.faults(LAMP)
    assert (await door.end(task))["result"]["outcome"] == "confirmed"


def on_and_off(home: Home) -> None:
    """A person tries the switch, and leaves the lamp off."""
    home.hand(LAMP, power="on")
    home.hand(LAMP, power="off")


async def test_a_hand_between_the_look_and_the_act_wins(home: Home, door: Door) -> None:
    home.hold(LAMP, "observed")
    task = await door.send("turn_on")
    await door.held()
    on_and_off(home)
    home.release(LAMP)
    done = await door.end(task)
    assert (done["status"], done["reason"]) == ("CANCELLED", "overridden")
    assert done["result"]["value"]["power"] == "off"
    assert home.acts(LAMP) == []


async def test_a_hand_after_the_command_and_before_the_first_look_wins_too(home: Home, door: Door) -> None:
    home.hold(LAMP, "observe")
    task = await door.send("turn_on")
    await door.held()
    on_and_off(home)
    home.release(LAMP)
    done = await door.end(task)
    assert (done["status"], done["reason"]) == ("CANCELLED", "overridden")
    assert home.acts(LAMP) == []


async def test_a_hand_before_the_command_is_older_than_it(home: Home, door: Door) -> None:
    on_and_off(home)
    assert (await door.end(await door.send("turn_on")))["result"]["outcome"] == "confirmed"


async def test_a_hand_on_something_else_is_no_objection(home: Home, door: Door) -> None:
    home.hold(LAMP, "observed")
    task = await door.send("turn_on")
    await door.held()
    home.hand(LAMP, brightness=20)
    home.release(LAMP)
    done = await door.end(task)
    assert done["result"]["value"] == {"power": "on", "brightness": 20}


async def test_a_command_that_says_since_when_it_is_wanted_is_as_old_as_that(home: Home, door: Door) -> None:
    since = rfc3339(now_ms())
    on_and_off(home)
    done = await door.end(await door.send("turn_on", asked_at=since))
    assert (done["status"], done["reason"]) == ("CANCELLED", "overridden")
    assert home.acts(LAMP) == []


async def test_a_hand_that_did_what_was_wanted_leaves_nothing_to_do(home: Home, door: Door) -> None:
    home.hold(LAMP, "observed")
    task = await door.send("turn_on")
    await door.held()
    home.hand(LAMP, power="on")
    home.release(LAMP)
    assert (await door.end(task))["result"]["outcome"] == "already_done"
    assert home.acts(LAMP) == []


async def test_force_wins_over_a_hand(home: Home, door: Door) -> None:
    home.hold(LAMP, "observed")
    task = await door.send("turn_on", conflict="force")
    await door.held()
    on_and_off(home)
    home.release(LAMP)
    assert (await door.end(task))["result"]["outcome"] == "confirmed"


async def test_a_hand_after_the_act_contradicts(home: Home, door: Door) -> None:
    home.hold(LAMP, "acted")
    task = await door.send("turn_on")
    await door.held()
    home.hand(LAMP, power="off")
    home.release(LAMP)
    done = await door.end(task)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "contradicted")
    assert "by hand" in done["error"]["message"]
    assert done["result"]["value"]["power"] == "off"
    assert home.look(LAMP)["value"]["power"] == "off", "it is not fought over"
    assert len(home.acts(LAMP)) == 1


async def test_an_act_whose_answer_was_lost_is_looked_at_and_not_sent_again(home: Home, door: Door) -> None:
    """Also for a device that would not know the key."""
    home.faults(LAMP, lose_answer=True)
    home.hold(LAMP, "acted")
    task = await door.send("turn_on")
    await door.held()
    home.hold(LAMP, "act")  # a second command would stand here
    home.release(LAMP, "acted")
    done = await door.end(task)
    assert (done["status"], done["result"]["outcome"]) == ("SUCCEEDED", "confirmed")
    assert done["result"]["before"]["power"] == "off"
    assert done["freshness"]["verified"] is True
    assert home.standing(LAMP) == []
    assert len(home.acts(LAMP)) == 1


async def test_a_hand_after_an_act_whose_answer_was_lost_contradicts(home: Home, door: Door) -> None:
    home.faults(LAMP, lose_answer=True)
    home.hold(LAMP, "acted")
    task = await door.send("turn_on")
    await door.held()
    home.hand(LAMP, power="off")
    home.release(LAMP)
    done = await door.end(task)
    assert (done["status"], done["error"]["code"]) == ("FAILED", "contradicted")
    assert len(home.acts(LAMP)) == 1


async def test_a_command_that_never_arrived_is_sent_again_under_its_key(home: Home, door: Door) -> None:
    home.hold(LAMP, "act")
    task = await door.send("turn_on")
    await door.held()
    home.faults(LAMP, silent=True)
    home.release(LAMP)
    home.faults(LAMP)  # the silence ends with 504 and without an effect
    done = await door.end(task)
    assert done["result"]["outcome"] == "confirmed"
    assert [line["key"] for line in home.acts(LAMP)] == [f"{task}:1:EXECUTING_COMMAND:1"]


async def test_who_insists_tells_a_lamp_that_is_off_to_be_off_and_shuts_out_what_is_late(
    home: Home, door: Door
) -> None:
    home.hold(LAMP, "act")
    late = await door.send("turn_on")
    await door.held()
    await door.cancel(late)  # it has ended, and its command is still on its way
    assert (await door.end(late))["status"] == "CANCELLED"
    done = await door.end(await door.send("turn_off", insist=True))
    assert (done["result"]["outcome"], done["freshness"]["verified"]) == ("confirmed", True)
    home.release(LAMP)
    await eventually(lambda: not home.standing(LAMP), what="the late command has arrived")
    assert home.look(LAMP)["value"]["power"] == "off"
    assert [(line["action"], line["changed"]) for line in home.acts(LAMP)] == [("turn_off", {})]


async def test_who_insists_is_not_content_with_what_was_so_before(home: Home, door: Door) -> None:
    """The answer is lost, and the lamp was off before: nothing shows that the command has arrived."""
    home.faults(LAMP, lose_answer=True)
    home.hold(LAMP, "acted")
    task = await door.send("turn_off", insist=True)
    await door.held()
    home.hold(LAMP, "act")
    home.release(LAMP, "acted")
    await eventually(lambda: home.standing(LAMP) == ["act"], what="it is told once more")
    home.faults(LAMP)
    home.release(LAMP)
    assert (await door.end(task))["result"]["outcome"] == "confirmed"


async def test_one_lamp_obeys_one_command_at_a_time(home: Home, door: Door) -> None:
    home.hold(LAMP, "acted")
    first = await door.send("turn_on")
    await door.held()
    second = await door.send("turn_off")
    home.release(LAMP)
    assert (await door.end(first))["result"]["outcome"] == "confirmed"
    assert (await door.end(second))["result"]["outcome"] == "confirmed"
    acts = home.acts(LAMP)
    assert [line["action"] for line in acts] == ["turn_on", "turn_off"]
    assert acts[0]["fence"] < acts[1]["fence"]


async def test_an_unreachable_lamp_does_not_delay_another(home: Home, door: Door) -> None:
    home.faults(LAMP, silent=True)
    slow = await door.send("turn_on")
    quick = await door.end(await door.send("turn_on", entity="light.hall"))
    assert await door.unfinished(slow)
    assert quick["result"]["outcome"] == "confirmed"
    home.faults(LAMP, offline=True)  # so that it is given up sooner
    assert (await door.end(slow))["error"]["code"] == "device_unreachable"


async def test_a_setting_reaches_the_value_and_switches_on(home: Home, door: Door) -> None:
    entity = "climate.living_room"
    done = await door.end(await door.send("set_temperature", 26, entity=entity))
    assert done["result"]["value"] == {"power": "on", "temperature": 26, "mode": "cool"}
    assert home.look(entity)["value"]["temperature"] == 26
