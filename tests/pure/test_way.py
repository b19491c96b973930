"""Who steps aside, for how long, and that they do not all come back at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from backend_loop import way
from backend_loop.way import Way


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody comes back by himself, unless a test says so."""
    monkeypatch.setattr(way, "ASIDE_S", 60.0)


async def begun(*waits: Coroutine[Any, Any, None]) -> list[asyncio.Task[None]]:
    """Those that wait, each having begun to."""
    tasks = [asyncio.create_task(wait) for wait in waits]
    await asyncio.sleep(0)
    return tasks


async def test_nobody_waits_where_nobody_is_in_a_hurry() -> None:
    path = Way(few=2, most=10)
    assert not waits(path)
    path.begins()
    assert waits(path), "so that this test can tell"
    path.ended()
    assert not waits(path)


def waits(path: Way) -> bool:
    """Whether who comes by now is held up."""
    coming = path.clear()
    try:
        coming.send(None)
    except StopIteration:
        return False
    coming.close()
    return True


async def test_who_stepped_aside_goes_on_in_order_once_the_last_urgent_one_has_ended() -> None:
    path, seen = Way(few=2, most=10), list[int]()

    async def bulk(n: int) -> None:
        await path.clear()
        seen.append(n)

    path.begins()
    path.begins()
    tasks = await begun(*(bulk(n) for n in range(3)))
    path.ended()
    await asyncio.sleep(0)
    assert (seen, path.aside) == ([], 3)
    path.ended()
    await asyncio.sleep(0)
    assert path.aside == 2, "one after the other"
    await asyncio.gather(*tasks)
    assert seen == [0, 1, 2]


async def test_the_next_urgent_one_finds_the_way_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(way, "GAP_S", 0.0)
    path = Way(few=2, most=10)
    path.begins()
    tasks = await begun(*(path.clear() for _ in range(3)))
    path.ended()
    path.begins()
    for _ in range(10):
        await asyncio.sleep(0)
    assert path.aside == 2
    path.ended()
    await asyncio.gather(*tasks)


async def test_nobody_waits_for_a_flood_or_beyond_his_time() -> None:
    path = Way(few=2, most=10)
    for _ in range(3):
        path.begins()
    await path.clear()
    path.ended()
    assert path.closed


async def test_an_urgent_one_that_takes_long_is_waited_for_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(way, "ASIDE_S", 0.02)
    path = Way(few=2, most=10)
    path.begins()
    await path.clear()
    assert not path.closed, "its time is over"
    await path.clear()
    path.begins()
    assert path.closed, "that of the next one is not"


async def test_only_so_many_step_aside_and_who_is_cut_waits_no_more() -> None:
    path = Way(few=2, most=2)
    path.begins()
    tasks = await begun(path.clear(), path.clear())
    await path.clear()
    tasks[0].cancel()
    await asyncio.wait({tasks[0]})
    assert path.aside == 1
    path.ended()
    await tasks[1]
