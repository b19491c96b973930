"""The same code on several shards: a mission with all that is its own lies in one, and nobody else need know which."""

from collections import Counter
from pathlib import Path

import redis

from shared import keys
from shared.ids import shard_of
from tests.processes.commands import Front
from tests.stories.stack import running
from tests.waiting import eventually

SHARDS = 4


async def test_commands_spread_over_shards_and_each_target_keeps_to_one(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, DUALLOOP_SHARDS=str(SHARDS), DUALLOOP_LEASE_S="2") as stack:
        front = Front(stack.foregrounds[0])
        ids = [await front.send("test.five") for _ in range(40)]
        lamps = {
            f"lamp.{n}": [
                await front.send("test.slow", payload={"seconds": 0.05, "entity": f"lamp.{n}"}) for _ in range(3)
            ]
            for n in range(8)
        }
        flaky = await front.send("test.flaky", payload={"failures": 2})
        for one in (*ids, flaky, *(one for group in lamps.values() for one in group)):
            assert (await front.result(one))["status"] == "SUCCEEDED"
        with redis.Redis.from_url(redis_url, decode_responses=True) as client:
            where = {key.rpartition(":")[2]: key[3 : key.index("}") + 1] for key in client.scan_iter("dl:*:mission:*")}
        assert len(Counter(where[one] for one in ids)) == SHARDS
        for lamp, group in lamps.items():
            assert {where[one] for one in group} == {f"{{s{shard_of(f'default:{lamp}', SHARDS)}}}"}
        cancelled = await front.send("test.slow", payload={"seconds": 60})
        await front.cancel(cancelled)
        assert (await front.result(cancelled))["status"] == "CANCELLED"
        await front.client.aclose()


async def test_a_lost_worker_is_taken_over_on_every_shard(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path, DUALLOOP_SHARDS=str(SHARDS), DUALLOOP_LEASE_S="1.2") as stack:
        front, gate = Front(stack.foregrounds[0]), tmp_path / "gate"
        ids = await front.send_many(64, "test.slow", payload={"gate": str(gate)})
        with redis.Redis.from_url(redis_url, decode_responses=True) as client:

            def held() -> dict[int, list[str]] | None:
                found = {int(key[5 : key.index("}")]): sorted(client.smembers(key)) for key in client.keys("*}:held:*")}
                return found if sum(map(len, found.values())) == len(ids) else None

            lost = await eventually(held, what="the one worker there is has all of them")
            assert lost is not None
            assert lost.keys() == set(range(SHARDS))
            await stack.start([stack.worker()])
            stack.workers[0].kill()
            gate.touch()
            for one in ids:
                assert (await front.result(one))["status"] == "SUCCEEDED"
            for one, shard in ((one, shard) for shard, had in lost.items() for one in had):
                log = client.lrange(keys.log(shard, one), 0, -1)
                assert any('"event":"reclaimed"' in line for line in log), (shard, log)
        await front.client.aclose()
