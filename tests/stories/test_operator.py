"""What an operator sees of missions: real processes, every place that a mission can stand in, and pages of many."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from shared import keys
from tests.conftest import StartRedis
from tests.stories.stack import Stack, running
from tests.waiting import eventually


class Operator:
    """A client that knows no more than HTTP."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def submit(self, type_: str, payload: dict[str, Any] | None = None, **more: Any) -> str:
        answer = await self.http.post("/v1/commands", json={"type": type_, "payload": payload or {}, **more})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["correlation_id"])

    async def mission(self, task_id: str) -> dict[str, Any]:
        answer = await self.http.get(f"/v1/missions/{task_id}")
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    async def until(self, task_id: str, fits: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            document = await self.mission(task_id)
            return document if fits(document) else None

        found: dict[str, Any] | None = await eventually(look, what=what)
        assert found is not None
        return found

    async def page(self, **query: Any) -> dict[str, Any]:
        answer = await self.http.get("/v1/missions", params=query)
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    async def all(self, **query: Any) -> list[dict[str, Any]]:
        """All rows; each page is held to its limit."""
        rows: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(200):
            page = await self.page(**query, **({"cursor": cursor} if cursor else {}))
            assert len(page["missions"]) <= query.get("limit", 50)
            rows += page["missions"]
            if (cursor := page["cursor"]) is None:
                return rows
        raise AssertionError("a walk that does not end")


def operator(stack: Stack) -> Operator:
    return Operator(httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60))


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(redis_url, tmp_path) as stack:
        yield stack


async def test_each_place_has_its_facts_and_its_sentence(stack: Stack) -> None:
    see = operator(stack)
    async with see.http:
        holder = await see.submit("test.slow", {"seconds": 600, "entity": "light.kitchen"}, priority="urgent")
        running = await see.until(holder, lambda m: m["status"] == "RUNNING", "a worker runs it")
        assert running["place"] == "leased"
        assert running["state"] == "ACTING"
        assert running["lease"]["owner"]
        assert running["lease"]["ends_at"] > running["started_at"]
        assert running["hold"] == {"holder": holder, "waiters": 0}
        assert running["result"] is None
        assert running["envelope"]["payload"] == {"seconds": 600, "entity": "light.kitchen"}
        assert running["trace_id"] in running["envelope"]["traceparent"]
        assert [event["status"] for event in running["history"]] == ["RUNNING"]
        assert running["why"].startswith(f"RUNNING in ACTING on worker {running['lease']['owner'][:8]} for ")
        assert "its lease ends in " in running["why"]
        assert " of its deadline are left." in running["why"]

        waiters = [await see.submit("test.slow", {"seconds": 0, "entity": "light.kitchen"}) for _ in range(2)]
        second = await see.mission(waiters[1])
        assert (second["place"], second["waiting_for"], second["ahead"]) == ("waiters", "target", 1)
        assert second["hold"] == {"holder": holder, "waiters": 2}
        assert second["why"].startswith(f"PENDING: waits for the target light.kitchen, held by {holder}; 2nd in line; ")

        patient = await see.submit("test.patient", {"sleep_s": 0.01, "wait_s": 300})
        waiting = await see.until(patient, lambda m: m["waiting_for"] == "event", "it waits for a knock")
        assert waiting["place"] == "waiting"
        assert waiting["wake_at"] > waiting["created_at"]
        assert waiting["context"] == {"slept": True}
        assert waiting["course"]["awaited"] == "KNOCK"
        assert waiting["visits"] == {"SLEEPING": 1, "LISTENING": 1}
        assert waiting["why"].startswith("WAITING in LISTENING for the event KNOCK until ")

        flaky = await see.submit("test.flaky", {"failures": 9})
        failed = await see.until(flaky, lambda m: m["place"] == "ended", "it gives up")
        assert failed["result"]["error"]["code"] == "retries_exhausted"
        assert failed["attempt"] == 4
        assert [event["data"]["event"] for event in failed["history"][1:-1]] == ["retry"] * 3
        assert " UTC: retries_exhausted in TRYING: as told (try 4 of 4); kept as a dead letter until " in failed["why"]
        assert failed["why"].endswith(f"; run it again with: dualloop dead-letters replay {flaky}.")

        await see.http.post(f"/v1/commands/{waiters[1]}/cancel")
        cancelled = await see.mission(waiters[1])
        assert cancelled["why"].endswith(" UTC: somebody asked for it.")

        done = await see.submit("test.noop", {"n": 2**80})
        succeeded = await see.until(done, lambda m: m["place"] == "ended", "it is done")
        assert succeeded["envelope"]["payload"] == succeeded["result"]["result"] == {"n": 2**80}
        assert succeeded["why"].startswith("SUCCEEDED at ")


