"""A large file into a table while workers die, stages stand still, and each stage has workers of its own."""

import json
import os
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, cast

import pytest
import redis

from shared import keys
from tests import etl_source
from tests.processes.commands import Front
from tests.stories.stack import Part, Stack, running
from tests.waiting import eventually

STAGES = ("etl.extract", "etl.transform", "etl.load")


class Works:
    """A stack, a client of its front, and what Redis and the database have."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.front = stack, Front(stack.foregrounds[0])
        self.redis = redis.Redis.from_url(stack.redis_url, decode_responses=True)

    def holders(self, type_: str) -> list[Part]:
        """The workers that have a mission of this type now."""
        found = list[Part]()
        for worker in self.stack.workers:
            for owner in _owners(worker):
                held = cast("set[str]", self.redis.smembers(keys.held(0, owner)))
                if any(self.redis.hget(keys.mission(0, one), "type") == type_ for one in held):
                    found.append(worker)
        return found

    async def kill_in_each(self, types: Iterable[str]) -> None:
        """SIGKILL a worker in the midst of a mission of each type, whichever comes first, and start it again."""
        left = set(types)

        def caught() -> bool:
            for type_ in left:
                for worker in self.holders(type_):
                    worker.freeze()
                    if worker in self.holders(type_):  # frozen, it has it for good
                        worker.kill()
                        worker.spawn()
                        left.remove(type_)
                        return not left
                    worker.thaw()
            return False

        await eventually(caught, within=120, what="a worker is caught in each stage")

    def counts(self) -> Counter[tuple[str, str]]:
        """How many missions there are, by type and status."""
        found = Counter[tuple[str, str]]()
        for name, many in cast("dict[str, str]", self.redis.hgetall(f"{keys.prefix(0)}counts")).items():
            type_, status, _ = name.split("|")
            found[type_, status] += int(many)
        return found

    def heard(self, run: str) -> int:
        """Of how many ends of children the run has heard."""
        return sum('"event":"child"' in line for line in self.log(run))

    def log(self, task_id: str) -> list[str]:
        """Of a mission."""
        return cast("list[str]", self.redis.lrange(keys.log(0, task_id), 0, -1))

    def reclaimed(self) -> set[str]:
        """The types of the missions that were taken over."""
        ids = [str(key).rpartition(":")[2] for key in self.redis.scan_iter("dl:*:log:*")]
        lost = [one for one in ids if any('"reclaimed"' in line for line in self.log(one))]
        return {str(self.redis.hget(keys.mission(0, one), "type")) for one in lost}

    def check(self, sales: etl_source.Sales, document: dict[str, Any]) -> None:
        """Each good row is in the table once, and each bad one among the rejects."""
        assert document["status"] == "SUCCEEDED", document
        with closing(sqlite3.connect(self.stack.folder / "data.sqlite")) as db:
            rows = db.execute("SELECT id, total_cents FROM sales").fetchall()
        assert len(rows) == len(sales.good)
        assert dict(rows) == sales.good
        assert sum(total for _, total in rows) == sum(sales.good.values())
        folder = self.stack.folder / "files" / document["task_id"]
        rejects = [json.loads(line) for line in (folder / "rejects.jsonl").read_text().splitlines()]
        assert [one["line"] for one in rejects] == sales.bad
        result = document["result"]
        assert (result["loaded"], result["rejected"], result["lost"]) == (len(sales.good), len(sales.bad), 0)
        assert [path.name for path in folder.iterdir()] == ["rejects.jsonl"]


def _owners(worker: Part) -> list[str]:
    """Under which name its process holds leases; none yet while it starts."""
    return [line["owner"] for line in _said(worker, "lease held") if line["pid"] == worker.running.pid]


def _ended(worker: Part) -> set[str]:
    """The types of the missions that it has brought to their ends."""
    return {line["type"] for line in _said(worker, "end")}


def _said(worker: Part, event: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in worker.log.read_text().splitlines() if f'"event":"{event}"' in line]


@asynccontextmanager
async def at_work(url: str, folder: Path, *pools: str, **env: str) -> AsyncIterator[Works]:
    """One worker for each of these pools."""
    (folder / "data").mkdir()
    async with running(url, folder, foregrounds=1, workers=0, DUALLOOP_DATA_DIR=str(folder / "data"), **env) as stack:
        await stack.start([stack.worker(DUALLOOP_POOLS=one) for one in pools])
        works = Works(stack)
        try:
            yield works
        finally:
            await works.front.client.aclose()
            works.redis.close()


async def _with_three_kills(works: Works, rows: int, chunk_rows: int) -> float:
    """Run it, and kill a worker in each stage; the seconds that it took."""
    sales = etl_source.write(works.stack.folder / "data" / "sales.csv", rows)
    began = time.monotonic()
    one = await works.front.send("etl.run", payload=etl_source.JOB | {"chunk_rows": chunk_rows})
    await works.kill_in_each(STAGES)
    await eventually(lambda: works.redis.exists(keys.result(0, one)), within=240, what="the run ends")
    took = time.monotonic() - began
    document = await works.front.end(one)
    works.check(sales, document)
    assert works.reclaimed() >= set(STAGES), "each kill has cost somebody a mission"
    return took


async def test_twenty_thousand_rows_with_a_kill_in_each_stage(redis_url: str, tmp_path: Path) -> None:
    async with at_work(redis_url, tmp_path, "", "", DUALLOOP_LEASE_S="1.5") as works:
        await _with_three_kills(works, 20_000, 1_000)


@pytest.mark.long
async def test_a_hundred_thousand_rows_with_a_kill_in_each_stage(redis_url: str, tmp_path: Path) -> None:
    async with at_work(redis_url, tmp_path, "", "", DUALLOOP_LEASE_S="1.5") as works:
        took = await _with_three_kills(works, 100_000, 2_000)
    print(f"100,000 rows with three kills: {took:.1f} s")  # noqa: T201  shown by -s
    assert took < 240


async def test_a_stage_that_nobody_works_at_holds_back_those_before_it(redis_url: str, tmp_path: Path) -> None:
    pools = "default,etl-extract,etl-transform"
    async with at_work(redis_url, tmp_path, pools) as works:
        sales = etl_source.write(works.stack.folder / "data" / "sales.csv", 1_000)
        one = await works.front.send("etl.run", payload=etl_source.JOB | {"chunk_rows": 50, "at_once": 2})
        await eventually(lambda: works.heard(one) == 12, within=60, what="the run has heard of all that could end")
        stood = works.counts()
        assert {key: many for key, many in stood.items() if key[0] != "etl.run"} == {
            ("etl.extract", "SUCCEEDED"): 8,
            ("etl.transform", "SUCCEEDED"): 4,
            ("etl.load", "PENDING"): 1,
        }
        files = Counter(path.suffix for path in (tmp_path / "files" / one).glob("chunk-*"))
        assert files == {".extracted": 8, ".transformed": 4}

        await works.stack.workers[0].stop()
        loader = works.stack.worker(DUALLOOP_POOLS="etl-load")
        await works.stack.start([loader])
        await eventually(lambda: works.counts()["etl.load", "SUCCEEDED"] == 1, what="what was to be loaded is")
        ready = f"{keys.prefix(0)}lane:bulk:default:default"
        await eventually(lambda: works.redis.zcard(ready) == 1, what="the run is ready to go on, once somebody comes")
        assert works.counts()["etl.extract", "SUCCEEDED"] == 8

        await works.stack.workers[0].start()
        works.check(sales, await works.front.end(one))
        assert _ended(loader) == {"etl.load"}
        others = {"etl.run", "etl.extract", "etl.transform"}  # the last line comes after the end itself
        await eventually(lambda: _ended(works.stack.workers[0]) == others, what="the others are another one's")


async def test_a_file_that_changes_midway_is_not_mixed_and_its_replay_goes_on_with_the_rest(
    redis_url: str, tmp_path: Path
) -> None:
    async with at_work(redis_url, tmp_path, "default,etl-extract,etl-transform") as works:
        source = works.stack.folder / "data" / "sales.csv"
        sales = etl_source.write(source, 600)
        content, facts = source.read_bytes(), source.stat()
        one = await works.front.send("etl.run", payload=etl_source.JOB | {"chunk_rows": 50, "at_once": 1})
        await eventually(
            lambda: works.heard(one) == 6, within=60, what="the run waits for the first chunk to be loaded"
        )
        source.write_bytes(content + b"601,Late,,1,1,\n")
        await works.stack.start([works.stack.worker(DUALLOOP_POOLS="etl-load")])
        document = await works.front.end(one)
        assert (document["status"], document["error"]["state"]) == ("FAILED", "MOVING")
        loaded = document["result"]["loaded"]
        assert 0 < loaded < 600 - len(sales.bad)

        replay = f"/v1/dead-letters/{one}/replay"
        assert (await works.front.client.post(replay, json={"from": "start"})).status_code == 202
        document = await works.front.end(one)
        assert "sales.csv has changed since a part of it was loaded" in document["error"]["message"]

        source.write_bytes(content)
        os.utime(source, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        assert (await works.front.client.post(replay, json={"from": "start"})).status_code == 202
        works.check(sales, await works.front.end(one))
