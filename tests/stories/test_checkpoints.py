"""A checkpoint in the middle of a handler: what it keeps, who goes on behind it, and what ends the handler there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import from_json

from backend_loop import document
from backend_loop.admission import Admission
from backend_loop.breakers import Breakers
from backend_loop.executors import Executors
from backend_loop.lease import Lease
from backend_loop.midway import CheckpointError
from backend_loop.mission import Mission, state, undo
from backend_loop.outcomes import Go, Outcome, WaitFor
from backend_loop.outcomes import Retry as Again
from backend_loop.redis_clock import RedisClock
from backend_loop.retry import Retry
from backend_loop.runner import Runner
from backend_loop.store import LostError, Store
from backend_loop.toolbox import Outside, Toolbox
from frontend_loop.control import Control
from frontend_loop.door import Door
from shared import keys
from shared.catalogue import Catalogue
from shared.fleet import Fleet
from shared.ids import MissionId
from shared.redis import Link
from shared.settings import Settings

SETTINGS = Settings(_env_file=None, pools=("default",))
Play = Callable[["Toolbox[Any, Any]"], Awaitable[Outcome | None]]
plays: dict[str, Play] = {}


class Long(Mission):
    """Does what the test plays."""

    type = "test.long"
    table = {"WORKING": {"done": "SUCCEEDED", "GO": "WORKING", "skipped": "AFTER"}, "AFTER": {"done": "SUCCEEDED"}}

    class Payload(BaseModel):
        play: str
        undo: str = ""

    class Context(BaseModel):
        items: list[int] = []
        left: Any = None

    @state("WORKING", acting=True, timeout_s=30, retry=Retry(tries=2, base_s=0.01), on_failure="skip")
    async def work(self, tools: Toolbox[Any, Any]) -> Outcome:
        answer = await plays[tools.payload.play](tools)
        return Go("done", result={"items": tools.context.items}) if answer is None else answer

    @undo("WORKING", retry=Retry(tries=2, base_s=0.01))
    async def take_back(self, tools: Toolbox[Any, Any]) -> None:
        if tools.payload.undo:
            await plays[tools.payload.undo](tools)

    @state("AFTER")
    async def after(self, _tools: Toolbox[Any, Any]) -> Outcome:
        return Go("done")


class Bench:
    """A door, and workers without loops: each claims what it is told to."""

    def __init__(self, link: Link, fleet: Fleet, door: Door) -> None:
        self.link, self.fleet, self.door = link, fleet, door
        self.control, self.wanted = Control(link, SETTINGS), False
        self.task_id = ""
        self.names = count()

    def store(self) -> Store:
        """Of a worker."""
        return Store(self.link, 0, Lease(0, SETTINGS.lease_s, lambda _owner: None), SETTINGS, RedisClock())

    async def take(self, play: Play, back: Play | None = None, **command: Any) -> None:
        """A mission that plays this."""
        names = [f"{next(self.names)}" for _ in range(2)]
        plays[names[0]] = play
        if back is not None:
            plays[names[1]] = back
        payload = {"play": names[0], "undo": names[1] if back is not None else ""}
        taken = await self.door.take({"type": Long.type, "payload": payload, **command}, "cli")
        self.task_id = taken.task_id

    async def claim(self, store: Store | None = None, **outside: Any) -> Runner:
        """A runner of it."""
        store = store or self.store()
        answer = await store.claim(1, 1, f",{Long.definition.kind},")
        assert answer is not None
        [claimed] = answer[1]
        clock = RedisClock()
        given = Outside(
            clock=clock,
            lease=store.lease,
            admission=Admission(self.link, 0, SETTINGS, clock, Breakers(self.link, 1)),
            executors=Executors(SETTINGS),
            wakes=lambda _s: None,
            reports=store.reports,
            **outside,
        )
        return Runner(claimed, Long.definition, store, given, lambda: self.wanted)

    @property
    def genuine(self) -> MissionId:
        found = self.fleet.ids.read(self.task_id)
        assert found is not None
        return found

    async def record(self) -> dict[str, str]:
        raw = await self.link.call("HGETALL", keys.mission(0, self.task_id))
        return {raw[n].decode(): raw[n + 1].decode() for n in range(0, len(raw), 2)}

    async def kept(self) -> document.Kept:
        record = await self.record()
        return document.read(record["document"].encode(), record["state"])

    async def result(self) -> dict[str, Any]:
        return dict(from_json(await self.link.call("GET", keys.result(0, self.task_id))))

    async def log(self) -> list[tuple[str, str]]:
        events = map(from_json, await self.link.call("LRANGE", keys.log(0, self.task_id), 0, -1))
        return [(one["status"], one["state"]) for one in events]


@pytest.fixture
async def bench(redis_url: str) -> AsyncIterator[Bench]:
    link = await Link(redis_url).open(wait_s=5)
    fleet, catalogue = Fleet(1), Catalogue()
    await fleet.join(link)
    row = Long.definition.row()
    await link.run("announce", keys.prefix(0), 60_000, row.kind, row.model_dump_json())
    await catalogue.refresh(link)
    yield Bench(link, fleet, Door(link, fleet, catalogue, SETTINGS, ""))
    await link.close()


async def test_it_keeps_the_context_and_the_progress_and_the_handler_goes_on(bench: Bench) -> None:
    seen: list[Any] = []

    async def play(tools: Toolbox[Any, Any]) -> None:
        for n in (1, 2, 3):
            tools.context.items.append(n)
            tools.progress(n, 3, f"item {n}")
            await tools.checkpoint()
            record = await bench.record()
            seen.append((record["rev"], (await bench.kept()).context["items"], from_json(record["progress"])))

    await bench.take(play)
    await (await bench.claim()).run()

    assert seen == [
        (f"{n}", list(range(1, n + 1)), {"done": n, "total": 3, "message": f"item {n}"}) for n in (1, 2, 3)
    ]
    result = await bench.result()
    assert (result["result"], result["progress"]) == ({"items": [1, 2, 3]}, seen[-1][2])
    assert await bench.log() == [("RUNNING", "WORKING"), ("SUCCEEDED", "SUCCEEDED")]
