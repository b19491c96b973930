"""Progress as handlers say it: told while they run, by and by; carried by each commit; counted where children are."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic_core import from_json

from backend_loop.outcomes import Outcome, WaitForChildren
from backend_loop.reporting import EVERY_S
from backend_loop.store import Store
from shared.errors import RedisAwayError
from tests.stories.midway import Bench, Held, Long, Tools, benched
from tests.waiting import eventually


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with benched(redis_url) as bench:
        yield bench


class Told:
    """What a worker tells Redis: `say` answers in its place, if it is set."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done: list[int] = []
        self.say: Any = None
        self._add = store.reports._flights.add
        monkeypatch.setattr(store.reports._flights, "add", self._heard)

    def _heard(self, head: Any, item: Any) -> Any:
        self.done.append(from_json(item[3])["done"])
        return self._add(head, item) if self.say is None else self.say()


async def stands(bench: Bench) -> int | None:
    """How far it is, as its record says."""
    done = from_json((await bench.record()).get("progress", "{}")).get("done")
    return None if done is None else int(done)


async def stands_at(bench: Bench, done: int) -> None:
    async def newest() -> bool:
        return await stands(bench) == done

    await eventually(newest)


async def test_it_is_told_while_the_handler_runs_and_not_each_time_it_is_said(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(tools: Tools) -> None:
        begun = asyncio.get_running_loop().time()
        for n in range(300):
            tools.progress(n)
            await asyncio.sleep(0)
        await stands_at(bench, 299)
        spent = asyncio.get_running_loop().time() - begun
        assert len(told.done) <= 2 + spent / EVERY_S
        assert (await bench.record()).get("rev", "0") == "0"
        tools.progress(300)

    store = bench.store()
    told = Told(store, monkeypatch)
    await bench.take(play)
    await (await bench.claim(store)).run()
    assert (await bench.result())["progress"]["done"] == 300
    assert told.done[-1] == 299  # the last one came with the commit


async def test_one_that_is_under_way_is_waited_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow Redis is, there is one of a mission at a time; what comes next is the newest by then."""
    under_way: list[asyncio.Future[Any]] = []

    def slow() -> asyncio.Future[Any]:
        under_way.append(asyncio.get_running_loop().create_future())
        return under_way[-1]

    async def play(tools: Tools) -> None:
        tools.progress(1)
        await eventually(lambda: under_way)
        for n in (2, 3):
            tools.progress(n)
            store.reports._leave()  # whatever the time says
        assert told.done == [1]
        told.say = None
        under_way[0].set_result(b"OK")
        await stands_at(bench, 3)
        assert told.done == [1, 3]

    store = bench.store()
    told = Told(store, monkeypatch)
    told.say = slow
    await bench.take(play)
    await (await bench.claim(store)).run()
    assert store.reports._newest == {}


async def test_what_a_redis_that_was_away_has_not_heard_is_told_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> asyncio.Future[Any]:
        told.say = None
        lost: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        lost.set_exception(RedisAwayError("away"))
        return lost

    async def play(tools: Tools) -> None:
        tools.progress(1)
        await stands_at(bench, 1)

    store = bench.store()
    told = Told(store, monkeypatch)
    told.say = away
    await bench.take(play)
    await (await bench.claim(store)).run()
    assert told.done == [1, 1]


async def test_what_is_said_in_the_midst_of_a_checkpoint_is_told_behind_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was said of a commit that is not the last any more, and Redis would take it for old."""

    async def play(tools: Tools) -> None:
        tools.context.items.append(1)
        tools.progress(1, message="before")
        keeping = asyncio.create_task(tools.checkpoint())
        await held.asked.wait()
        tools.progress(2, 3, message="meanwhile")
        held.let.set()
        await keeping
        await stands_at(bench, 2)
        assert (await bench.record())["rev"] == "1"

    store = bench.store()
    held = Held(store, monkeypatch)
    await bench.take(play)
    runner = await bench.claim(store)
    await runner.run()
    assert (await bench.result())["progress"] == {"done": 2, "total": 3, "message": "meanwhile"}


@pytest.mark.parametrize("total", [None, 10])
async def test_children_that_are_waited_for_are_told_unless_the_handler_counts_itself(
    bench: Bench, total: int | None
) -> None:
    async def play(tools: Tools) -> Outcome:
        tools.context.left = [tools.spawn(Long.type, {"work": "none"}) for _ in range(2)]
        tools.progress(0, total)
        tools.progress(0, message="measuring")
        return WaitForChildren(event="joined")

    await bench.take(play)
    await bench.run()
    for n, child in enumerate((await bench.kept()).context["left"], 1):
        await bench.child_ends(child, n)
        await bench.run()
        told = from_json((await bench.record())["progress"])
        assert told == {"done": 0 if total else n, "total": None if total else 2, "message": "measuring"}
    assert (await bench.result())["progress"] == told
