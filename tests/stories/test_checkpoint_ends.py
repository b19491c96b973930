"""What ends a handler at its checkpoint, by one commit that keeps what it has and reacts to what came (P3, P9, P23)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from backend_loop.outcomes import Outcome, Sleep
from backend_loop.outcomes import Retry as Again
from backend_loop.store import LostError
from backend_loop.suspects import Suspect, Suspects
from shared import keys
from tests.stories.midway import SETTINGS, Bench, Deaf, LongAct, Tools, benched


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    async with benched(redis_url) as bench:
        yield bench


class Steps:
    """A handler that keeps one item after the other; before the second one something happens."""

    def __init__(self, happens: Any) -> None:
        self.happens, self.began = happens, list[list[int]]()
        self.ended: list[type[BaseException]] = []

    async def __call__(self, tools: Tools) -> Outcome | None:
        self.began.append(list(tools.context.items))
        try:
            for n in range(len(tools.context.items) + 1, 4):
                tools.context.items.append(n)
                if n == 2:
                    await self.happens()
                await tools.checkpoint()
        except BaseException as error:
            self.ended.append(type(error))
            raise
        return None


async def revs(bench: Bench) -> int:
    return int((await bench.record())["rev"])


async def test_a_cancel_ends_it_there_and_what_it_has_kept_is_undone(bench: Bench) -> None:
    undone: list[Any] = []

    async def back(tools: Tools) -> None:
        undone.append((list(tools.context.items), tools.may_have_happened, await revs(bench)))

    steps = Steps(bench.cancel)
    await bench.take(steps, back)
    await bench.run()  # no hint comes here: the commit alone says it
    assert (steps.began, steps.ended) == ([[]], [asyncio.CancelledError])
    assert undone == [([1, 2], True, 2)]  # one commit kept the second item and began the undo
    assert await bench.log() == ["WORKING", "working", "CANCELLED"]


async def test_a_cancel_that_is_heard_of_first_keeps_it_as_well(bench: Bench) -> None:
    """It raises at the checkpoint, as at any other await."""
    undone: list[list[int]] = []

    async def heard() -> None:
        await bench.cancel()
        await runner.signal()

    async def back(tools: Tools) -> None:
        undone.append(list(tools.context.items))

    await bench.take(Steps(heard), back)
    runner = await bench.claim()
    await runner.run()
    assert undone == [[1, 2]]
    assert await revs(bench) == 3


async def test_a_pause_ends_it_there_and_it_goes_on_behind(bench: Bench) -> None:
    steps = Steps(bench.pause)
    await bench.take(steps)
    await bench.run()
    record = await bench.record()
    assert (record["place"], record["rev"], await bench.items()) == ("paused", "2", [1, 2])

    await bench.resume()
    await bench.run()
    assert steps.began == [[], [1, 2]]
    assert (await bench.result())["result"] == {"items": [1, 2, 3]}


async def test_a_pause_ends_one_with_nothing_new_as_well(bench: Bench) -> None:
    """As soon as it is known of: a hint says so, or the next renewal. The tries do not count anew."""
    passed: list[str] = []

    async def play(tools: Tools) -> Outcome | None:
        if tools.attempt == 1:
            return Again("no")
        await bench.pause()
        await tools.checkpoint()
        passed.append("nobody knows of it")
        await runner.signal()
        await tools.checkpoint()
        passed.append("never")
        return None

    await bench.take(play)
    await bench.run()
    runner = await bench.claim()
    await runner.run()
    assert passed == ["nobody knows of it"]
    record = await bench.record()
    assert (record["place"], record["rev"], (await bench.kept()).course.attempt) == ("paused", "2", 2)


async def test_an_event_and_a_resume_do_not_end_it(bench: Bench) -> None:
    async def happens() -> None:
        await bench.happen("PAID", {"amount": 3})
        await bench.pause()
        await bench.resume()

    steps = Steps(happens)
    await bench.take(steps)
    await bench.run()
    assert (steps.began, steps.ended, await revs(bench)) == ([[]], [], 4)
    assert (await bench.kept()).course.remembered == {"PAID": {"amount": 3}}
    assert await bench.link.call("EXISTS", keys.inbox(0, bench.task_id)) == 0


async def test_the_end_of_a_child_is_seen_behind_it(bench: Bench) -> None:
    seen: list[Any] = []

    async def play(tools: Tools) -> Outcome | None:
        if not tools.children:
            tools.spawn("test.long", {"work": "none"})
            return Sleep(0)
        [child] = tools.children
        await bench.child_ends(child.task_id)
        tools.context.items.append(1)
        await tools.checkpoint()
        seen.extend([child.ended, *(one.succeeded for one in tools.children)])
        return None

    await bench.take(play)
    await bench.run()
    await bench.run()
    assert seen == [False, True]


@pytest.mark.parametrize(
    ("what", "states"),
    [("skip", ["WORKING", "AFTER", "SUCCEEDED"]), ("complete", ["WORKING", "SUCCEEDED"])],
)
async def test_what_an_operator_says_counts_there(bench: Bench, what: str, states: list[str]) -> None:
    async def happens() -> None:
        await (bench.skip("WORKING") if what == "skip" else bench.complete({"by": "hand"}))

    steps = Steps(happens)
    await bench.take(steps)
    await bench.run()
    assert steps.ended == [asyncio.CancelledError]
    assert await bench.log() == states
    assert await bench.items() == [1, 2]


async def test_p11_an_act_that_a_skip_leads_to_there_asks_whether_a_newer_command_exists(bench: Bench) -> None:
    """It is not the handler at the checkpoint that goes on."""
    bench.kind = LongAct

    async def happens() -> None:
        mine = bench.task_id
        await bench.take(steps, target="light.a")
        bench.task_id = mine
        await bench.skip("WORKING")

    steps = Steps(happens)
    await bench.take(steps, target="light.a")
    await bench.run()
    result = await bench.result()
    assert (result["status"], result["reason"]) == ("CANCELLED", "superseded")
    assert await bench.items() == [1, 2]


async def test_p12_its_permits_stay_with_it_and_end_where_a_skip_leads_on(bench: Bench) -> None:
    bench.kind = LongAct
    held: list[str | None] = []

    async def happens() -> None:
        held.append((await bench.record()).get("permits"))  # behind the first one
        await bench.skip("WORKING")

    async def act(_tools: Tools) -> None:
        held.append((await bench.record()).get("permits"))

    await bench.take(Steps(happens), act)
    await bench.run()
    assert held == ["dep:bank", None]


async def test_so_does_the_deadline(bench: Bench) -> None:
    store = bench.store()

    async def happens() -> None:
        await bench.link.call("ZADD", keys.prefix(0) + "deadlines", 1, bench.task_id)
        assert (await store.sweep(",test.long@1,"))[0] == 1

    await bench.take(Steps(happens))
    await (await bench.claim(store)).run()
    result = await bench.result()
    assert (result["status"], result["error"]["code"], result["result"]) == (
        "FAILED",
        "deadline",
        {"undone": ["WORKING"]},
    )


async def test_p8_what_a_suspect_has_consumed_at_one_with_nothing_new_is_buried_with_it(bench: Bench) -> None:
    """Its process died then: a replay is to find the event that came."""
    store = bench.store()

    async def play(tools: Tools) -> None:
        await bench.happen("PAID", {"amount": 3})
        await bench.pause()
        await bench.resume()
        await runner.signal()
        for _ in range(2):
            await tools.checkpoint()
            record = await bench.record()
            assert (record["unread"], record["rev"]) == ("0", "1")
        raise LostError("it dies here")

    await bench.take(play)
    await bench.link.call("HSET", keys.mission(0, bench.task_id), "deaths", 2)
    runner = await bench.claim(store)
    with pytest.raises(LostError):
        await runner.run()
    suspects = Suspects(SETTINGS, "", bench.link)
    await Suspect(runner.claimed, bench.kind.definition, store, suspects)._bury("exited with 9")
    assert (await bench.result())["error"]["code"] == "worker_lost"
    assert (await bench.kept()).course.remembered == {"PAID": {"amount": 3}}


# giving way


@pytest.mark.parametrize(("news", "rev"), [(True, "2"), (False, "1")])
async def test_a_draining_worker_hands_it_on_there(bench: Bench, news: bool, rev: str) -> None:
    began: list[list[int]] = []

    async def play(tools: Tools) -> None:
        began.append(list(tools.context.items))
        if len(began) == 2:
            return
        tools.context.items.append(1)
        await tools.checkpoint()
        runner.draining = True
        if news:
            tools.context.items.append(2)
        await tools.checkpoint()
        tools.context.items.append(3)

    await bench.take(play)
    runner = await bench.claim()
    await runner.run()
    record = await bench.record()
    assert (record["place"], record["status"], record["rev"]) == ("lane", "WAITING", rev)

    await bench.run()
    assert began == [[], [1, 2] if news else [1]]


async def test_a_bulk_mission_gives_its_slot_to_an_urgent_one_there(bench: Bench) -> None:
    async def urgent() -> None:
        bench.wanted, mine = True, bench.task_id
        await bench.take(steps, priority="urgent")
        bench.task_id = mine

    steps = Steps(urgent)
    await bench.take(steps, priority="bulk")
    await bench.run()
    record = await bench.record()
    assert (record["place"], record["rev"], await bench.items()) == ("lane", "2", [1, 2])
    assert steps.ended == [asyncio.CancelledError]


async def test_and_keeps_it_where_nobody_needs_it(bench: Bench) -> None:
    steps = Steps(lambda: asyncio.sleep(0))
    bench.wanted = True
    await bench.take(steps, priority="bulk")
    await bench.run()
    assert (await bench.result())["result"] == {"items": [1, 2, 3]}


async def test_where_it_is_not_known_whether_the_slot_was_taken_it_is_given_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = bench.store()
    Deaf(store, monkeypatch)
    steps = Steps(lambda: asyncio.sleep(0))
    bench.wanted = True
    await bench.take(steps, priority="bulk")
    await (await bench.claim(store)).run()
    assert ((await bench.record())["place"], await bench.items(), steps.began) == ("lane", [1], [[]])

    await (await bench.claim(store)).run()
    assert steps.began == [[], [1]]
    assert (await bench.result())["result"] == {"items": [1, 2, 3]}


async def test_it_ends_the_whole_handler_whichever_of_its_tasks_has_called_it(bench: Bench) -> None:
    ended: list[str] = []

    async def worker(tools: Tools, n: int) -> None:
        try:
            if n == 1:
                tools.context.items.append(n)
                await bench.pause()
                await tools.checkpoint()
            await asyncio.Event().wait()
        finally:
            ended.append(f"task {n}")

    async def play(tools: Tools) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for n in range(3):
                    group.create_task(worker(tools, n))
        finally:
            ended.append("handler")

    await bench.take(play)
    runner = await bench.claim()
    task = asyncio.create_task(runner.run())
    await asyncio.wait({task}, timeout=100)
    assert task.done()  # not by the time-out of its state
    await task
    assert sorted(ended) == ["handler", "task 0", "task 1", "task 2"]
    assert ((await bench.record())["place"], await bench.items()) == ("paused", [1])


async def test_checkpoints_of_several_tasks_come_one_by_one(bench: Bench) -> None:
    async def worker(tools: Tools, n: int) -> None:
        tools.context.items.append(n)
        await tools.checkpoint()

    async def play(tools: Tools) -> None:
        async with asyncio.TaskGroup() as group:
            for n in range(5):
                group.create_task(worker(tools, n))

    await bench.take(play)
    await bench.run()
    assert (await bench.result())["result"] == {"items": [0, 1, 2, 3, 4]}
    assert await revs(bench) == 6


async def test_what_stands_behind_the_one_that_ends_it_writes_nothing(bench: Bench) -> None:
    async def worker(tools: Tools, n: int) -> None:
        tools.context.items.append(n)
        await tools.checkpoint()

    async def play(tools: Tools) -> None:
        await bench.pause()
        async with asyncio.TaskGroup() as group:
            for n in range(3):
                group.create_task(worker(tools, n))

    await bench.take(play)
    await bench.run()
    record = await bench.record()
    assert (record["place"], record["rev"], await bench.items()) == ("paused", "1", [0])
