"""`device.query` against a real Redis, a real worker and a real home: what is seen, and what cannot be."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backend_loop.missions import device_query
from backend_loop.missions.device_control import DeviceControl
from backend_loop.missions.device_query import DeviceQuery
from shared.clock import now_ms, parse_rfc3339
from tests.device_commands import LAMP, Document, Door, served_door
from tests.home import Home
from tests.waiting import eventually

SENSOR, HALL = "sensor.front_door", "light.hall"
QUERY = DeviceQuery.definition


@pytest.fixture
async def door(redis_url: str, home: Home, tmp_path: Path) -> AsyncIterator[Door]:
    """The door, with a worker behind it."""
    async with served_door(redis_url, home, tmp_path, QUERY, DeviceControl.definition) as door:
        yield door


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device has half a second to show itself."""
    monkeypatch.setattr(device_query, "LOOK_S", 0.5)


async def ask(door: Door, payload: Document, **more: Any) -> Document:
    return await door.end(await door.submit(QUERY, payload, **more))


async def test_what_a_device_shows_now_is_said_with_when_it_was_seen(home: Home, door: Door) -> None:
    before = now_ms()
    done = await ask(door, {"entity": LAMP})
    assert (done["status"], done["result"]) == (
        "SUCCEEDED",
        {"entity": LAMP, "value": {"power": "off", "brightness": 80}},
    )
    fresh = done["freshness"]
    assert (fresh["source"], fresh["version"]) == ("http", home.look(LAMP)["version"])
    assert fresh["verified"] is False, "nothing was done that this reading could verify"
    assert parse_rfc3339(fresh["observed_at"]) >= before
    assert 0 <= fresh["age_ms"] < 60_000


async def test_a_look_does_not_queue_behind_an_act(home: Home, door: Door) -> None:
    home.hold(LAMP, "act", every=True)
    act = await door.send("turn_on")
    await door.held()
    assert (await ask(door, {"entity": LAMP}))["result"]["value"]["power"] == "off"
    assert await door.unfinished(act)
    home.release(LAMP)
    await door.end(act)


async def test_several_are_looked_at_together_and_the_oldest_look_dates_the_answer(home: Home, door: Door) -> None:
    home.hold(LAMP, "observed")
    task = await door.submit(QUERY, {"entity": [LAMP, SENSOR, HALL]})
    await door.held()
    home.release(LAMP)
    done = await door.end(task)
    rows = done["result"]["devices"]
    assert [row["entity"] for row in rows] == [LAMP, SENSOR, HALL]
    assert rows[1]["value"] == {"contact": "closed"}
    assert {row["error"] for row in rows} == {None}
    assert done["freshness"]["observed_at"] == min(row["freshness"]["observed_at"] for row in rows)


@pytest.mark.parametrize(
    ("entity", "faults", "code"),
    [
        (HALL, {"offline": True}, "device_unreachable"),
        (HALL, {"silent": True}, "device_unreachable"),
        ("light.nowhere", None, "device_refused"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("impatient")
async def test_who_cannot_be_seen_is_named_and_the_others_are_told(
    home: Home, door: Door, entity: str, faults: dict[str, bool] | None, code: str
) -> None:
    if faults is not None:
        home.faults(entity, **faults)
    done = await ask(door, {"entity": [LAMP, entity]})
    assert (done["status"], done["error"]["code"]) == ("FAILED", code)
    assert entity in done["error"]["message"]
    seen, unseen = done["result"]["devices"]
    assert (seen["value"]["power"], seen["error"]) == ("off", None)
    assert (unseen["value"], unseen["freshness"]) == (None, None)
    assert entity in unseen["error"]
    alone = await ask(door, {"entity": entity})
    assert (alone["error"]["code"], alone["result"], alone["freshness"]) == (
        code,
        {"entity": entity, "value": None},
        None,
    )


@pytest.mark.usefixtures("impatient")
async def test_what_a_bridge_remembers_is_told_and_is_no_look(home: Home, door: Door) -> None:
    home.faults(LAMP, observe_stale=True)
    home.hand(LAMP, power="on")
    asked_at = now_ms()
    done = await ask(door, {"entity": LAMP})
    assert (done["status"], done["error"]["code"]) == ("FAILED", "device_unreachable")
    assert "remembers" in done["error"]["message"]
    assert done["result"]["value"]["power"] == "off"
    assert parse_rfc3339(done["freshness"]["observed_at"]) < asked_at


@pytest.mark.usefixtures("impatient")
async def test_a_device_that_is_slow_to_come_back_is_seen_in_the_end(home: Home, door: Door) -> None:
    home.faults(LAMP, offline=True)
    task = await door.submit(QUERY, {"entity": LAMP})

    async def waits() -> bool:
        return any(event["status"] == "WAITING" for event in await door.events(task))

    await eventually(waits, what="it is to be looked at again")
    home.faults(LAMP)
    assert (await door.end(task))["status"] == "SUCCEEDED"


@pytest.mark.usefixtures("impatient")
async def test_it_ends_with_its_own_word_before_the_deadline_comes(
    home: Home, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it leaves of its deadline is longer here: the machine may be slow."""
    monkeypatch.setattr(device_query, "END_S", 15.0)
    home.faults(LAMP, silent=True)
    done = await ask(door, {"entity": LAMP}, within_s=31)
    assert done["error"]["code"] == "device_unreachable"
    expected = await ask(door, {"entity": HALL, "expect": {"power": "on"}, "within_s": 60}, within_s=17)
    assert expected["error"]["code"] == "unconfirmed"


async def test_it_waits_until_a_device_shows_what_is_expected(home: Home, door: Door) -> None:
    home.hand(SENSOR, contact="open")
    task = await door.submit(QUERY, {"entity": SENSOR, "expect": {"contact": "closed"}, "within_s": 30})

    async def has_looked() -> bool:
        return any(event["status"] == "WAITING" for event in await door.events(task))

    await eventually(has_looked, what="it has looked, and waits")
    home.hand(SENSOR, contact="closed")
    done = await door.end(task)
    assert (done["status"], done["result"]["value"]) == ("SUCCEEDED", {"contact": "closed"})


async def test_what_is_not_shown_in_time_is_unconfirmed_and_told_as_it_is(home: Home, door: Door) -> None:
    home.hand(SENSOR, contact="open")
    for within_s in (0, 0.3):
        done = await ask(door, {"entity": SENSOR, "expect": {"contact": "closed"}, "within_s": within_s})
        assert (done["status"], done["error"]["code"]) == ("FAILED", "unconfirmed")
        assert done["error"]["message"] == f"{SENSOR} shows contact open, not closed"
        assert done["result"]["value"] == {"contact": "open"}
        assert done["freshness"] is not None
    home.hand(SENSOR, contact="closed")


@pytest.mark.usefixtures("impatient")
async def test_who_is_expected_to_show_something_and_is_not_reached_is_unreachable(home: Home, door: Door) -> None:
    home.faults(SENSOR, offline=True)
    done = await ask(door, {"entity": SENSOR, "expect": {"contact": "closed"}, "within_s": 0.5})
    assert done["error"]["code"] == "device_unreachable"