async def test_a_mission_is_shown_whatever_numbers_stand_in_its_record(stack: Stack) -> None:
    see = operator(stack)
    async with see.http:
        patient = await see.submit("test.patient", {"sleep_s": 0.01, "wait_s": 300})
        await see.until(patient, lambda m: m["waiting_for"] == "event", "it waits for a knock")
        with redis.Redis.from_url(stack.redis_url) as server:
            absurd = ("1e+303", "1" + "0" * 306, "1" + "0" * 400, "-1", "nan", "inf", "soon")
            for name in ("wake_at", "deadline", "ready_at", "created_at", "started_at", "rev"):
                sane = server.hget(keys.mission(0, patient), name)
                for value in absurd:  # as a worker of another release may have written it
                    server.hset(keys.mission(0, patient), name, value)
                    assert (await see.mission(patient))["why"].startswith("WAITING in LISTENING for the event KNOCK")
                server.hset(keys.mission(0, patient), name, str(sane or b"", "ascii"))


async def test_without_a_worker_that_knows_it_a_mission_says_so(stack: Stack) -> None:
    see = operator(stack)
    async with see.http:
        patient = await see.submit("test.patient", {"sleep_s": 0.01, "wait_s": 300})
        await see.until(patient, lambda m: m["waiting_for"] == "event", "it waits for a knock")
        await stack.workers[0].stop()
        lost = await see.submit("test.noop", priority="bulk")
        behind = await see.submit("test.noop", priority="bulk")
        mission = await see.mission(behind)
        assert (mission["place"], mission["waiting_for"], mission["ahead"]) == ("lane", "worker", 1)
        assert "but no worker is alive (start one: dualloop background)" in mission["why"]
        assert "; no worker is alive" in (await see.mission(patient))["why"]
        await stack.workers[0].start(DUALLOOP_MISSIONS="backend_loop.missions.device_control")
        parked = await see.until(lost, lambda m: m["place"] == "parked", "the other worker parks it")
        assert parked["parked_at"] is not None
        assert parked["why"].startswith("PENDING: no live worker knows test.noop@1 (parked since ")


async def test_a_killed_worker_is_told_of(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, DUALLOOP_LEASE_S="3") as stack, operator(stack).http as http:
        see = Operator(http)
        slow = await see.submit("test.slow", {"seconds": 600})
        await see.until(slow, lambda m: m["status"] == "RUNNING", "a worker runs it")
        stack.workers[0].kill()
        mission = await see.until(slow, lambda m: "ran out" in m["why"], "its lease has run out")
        assert "no worker is alive (start one: dualloop background)" in mission["why"]
        await stack.workers[0].start()
        taken = await see.until(slow, lambda m: m["deaths"] > 0 and m["place"] == "leased", "it is taken over")
        assert re.search(r"\d workers? died under it", taken["why"])
        assert {"event": "reclaimed", "deaths": 1} in [event["data"] for event in taken["history"]]


