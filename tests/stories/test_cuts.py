"""What cuts a handler that runs: its time-out, an entry of the inbox, the loss of the mission; alone and together."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from backend_loop.admission import Admission
from backend_loop.breakers import Breakers
from backend_loop.executors import Executors
from backend_loop.lease import Lease
from backend_loop.mission import Mission, state, steps
from backend_loop.outcomes import Go, Outcome
from backend_loop.outside import Outside
from backend_loop.redis_clock import RedisClock
from backend_loop.retry import Retry
from backend_loop.runner import Runner
from backend_loop.store import Store
from backend_loop.toolbox import Toolbox
from frontend_loop.control import Control
from frontend_loop.door import Door
from shared import keys
from shared.catalogue import Catalogue
from shared.fleet import Fleet
from shared.redis import Link
from shared.settings import Settings

SETTINGS = Settings(_env_file=None, pools=("default",), lease_s=120)
begun: dict[str, asyncio.Event] = {}


class Cut(Mission):
    """One state that does what its payload says; one try."""

    type = "test.cut"
    table = steps("WORKING")

    @state("WORKING", timeout_s=0.1, retry=Retry(tries=1))
    async def work(self, tools: Toolbox[Any, Any]) -> Outcome:
        begun.setdefault(tools.task_id, asyncio.Event()).set()
        how = tools.payload.how
        if how == "raise":
            raise TimeoutError("the other side did not answer")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if how == "wait":
                raise
        return Go("done", result={"how": how})


class Slow(Cut):
    """As Cut, and no time-out comes in the way."""

    type = "test.cut_slow"
    table = steps("WORKING")

    @state("WORKING", timeout_s=60)
    async def work(self, tools: Toolbox[Any, Any]) -> Outcome:
        return await super().work(tools)


class Bench:
    """A door, and runners of what it accepts."""

    def __init__(self, link: Link, door: Door, store: Store) -> None:
        self.link, self.door, self.store = link, door, store

    async def run(self, mission: type[Cut], how: str) -> tuple[Runner, "asyncio.Task[None]"]:
        """Accept, claim, and drive it up to the middle of its handler."""
        await self.door.take({"type": mission.type, "payload": {"how": how}}, "cli")
        answer = await self.store.claim(1, 1, f",{mission.definition.kind},")
        assert answer is not None
        [claimed] = answer[1]
        clock = RedisClock()
        outside = Outside(
            clock=clock,
            lease=self.store.lease,
            admission=Admission(self.link, 0, SETTINGS, clock, Breakers(self.link, 1)),
            executors=Executors(SETTINGS),
            wakes=lambda _s: None,
        )
        runner = Runner(claimed, mission.definition, self.store, outside)
        task = asyncio.create_task(runner.run())
        await begun.setdefault(claimed.task_id, asyncio.Event()).wait()
        return runner, task

    async def end(self, runner: Runner) -> tuple[str, str | None]:
        """Status, and the error's code or the reason."""
        fields = await self.link.call("HMGET", keys.mission(0, runner.claimed.task_id), "status", "place")
        result = await self.link.call("GET", keys.result(0, runner.claimed.task_id)) or b""
        word = next(
            (word for word in ("timeout", "retries_exhausted", "requested") if f'"{word}"' in str(result)), None
        )
        return fields[0].decode(), word


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    link = await Link(redis_url).open(wait_s=30)
    fleet, catalogue = Fleet(1), Catalogue()
    await fleet.join(link)
    rows = [mission.definition.row() for mission in (Cut, Slow)]
    await link.run(
        "announce", keys.prefix(0), 60_000, *(part for row in rows for part in (row.kind, row.model_dump_json()))
    )
    await catalogue.refresh(link)
    lease = Lease(0, SETTINGS.lease_s, lambda _owner: None)
    yield Bench(link, Door(link, fleet, catalogue, SETTINGS, ""), Store(link, 0, lease, SETTINGS, RedisClock()))
    await link.close()


async def test_a_handler_that_takes_too_long_is_cut(bench: Bench) -> None:
    runner, task = await bench.run(Cut, "wait")
    await task
    assert await bench.end(runner) == ("FAILED", "timeout")
    assert not task.cancelling()


async def test_a_time_out_of_the_handler_s_own_is_not_that_of_its_state(bench: Bench) -> None:
    runner, task = await bench.run(Cut, "raise")
    await task
    assert await bench.end(runner) == ("FAILED", "retries_exhausted")


async def test_what_a_handler_answers_although_it_was_cut_counts(bench: Bench) -> None:
    runner, task = await bench.run(Cut, "swallow")
    await task
    assert await bench.end(runner) == ("SUCCEEDED", None)
    assert not task.cancelling()


async def test_a_cancel_cuts_it(bench: Bench) -> None:
    runner, task = await bench.run(Slow, "wait")
    genuine = bench.door._fleet.ids.read(runner.claimed.task_id)
    assert genuine is not None
    await Control(bench.link, SETTINGS).cancel(genuine)
    await runner.signal()
    await task
    assert await bench.end(runner) == ("CANCELLED", "requested")


async def test_a_lost_mission_is_not_committed_by_the_time_out_that_came_with_the_loss(bench: Bench) -> None:
    runner, task = await bench.run(Slow, "wait")
    runner._handling._cancel("timeout")
    runner.drop()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await bench.end(runner) == ("RUNNING", None)
