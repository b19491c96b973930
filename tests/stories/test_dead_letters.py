"""What failed for good: looked at, replayed with and without a correction, one and many, and given up."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis

from dualloop.client import Client
from shared import keys
from tests.missions.tally import VARIABLE
from tests.stories.operating import Document, Hand, events, operated
from tests.waiting import eventually

DEAD = "/v1/dead-letters"


@pytest.fixture
async def hand(redis_url: str, tmp_path: Path) -> AsyncIterator[Hand]:
    async with operated(redis_url, tmp_path, **{VARIABLE: str(tmp_path / "tally")}) as hand:
        yield hand


def runs(hand: Hand, task_id: str) -> list[str]:
    """The states that were run, in order."""
    lines = [line.split() for line in (hand.stack.folder / "tally").read_text().splitlines()]
    return [line[2] for line in lines if line[1] == task_id]


async def dead(hand: Hand, type_: str, payload: Document, **more: Any) -> str:
    """A mission that has failed."""
    task_id = await hand.submit(type_, payload, **more)
    assert (await hand.ended(task_id))["status"] == "FAILED"
    return task_id


async def everything(hand: Hand, **query: Any) -> list[Document]:
    """All rows; each page is held to its limit."""
    rows: list[Document] = []
    cursor: str | None = None
    while True:
        asked: dict[str, Any] = query if cursor is None else query | {"cursor": cursor}
        page = await hand.get(DEAD, **asked)
        assert len(page["dead_letters"]) <= query.get("limit", 50)
        rows += page["dead_letters"]
        if (cursor := page["cursor"]) is None:
            return rows


async def test_a_dead_letter_goes_on_where_it_failed_once_the_cause_is_gone(hand: Hand) -> None:
    depot = hand.stack.folder / "open"
    parcel = await dead(hand, "test.parcel", {"depot": str(depot)})
    [row] = await everything(hand)
    assert (row["task_id"], row["failed_in"], row["code"], row["run"]) == (parcel, "SHIPPING", "permanent", 1)
    assert row["message"] == "the depot is closed"
    assert row["kept_until"] > row["ended_at"]
    letter = await hand.get(f"{DEAD}/{parcel}")
    shown = {name: row[name] for name in ("failed_in", "code", "message", "ended_at", "kept_until")}
    assert letter["dead_letter"] == shown | {"undone": [], "outbox": 0}
    assert letter["envelope"]["payload"]["depot"] == str(depot)

    depot.touch()
    asked = {"by": "eve", "note": "they are back"}
    said = await hand.post(f"{DEAD}/{parcel}/replay", asked)
    assert (said["run"], said["from"], said["key"], said["task_id"]) == (2, "failed_state", "same", parcel)
    result = await hand.ended(parcel)
    assert (result["status"], result["run"]) == ("SUCCEEDED", 2)
    assert result["result"]["key"].split(":")[1] == "1"  # the effect's key is that of the first run
    assert runs(hand, parcel) == ["PACKING", "SIGNING", "SHIPPING", "SHIPPING"]
    mission = await hand.mission(parcel)
    assert events(mission, "replayed") == [{"event": "replayed", "from": "failed_state", "key": "same"} | asked]
    assert mission["dead_letter"] is None
    assert await everything(hand) == []
    assert (await hand.post(f"{DEAD}/{parcel}/replay", status=409))["code"] == "no_dead_letter"
    assert (await hand.get(f"{DEAD}/{parcel}", 404))["code"] == "not_found"
    lines = [json.loads(line) for line in hand.stack.foregrounds[0].log.read_text().splitlines()]
    assert [(line["by"], line["note"]) for line in lines if line.get("event") == "replay"] == [("eve", "they are back")]


async def test_it_begins_anew_where_that_is_asked_for(hand: Hand) -> None:
    depot = hand.stack.folder / "open"
    parcel = await dead(hand, "test.parcel", {"depot": str(depot)})
    depot.touch()
    path, body = f"{DEAD}/{parcel}/replay", {"from": "start", "key": "new"}
    answers = await asyncio.gather(*(hand.http.post(path, json=body) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [202] + 4 * [409]  # however many ask at once
    [said] = [answer.json() for answer in answers if answer.status_code == 202]
    assert (said["from"], said["key"], said["run"]) == ("start", "new", 2)
    assert (await hand.ended(parcel))["result"]["key"].split(":")[1] == "2"
    assert runs(hand, parcel)[3:] == ["PACKING", "SIGNING", "SHIPPING"]


async def test_a_payload_is_corrected_and_checked_like_a_fresh_one(hand: Hand) -> None:
    depot = hand.stack.folder / "open"
    depot.touch()
    parcel = await dead(hand, "test.parcel", {"depot": str(depot), "street": "Nowhere"})
    assert (await hand.get(f"{DEAD}/{parcel}"))["dead_letter"]["code"] == "undecodable"
    path = f"{DEAD}/{parcel}/replay"
    refused = await hand.post(path, {"payload": {"depot": str(depot), "street": 7}}, 422)
    assert refused["errors"][0]["pointer"] == "/payload/street"
    corrected = {"depot": str(depot), "street": "Elm Street", "n": 2**80}
    said = await hand.post(path, {"payload": corrected})
    assert said["key"] == "new"
    result = await hand.ended(parcel)
    assert result["result"]["street"] == "Elm Street"
    assert result["result"]["key"].split(":")[1] == "2"
    assert (await hand.mission(parcel))["envelope"]["payload"] == corrected


async def test_what_was_undone_begins_anew(hand: Hand) -> None:
    depot = hand.stack.folder / "open"
    paid = await dead(hand, "test.paid", {"depot": str(depot)})
    assert (await hand.get(f"{DEAD}/{paid}"))["dead_letter"]["undone"] == ["PAYING"]
    path = f"{DEAD}/{paid}/replay"
    assert (await hand.post(path, {"from": "failed_state"}, 409))["code"] == "undone"
    depot.touch()
    assert (await hand.post(path))["from"] == "start"
    assert (await hand.ended(paid))["status"] == "SUCCEEDED"
    assert runs(hand, paid).count("PAYING") == 2


async def test_what_was_given_up_amid_its_undos_goes_on_with_them(hand: Hand) -> None:
    bank = hand.stack.folder / "bank"
    address = {"depot": "closed", "bank": str(bank)}
    paid = await hand.submit("test.paid", address)
    await hand.in_state(paid, "PAYING", "waiting")
    with redis.Redis.from_url(hand.stack.redis_url) as server:
        server.hset(keys.mission(0, paid), "envelope", "noise")
    await hand.post(f"/v1/commands/{paid}/cancel")  # changes nothing, but lets a worker look at it now
    assert (await hand.ended(paid))["error"]["code"] == "undecodable"
    bank.touch()
    said = await hand.post(f"{DEAD}/{paid}/replay", {"payload": address})
    assert said["from"] == "failed_state"
    result = await hand.ended(paid)
    assert (result["error"]["code"], result["result"]) == ("permanent", {"undone": ["PAYING"]})
    assert runs(hand, paid).count("PAYING") == 1


async def test_b50_bytes_that_cannot_be_read_are_kept_and_replaced(hand: Hand) -> None:
    await hand.stack.workers[0].stop()
    parcel = await hand.submit("test.parcel", {"depot": "closed"}, priority="bulk")
    noise = b'\xff\0{"v":1'
    with redis.Redis.from_url(hand.stack.redis_url) as server:
        server.hset(keys.mission(0, parcel), "envelope", noise)
    await hand.stack.workers[0].restart()
    assert (await hand.ended(parcel))["error"]["code"] == "undecodable"
    letter = await hand.get(f"{DEAD}/{parcel}")
    assert base64.b64decode(letter["envelope_base64"]) == noise
    assert (await hand.post(f"{DEAD}/{parcel}/replay", {"payload": {}}, 422))["code"] == "invalid"
    depot = hand.stack.folder / "open"
    depot.touch()
    await hand.post(f"{DEAD}/{parcel}/replay", {"payload": {"depot": str(depot)}})
    assert (await hand.ended(parcel))["status"] == "SUCCEEDED"
    mission = await hand.mission(parcel)
    assert (mission["envelope"]["priority"], mission["envelope"]["tenant"]) == ("bulk", "default")
    assert mission["envelope_base64"] is None


async def test_a_correction_changes_neither_target_nor_aspect(hand: Hand) -> None:
    switch = await dead(hand, "test.switch", {"entity": "light.hall", "action": "turn_on"})
    path = f"{DEAD}/{switch}/replay"
    other = await hand.post(path, {"payload": {"entity": "light.attic", "action": "turn_on"}}, 422)
    assert other["errors"][0]["pointer"] == "/payload/entity"
    aspect = await hand.post(path, {"payload": {"entity": "light.hall", "action": "dim"}}, 422)
    assert "light.hall:power" in aspect["detail"]
    await hand.post(path, {"payload": {"entity": "light.hall", "action": "turn_off", "works": True}})
    assert (await hand.ended(switch))["status"] == "SUCCEEDED"


async def test_many_are_listed_and_replayed_by_filter_over_all_shards(redis_url: str, tmp_path: Path) -> None:
    async with operated(redis_url, tmp_path, DUALLOOP_SHARDS="3") as hand:
        depot = hand.stack.folder / "open"
        parcels = [await hand.submit("test.parcel", {"depot": str(depot)}) for _ in range(20)]
        picky = [await hand.submit("test.picky", {"n": 2 * n + 1}) for n in range(5)]
        for task_id in parcels + picky:
            assert (await hand.ended(task_id))["status"] == "FAILED"
        for limit in (1, 7, 200):
            rows = await everything(hand, limit=limit)
            assert sorted(row["task_id"] for row in rows) == sorted(parcels + picky), limit
            assert [row["ended_at"] for row in rows] == sorted((row["ended_at"] for row in rows), reverse=True)
        assert {row["task_id"] for row in await everything(hand, type="test.picky", limit=2)} == set(picky)
        assert {row["task_id"] for row in await everything(hand, code="permanent")} == set(parcels)
        assert len(await everything(hand, q="DEPOT is")) == 20
        assert [row["task_id"] for row in await everything(hand, q=picky[0])] == [picky[0]]
        assert await everything(hand, code="timeout") == []

        depot.touch()
        page = await hand.post(f"{DEAD}/replay", {"filter": {"type": "test.parcel"}, "limit": 3, "by": "eve"})
        assert len(page["replayed"]) == 3
        async with Client(hand.stack.url) as client:
            answer = await client.replay_all({"type": "test.parcel"}, by="eve")
            assert (len(answer["replayed"]), answer["refused"]) == (17, [])
            for task_id in parcels:
                assert (await hand.ended(task_id))["status"] == "SUCCEEDED"
            answer = await client.replay_all({"code": "undecodable"}, payload={"n": "two"})
            assert answer["replayed"] == []
            assert {(row["task_id"], row["code"]) for row in answer["refused"]} == {(id_, "invalid") for id_ in picky}
            answer = await client.replay_all(payload={"n": 2})
            assert len(answer["replayed"]) == 5
        for task_id in picky:
            assert (await hand.ended(task_id))["result"] == {"n": 2}
        assert await everything(hand) == []


async def test_a_dead_letter_is_given_up(hand: Hand) -> None:
    parcel = await dead(hand, "test.parcel", {"depot": "closed"})
    said = await hand.delete(f"{DEAD}/{parcel}", by="eve", note="bankrupt")
    assert said == {"correlation_id": parcel, "task_id": parcel, "discarded": True}
    assert await everything(hand) == []

    async def gone() -> bool:
        return (await hand.http.get(f"/v1/missions/{parcel}")).status_code == 410

    await eventually(gone, 60, "it is retired")
    await hand.delete(f"{DEAD}/{parcel}", 410)
    noop = await hand.submit("test.noop")
    await hand.ended(noop)
    assert (await hand.delete(f"{DEAD}/{noop}", 409))["code"] == "no_dead_letter"
    lines = [json.loads(line) for line in hand.stack.foregrounds[0].log.read_text().splitlines()]
    assert [(line["by"], line["note"]) for line in lines if line.get("event") == "discard"] == [("eve", "bankrupt")]


async def test_what_runs_is_neither_replayed_nor_discarded(hand: Hand) -> None:
    slow = await hand.submit("test.slow", {"seconds": 600})
    await hand.in_state(slow, "ACTING", "leased")
    assert (await hand.post(f"{DEAD}/{slow}/replay", status=409))["code"] == "not_ended"
    assert (await hand.delete(f"{DEAD}/{slow}", 409))["code"] == "not_ended"
    assert "RUNNING" in (await hand.get(f"{DEAD}/{slow}", 404))["detail"]


async def test_it_outlives_its_result(redis_url: str, tmp_path: Path) -> None:
    async with operated(redis_url, tmp_path, DUALLOOP_RETENTION_S="4") as hand:
        depot = hand.stack.folder / "open"
        parcel = await hand.submit("test.parcel", {"depot": str(depot)})

        async def expired() -> bool:
            return (await hand.http.get(f"/v1/results/{parcel}")).status_code == 410

        await eventually(expired, 60, "its result has expired")
        letter = await hand.get(f"{DEAD}/{parcel}")
        assert (letter["dead_letter"]["code"], letter["result"]) == ("permanent", None)
        assert letter["dead_letter"]["message"] == "the depot is closed"
        depot.touch()
        await hand.post(f"{DEAD}/{parcel}/replay")
        await hand.until(parcel, lambda m: m["status"] == "SUCCEEDED", "it is done")
