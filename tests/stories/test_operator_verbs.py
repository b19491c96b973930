"""What only an operator does to a mission: another priority, a state left out, an end by hand; each of it audited."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import redis

from shared import keys
from tests.stories.operating import Document, Hand, events, operated


@pytest.fixture
async def hand(redis_url: str, tmp_path: Path) -> AsyncIterator[Hand]:
    async with operated(redis_url, tmp_path) as hand:
        yield hand


def logged(hand: Hand, verb: str) -> list[Document]:
    """Lines of the foreground's log about a verb."""
    lines = [json.loads(line) for line in hand.stack.foregrounds[0].log.read_text().splitlines()]
    return [line for line in lines if line.get("event") == verb]


async def test_a_mission_is_moved_to_another_lane(hand: Hand) -> None:
    await hand.stack.workers[0].stop()
    noop = await hand.submit("test.noop", priority="bulk")
    path = f"/v1/missions/{noop}/priority"
    said = await hand.post(path, {"priority": "urgent", "by": "eve", "note": "the boss waits"})
    assert said == {
        "correlation_id": noop,
        "task_id": noop,
        "status": "PENDING",
        "stopped": True,
        "priority": "urgent",
    }
    moved = await hand.mission(noop)
    assert (moved["priority"], moved["lane"], moved["inherits"]) == ("urgent", "urgent:default:default", None)
    [event] = events(moved, "priority")
    assert event == {"event": "priority", "from": "bulk", "to": "urgent", "by": "eve", "note": "the boss waits"}
    await hand.post(path, {"priority": "urgent"})
    assert len(events(await hand.mission(noop), "priority")) == 1
    assert [(line["by"], line["to"]) for line in logged(hand, "priority")[:1]] == [("eve", "urgent")]
    await hand.stack.workers[0].restart()
    await hand.ended(noop)
    assert (await hand.post(path, {"priority": "bulk"}, 409))["code"] == "ended"


async def test_a_holder_inherits_and_keeps_its_own_priority(hand: Hand) -> None:
    await hand.stack.workers[0].stop()
    holder = await hand.submit("test.slow", {"seconds": 0, "entity": "light.hall"}, priority="bulk")
    waiter = await hand.submit("test.slow", {"seconds": 0, "entity": "light.hall"}, priority="urgent")
    held = await hand.mission(holder)
    assert (held["priority"], held["inherits"], held["lane"]) == ("bulk", "urgent", "urgent:default:default")
    rows = (await hand.get("/v1/missions"))["missions"]
    assert {row["task_id"]: row["priority"] for row in rows} == {holder: "bulk", waiter: "urgent"}
    assert (await hand.mission(waiter))["inherits"] is None


async def test_an_optional_state_is_skipped(hand: Hand) -> None:
    depot = hand.stack.folder / "open"
    depot.touch()
    parcel = await hand.submit("test.parcel", {"depot": str(depot), "signature": True})
    await hand.in_state(parcel, "SIGNING", "waiting")
    path = f"/v1/missions/{parcel}/skip"
    assert (await hand.post(path, {"state": "SHIPPING"}, 409))["code"] == "not_optional"
    assert (await hand.post(path, {"state": "DREAMING"}, 422))["errors"][0]["pointer"] == "/state"
    said = await hand.post(path, {"state": "SIGNING", "by": "eve", "note": "nobody at home"})
    assert said["task_id"] == parcel
    assert (await hand.ended(parcel))["status"] == "SUCCEEDED"
    [event] = [event for event in events(await hand.mission(parcel), "skipped") if "by" in event]
    assert (event["by"], event["note"]) == ("eve", "nobody at home")
    assert [line["state"] for line in logged(hand, "skip")] == ["SIGNING"]
    assert (await hand.post(path, {}, 409))["code"] == "ended"


async def test_a_state_that_is_not_there_any_more_is_not_skipped(hand: Hand) -> None:
    slow = await hand.submit("test.slow", {"seconds": 600})
    await hand.in_state(slow, "ACTING", "leased")
    assert (await hand.post(f"/v1/missions/{slow}/skip", {}, 409))["code"] == "not_optional"
    await hand.stack.workers[0].stop()
    parcel = await hand.submit("test.parcel", {"depot": "x"})
    refused = await hand.post(f"/v1/missions/{parcel}/skip", {"state": "SIGNING"}, 409)
    assert (refused["code"], "PACKING" in refused["detail"]) == ("other_state", True)