@pytest.mark.parametrize("shards", [1, 3])
async def test_pages_hold_every_mission_once_and_keep_their_limit(
    any_redis_url: str, tmp_path: Path, shards: int
) -> None:
    async with running(any_redis_url, tmp_path, DUALLOOP_SHARDS=str(shards)) as stack:
        see = operator(stack)
        async with see.http:
            await stack.workers[0].stop()
            noops = [see.submit("test.noop", target=f"room.{n % 5}") for n in range(120)]
            bulks = [see.submit("test.bulk", {"n": n}) for n in range(30)]
            ids = await asyncio.gather(*noops, *bulks)
            for limit in (1, 7, 200):
                rows = await see.all(limit=limit)
                assert sorted(row["task_id"] for row in rows) == sorted(ids), limit
            rows = (await see.page(limit=200))["missions"]
            assert [row["created_at"] for row in rows] == sorted((row["created_at"] for row in rows), reverse=True)
            assert len(await see.all(type="test.bulk", limit=20)) == 30
            assert {row["task_id"] for row in await see.all(target="room.3")} == {ids[n] for n in range(3, 120, 5)}
            assert len(await see.all(status="PENDING")) == 150
            assert await see.all(status="RUNNING") == []
            assert len(await see.all(status=["RUNNING", "PENDING"], state="WORKING")) == 150
            assert len(await see.all(q="TEST.B")) == 30
            assert await see.all(q="no such thing") == []
            assert await see.all(type="test.bulk", target="room.1") == []


async def test_a_row_says_what_its_mission_says(stack: Stack) -> None:
    see = operator(stack)
    async with see.http:
        slow = await see.submit("test.slow", {"seconds": 600, "entity": "light.kitchen"}, priority="urgent")
        await see.submit("test.slow", {"seconds": 600, "entity": "light.hall"})
        await see.until(slow, lambda m: m["status"] == "RUNNING", "a worker runs it")
        page = await see.page(correlation_id=slow.lower())
        mission = await see.mission(slow)
        [row] = page["missions"]
        assert row == {name: mission[name] for name in row}
        assert row["priority"] == "urgent"
        assert [row["task_id"] for row in await see.all(correlation_id=slow, limit=1)] == [slow]
        assert await see.all(correlation_id="0" * 40) == []
        assert await see.all(correlation_id=slow, status="PENDING") == []


async def test_what_is_asked_wrongly_is_refused_with_a_pointer(stack: Stack) -> None:
    def cursor(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()

    see = operator(stack)
    async with see.http:
        forged: list[object] = [
            7,
            {},
            [],
            [0, 0],
            [5, 0, []],
            [0, -1, []],
            [0, 2**64, []],
            [0, 0, ["x"]],
            [0, 0, [None]],
        ]
        for wrong in ("x", "é", "*", "AAAA", *map(cursor, forged), cursor([0, 0, ["0" * 40]])):
            answer = await see.http.get("/v1/missions", params={"cursor": wrong})
            assert answer.status_code == 422, (wrong, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
            assert "cursor" in answer.json()["detail"]
        for query in ({"limit": 0}, {"limit": 201}, {"limit": "x"}, {"status": "DONE"}, {"stauts": "FAILED"}):
            answer = await see.http.get("/v1/missions", params=query)
            assert answer.status_code == 422, query
            assert answer.json()["code"] == "invalid"
        assert (await see.http.get("/v1/missions", params={"cursor": cursor([0, 0, []])})).status_code == 200
        for unknown in ("x", "0" * 40, "%00"):
            answer = await see.http.get(f"/v1/missions/{unknown}")
            assert answer.status_code == 404, unknown
            assert answer.headers["content-type"] == "application/problem+json"


async def test_one_that_is_no_longer_kept_is_gone_not_unknown(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, DUALLOOP_RETENTION_S="0.5") as stack:
        see = operator(stack)
        async with see.http:
            noop = await see.submit("test.noop")

            async def gone() -> bool:
                return (await see.http.get(f"/v1/missions/{noop}")).status_code == 410

            await eventually(gone, within=60, what="it is retired")
            assert await see.all() == []


async def test_without_redis_it_says_so(start_redis: StartRedis, tmp_path: Path) -> None:
    server = start_redis()
    async with running(server.url, tmp_path) as stack:
        see = operator(stack)
        async with see.http:
            noop = await see.submit("test.noop")
            server.process.kill()
            server.process.wait()
            for path in ("/v1/missions", f"/v1/missions/{noop}"):

                async def unavailable(path: str = path) -> bool:
                    return (await see.http.get(path)).status_code == 503

                await eventually(unavailable, what=f"{path} answers 503")
