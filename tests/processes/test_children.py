"""Missions that spawn missions, on real processes: each child once, whoever is killed; every parent ends once."""

import asyncio
import json
import random
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, cast

import redis

from shared import keys
from tests.missions.tally import VARIABLE
from tests.processes.commands import Front, tally
from tests.stories.stack import Stack, running
from tests.waiting import eventually

MISSIONS = "tests.missions.family"
SHARDS = 4


def _env(tmp_path: Path, **more: str) -> dict[str, Any]:
    return {"DUALLOOP_MISSIONS": MISSIONS, VARIABLE: str(tmp_path / "tally"), "DUALLOOP_DEADLINE_S": "600", **more}


def _rows_left(url: str) -> list[str]:
    """Outboxes, and rows that nobody would take."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        return [key for kind in ("outbox:*", "outboxes", "dead_rows:*") for key in client.scan_iter(f"dl:*:{kind}")]


def _log(url: str, task_id: str, shard: int) -> list[dict[str, Any]]:
    with redis.Redis.from_url(url) as client:
        return [json.loads(line) for line in cast("list[bytes]", client.lrange(keys.log(shard, task_id), 0, -1))]


async def _mission(front: Front, task_id: str) -> dict[str, Any]:
    answer = await front.client.get(f"/v1/missions/{task_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def _family(front: Front, correlation_id: str) -> list[dict[str, Any]]:
    """All missions of a root, page by page."""
    rows: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        params = {"correlation_id": correlation_id, "limit": "200"} | ({"cursor": cursor} if cursor else {})
        page = (await front.client.get("/v1/missions", params=params)).json()
        rows += page["missions"]
        cursor = page["cursor"]
    return rows


def _begun(stack: Stack, more_than: int) -> bool:
    return len(tally(stack)) > more_than


async def _settled(stack: Stack) -> None:
    await eventually(lambda: not _rows_left(stack.redis_url), what="every row is carried out")


async def test_promise_1_of_200_children_over_4_shards_each_is_once_while_workers_are_killed(
    redis_url: str, tmp_path: Path
) -> None:
    dice = random.Random()
    env = _env(tmp_path, DUALLOOP_SHARDS=str(SHARDS), DUALLOOP_LEASE_S="1.2")
    async with running(redis_url, tmp_path, workers=3, **env) as stack:
        front = Front(stack.foregrounds[0])
        kids = [{"seconds": 0.02, "at": f"lamp.{n}"} for n in range(200)]
        root = await front.send("test.fan", payload={"kids": kids, "bound": 40})
        for kill in range(5):
            done = 20 * (kill + 1)
            await eventually(partial(_begun, stack, done), within=60, what=f"{done} have begun")
            victim = dice.choice(stack.workers)
            victim.kill()
            victim.spawn()
        document = await front.end(root)
        assert (document["status"], document["result"]["sum"]) == ("SUCCEEDED", sum(range(200)))
        await _settled(stack)
        family = await _family(front, root)
        assert len({row["task_id"] for row in family}) == 201
        assert {row["status"] for row in family} == {"SUCCEEDED"}
        assert {row["correlation_id"] for row in family} == {root}
        ends = [event["data"] for shard in range(SHARDS) for event in _log(redis_url, root, shard) if event["data"]]
        names = Counter(data["name"] for data in ends if data.get("event") == "child")
        assert names == {f"kid-{n}": 1 for n in range(200)}
        with redis.Redis.from_url(redis_url) as client:
            where = Counter(key[: key.index(b"}")] for key in client.scan_iter("dl:*:mission:*"))
        assert len(where) == SHARDS
        await front.client.aclose()


async def test_a_wait_ends_as_its_policy_says_and_the_rest_is_cancelled(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, **_env(tmp_path)) as stack:
        front = Front(stack.foregrounds[0])
        mixed = [{}, {"how": "fails"}, {"how": "hangs"}]
        fails = await front.end(await front.send("test.fan", payload={"kids": mixed}))
        assert (fails["status"], fails["error"]["code"]) == ("FAILED", "child_failed")
        assert "kid-1 (test.kid) ended FAILED, permanent: number 1 is tired" in fails["error"]["message"]
        quorum = {"kids": mixed, "policy": 1, "on_failure": "continue"}
        reached = await front.end(await front.send("test.fan", payload=quorum))
        assert reached["status"] == "SUCCEEDED"
        both = {"kids": [{}, {"how": "fails"}], "on_failure": "continue", "bound": 1}
        gone_on = await front.end(await front.send("test.fan", payload=both))
        assert gone_on["result"] == {"ends": {"kid-0": "SUCCEEDED", "kid-1": "FAILED"}, "sum": 0}
        wrong = await front.end(await front.send("test.fan", payload={"kids": [{"seconds": "long"}]}))
        assert (wrong["error"]["code"], len(await _family(front, wrong["task_id"]))) == ("permanent", 1)
        for root in (fails, reached):
            ends = [row["status"] for row in await _family(front, root["task_id"])]

            async def cancelled(root: dict[str, Any] = root) -> bool:
                family = await _family(front, root["task_id"])
                return all(row["status"] in {"SUCCEEDED", "FAILED", "CANCELLED"} for row in family)

            await eventually(cancelled, what=f"nobody is left of {ends}")
            assert "CANCELLED" in [row["status"] for row in await _family(front, root["task_id"])]
        await _settled(stack)
        await front.client.aclose()


async def test_a_cancel_reaches_grandchildren_and_children_are_told_of(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, **_env(tmp_path, DUALLOOP_SHARDS=str(SHARDS))) as stack:
        front = Front(stack.foregrounds[0])
        root = await front.send("test.line", payload={"deep": 2})
        await eventually(lambda: len(tally(stack)) == 3, what="the last of the line hangs")
        told = await _mission(front, root)
        [child] = told["children"]
        assert (told["status"], told["waiting_for"]) == ("WAITING", "children")
        assert told["why"].startswith("WAITING in GROWING for 1 of 1 child,"), told["why"]
        assert (child["type"], child["status"]) == ("test.line", "WAITING")
        inner = await _mission(front, child["task_id"])
        assert (inner["parent"], inner["correlation_id"]) == (root, root)
        assert inner["envelope"]["source"] == "mission"
        assert inner["deadline"] == told["deadline"]
        watched = asyncio.create_task(front.result(child["task_id"]))  # watching a child takes its own id
        assert (await front.cancel(root)).status_code == 202
        assert (await front.end(root))["status"] == "CANCELLED"
        assert (await watched)["status"] == "CANCELLED"

        async def over() -> bool:
            return {row["status"] for row in await _family(front, root)} == {"CANCELLED"}

        await eventually(over, what="all three are cancelled")
        await _settled(stack)
        await front.client.aclose()


async def test_an_undo_may_wait_until_its_children_have_really_ended(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, **_env(tmp_path)) as stack:
        front = Front(stack.foregrounds[0])
        root = await front.send("test.careful")
        await eventually(lambda: len(tally(stack)) == 2, what="both children have begun")

        async def one_has_ended() -> bool:
            return any(child["status"] == "SUCCEEDED" for child in (await _mission(front, root))["children"])

        await eventually(one_has_ended, what="one child has ended")
        await front.cancel(root)
        document = await front.end(root)
        assert (document["status"], document["result"]["undone"]) == ("CANCELLED", ["SPREADING"])
        assert sorted(line[0] for line in tally(stack) if line[1] == root) == ["undo-CANCELLED", "undo-SUCCEEDED"]
        await _settled(stack)
        await front.client.aclose()


async def test_p10_children_may_act_on_the_target_of_their_parent(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, **_env(tmp_path)) as stack:
        front = Front(stack.foregrounds[0])
        payload = {"at": "lamp", "kids": [{"at": "lamp"}] * 3}
        roots = [await front.send("test.fan", payload=payload) for _ in range(2)]
        ends = [await front.end(root) for root in roots]
        assert [end["result"]["sum"] for end in ends] == [3, 3]
        await _settled(stack)
        await front.client.aclose()


async def test_p22_a_replay_does_again_only_what_had_not_succeeded(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, **_env(tmp_path)) as stack:
        front = Front(stack.foregrounds[0])
        root = await front.send("test.fan", payload={"kids": [{}, {"how": "ails"}], "bound": 1})
        assert (await front.end(root))["error"]["code"] == "child_failed"
        await _settled(stack)
        (tmp_path / "healed").touch()
        answer = await front.client.post(f"/v1/dead-letters/{root}/replay", json={"from": "failed_state"})
        assert answer.status_code == 202, answer.text
        document = await front.end(root)
        assert document["result"] == {"ends": {"kid-0": "SUCCEEDED", "kid-1": "SUCCEEDED"}, "sum": 1}
        assert document["run"] == 2
        worked = Counter(line[1] for line in tally(stack) if line[2] == "WORKING")
        assert sorted(worked.values()) == [1, 1, 1], "the first child, and the second one of each run"
        await _settled(stack)
        await front.client.aclose()