async def test_an_undo_is_not_skipped_but_may_be_done_by_hand(hand: Hand) -> None:
    paid = await hand.submit("test.paid", {"depot": "closed", "bank": "closed"})
    undoing = await hand.in_state(paid, "PAYING", "waiting")
    assert undoing["status"] == "COMPENSATING"
    path = f"/v1/missions/{paid}"
    assert "undoes PAYING" in (await hand.post(f"{path}/skip", status=409))["detail"]
    assert (await hand.post(f"/v1/commands/{paid}/pause"))["status"] == "PAUSED"
    assert "undoes PAYING" in (await hand.post(f"{path}/skip", status=409))["detail"]
    assert (await hand.post(f"/v1/commands/{paid}/resume"))["status"] == "COMPENSATING"
    await hand.post(f"{path}/complete", {"by": "eve", "note": "paid back in cash"})
    result = await hand.ended(paid)
    assert (result["status"], result["error"]["code"]) == ("FAILED", "permanent")
    assert result["result"] == {"undone": ["PAYING"]}
    assert (await hand.mission(paid))["dead_letter"]["undone"] == ["PAYING"]


async def test_what_was_done_by_hand_is_completed(hand: Hand) -> None:
    patient = await hand.submit("test.patient", {"sleep_s": 0.01, "wait_s": 300})
    await hand.in_state(patient, "LISTENING", "waiting")
    by_hand = {"result": {"paid": 2**70, "text": "\0 é"}, "by": "eve", "note": "in cash"}
    await hand.post(f"/v1/missions/{patient}/complete", by_hand)
    result = await hand.ended(patient)
    assert (result["status"], result["result"]) == ("SUCCEEDED", by_hand["result"])
    [event] = events(await hand.mission(patient), "completed")
    assert (event["by"], event["note"]) == ("eve", "in cash")
    assert [line["note"] for line in logged(hand, "complete")] == ["in cash"]
    slow = await hand.submit("test.slow", {"seconds": 600})
    await hand.in_state(slow, "ACTING", "leased")
    await hand.post(f"/v1/missions/{slow}/complete", {})  # a handler that runs is cut
    assert (await hand.ended(slow))["status"] == "SUCCEEDED"
    assert (await hand.post(f"/v1/missions/{slow}/complete", {}, 409))["code"] == "ended"


async def test_everything_about_a_mission_has_the_new_things(hand: Hand) -> None:
    await hand.stack.workers[0].stop()
    switch = await hand.submit("test.switch", {"entity": "light.hall", "action": "dim"})
    mission = await hand.mission(switch)
    assert mission["latest"] == "light.hall:brightness"
    new = {name: mission[name] for name in ("permits", "inherits", "paused_at", "deaths", "solo_deaths", "dead_letter")}
    assert new == {
        "permits": [],
        "inherits": None,
        "paused_at": None,
        "deaths": 0,
        "solo_deaths": 0,
        "dead_letter": None,
    }
    assert (mission["run"], mission["envelope_base64"]) == (1, None)


async def test_a_damaged_record_breaks_no_list_and_no_verb(hand: Hand) -> None:
    await hand.stack.workers[0].stop()
    noops = [await hand.submit("test.noop") for _ in range(3)]
    with redis.Redis.from_url(hand.stack.redis_url) as server:
        for name in ("created_at", "deadline", "version"):
            for value in ("nan", "soon", "1e+303", "-1", ""):
                server.hset(keys.mission(0, noops[0]), name, value)
                rows = (await hand.get("/v1/missions"))["missions"]
                assert {row["task_id"] for row in rows} == set(noops), (name, value)
                await hand.mission(noops[0])
        server.hdel(keys.mission(0, noops[1]), "status", "state", "version", "deadline", "created_at")
        assert len((await hand.get("/v1/missions"))["missions"]) == 3
        server.delete(keys.mission(0, noops[2]))
        server.rpush(keys.mission(0, noops[2]), "no record")
        assert len((await hand.get("/v1/missions"))["missions"]) == 2
        for path in (f"/v1/commands/{noops[2]}/pause", f"/v1/missions/{noops[2]}/skip"):
            assert (await hand.post(path, {}, 503))["code"] == "redis_unavailable"
