"""Runners without loops around them, of a mission whose handlers do what the test plays, on a real shard."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from pydantic_core import from_json

from backend_loop import document
from backend_loop.admission import Admission
from backend_loop.breakers import Breakers
from backend_loop.dependency import Dependency
from backend_loop.executors import Executors
from backend_loop.lease import Lease
from backend_loop.mission import Latest, Mission, state, undo
from backend_loop.outcomes import Go, Outcome
from backend_loop.outside import Outside
from backend_loop.redis_clock import RedisClock
from backend_loop.retry import Retry
from backend_loop.runner import Runner
from backend_loop.spawning import Spawning
from backend_loop.store import Commit, Store, Written
from backend_loop.toolbox import Toolbox
from frontend_loop.control import By, Control
from frontend_loop.door import Door
from shared import keys
from shared.catalogue import Catalogue
from shared.errors import RedisUnknownError
from shared.fleet import Fleet
from shared.ids import MissionId
from shared.redis import Link
from shared.settings import Settings

SETTINGS = Settings(_env_file=None, pools=("default",), lease_s=120)
ME = By("me")
Tools = Toolbox[Any, Any]
Play = Callable[[Tools], Awaitable[Outcome | None]]
plays: dict[str, Play] = {}


class Long(Mission):
    """Does what the test plays."""

    type = "test.long"
    table: ClassVar = {
        "WORKING": {"done": "SUCCEEDED", "PAID": "SUCCEEDED", "joined": "SUCCEEDED", "skipped": "AFTER"},
        "AFTER": {"done": "SUCCEEDED"},
    }

    class Payload(BaseModel):
        """What is played."""

        work: str
        back: str = ""

    class Context(BaseModel):
        """What it has done."""

        items: list[int] = []
        left: Any = None

    @state("WORKING", acting=True, timeout_s=120, retry=Retry(tries=2, base_s=0), on_failure="skip")
    async def work(self, tools: Tools) -> Outcome:
        answer = await plays[tools.payload.work](tools)
        return Go("done", result={"items": tools.context.items}) if answer is None else answer

    @undo("WORKING", timeout_s=120, retry=Retry(tries=2, base_s=0))
    async def take_back(self, tools: Tools) -> Outcome | None:
        return await plays[tools.payload.back](tools) if tools.payload.back else None

    @state("AFTER")
    async def after(self, _tools: Tools) -> Outcome:
        return Go("done")


class LongAct(Mission):
    """Leaves what the test plays for an act that a newer command may replace."""

    type = "test.long_act"
    table: ClassVar = {"WORKING": {"done": "ACTING"}, "ACTING": {"done": "SUCCEEDED"}}
    Payload, Context, target, latest = Long.Payload, Long.Context, "work", Latest(aspect="power")

    @state("WORKING", on_failure="skip", uses=(Dependency("bank", concurrency=1),))
    async def work(self, tools: Tools) -> Outcome:
        await plays[tools.payload.work](tools)
        return Go("done")

    @state("ACTING", acting=True)
    async def act(self, tools: Tools) -> Outcome:
        if tools.payload.back:
            await plays[tools.payload.back](tools)
        return Go("done")


class Bench:
    """A door, and workers without loops: each claims when it is told to."""

    def __init__(self, link: Link, fleet: Fleet, catalogue: Catalogue) -> None:
        self.link, self._fleet, self._catalogue = link, fleet, catalogue
        self._door, self._control = Door(link, fleet, catalogue, SETTINGS, ""), Control(link, SETTINGS)
        self._names = count()
        self.wanted = False
        """Whether others wait for a slot of these workers."""
        self.failures: list[BaseException] = []
        """What a play has found to be wrong: to its runner that is a handler that failed."""
        self.kind: type[Mission] = Long
        self.task_id = ""

    async def take(self, work: Play, back: Play | None = None, **command: Any) -> None:
        """A mission that plays this."""
        payload = {"work": self._named(work), "back": self._named(back) if back is not None else ""}
        self.task_id = (await self._door.take({"type": self.kind.type, "payload": payload, **command}, "cli")).task_id

    def _named(self, play: Play) -> str:
        async def watched(tools: Tools) -> Outcome | None:
            try:
                return await play(tools)
            except (AssertionError, pytest.fail.Exception) as failure:
                self.failures.append(failure)
                raise

        name = f"{next(self._names)}"
        plays[name] = watched
        return name

    def store(self) -> Store:
        """Of a worker."""
        return Store(self.link, 0, Lease(0, SETTINGS.lease_s, lambda _owner: None), SETTINGS, RedisClock())

    async def claim(self, store: Store | None = None, **outside: Any) -> Runner:
        """A runner of the mission, by a worker of its own."""
        store, clock = store or self.store(), RedisClock()
        answer = await store.claim(1, 1, f",{self.kind.definition.kind},")
        assert answer is not None
        [claimed] = answer[1]
        given = Outside(
            clock=clock,
            lease=store.lease,
            admission=Admission(self.link, 0, SETTINGS, clock, Breakers(self.link, 1)),
            executors=Executors(SETTINGS),
            wakes=lambda _s: None,
            spawning=Spawning(self._fleet, [Long.definition], self._catalogue, 60),
            **{"reports": store.reports, **outside},
        )
        return Runner(claimed, self.kind.definition, store, given, lambda: self.wanted)

    async def run(self) -> None:
        """Claim and run, as far as it goes."""
        await (await self.claim()).run()

    async def cancel(self) -> None:
        await self._control.cancel(self._genuine)

    async def pause(self) -> None:
        await self._control.pause(self._genuine)

    async def resume(self) -> None:
        await self._control.resume(self._genuine)

    async def skip(self, state: str) -> None:
        await self._control.skip(self._genuine, state, ME)

    async def complete(self, result: dict[str, Any]) -> None:
        await self._control.complete(self._genuine, result, ME)

    async def happen(self, event: str, data: dict[str, Any]) -> None:
        await self._control.happen(self._genuine, event, data, None)

    async def child_ends(self, child: str, number: int = 1) -> None:
        """Its parent hears of it."""
        entry = f'{{"entry":"child","run":1,"task_id":"{child}","type":"test.long","status":"SUCCEEDED","error":null}}'
        args = (self.task_id, "child", f"end {number}", entry, "", 60_000, "null", 1)
        assert (await self.link.run("control", keys.prefix(0), *args))[0] == b"OK"

    @property
    def _genuine(self) -> MissionId:
        found = self._fleet.ids.read(self.task_id)
        assert found is not None
        return found

    async def record(self) -> dict[str, str]:
        """As Redis has it."""
        raw = await self.link.call("HGETALL", keys.mission(0, self.task_id))
        return {raw[n].decode(): raw[n + 1].decode() for n in range(0, len(raw), 2)}

    async def kept(self) -> document.Kept:
        """Its document."""
        record = await self.record()
        return document.read(record.get("document", "").encode(), record["state"])

    async def items(self) -> list[int]:
        """What is durable of its work."""
        return list((await self.kept()).context.get("items", []))

    async def result(self) -> dict[str, Any]:
        """The result document."""
        return dict(from_json(await self.link.call("GET", keys.result(0, self.task_id))))

    async def log(self) -> list[str]:
        """States of its events, those of an undo in small letters."""
        events = map(from_json, await self.link.call("LRANGE", keys.log(0, self.task_id), 0, -1))
        return [one["state"].lower() if one["status"] == "COMPENSATING" else one["state"] for one in events]


class Held:
    """Holds the commits of a worker back, as a Redis that is away does."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self._commit = store.commit
        self.asked, self.let = asyncio.Event(), asyncio.Event()
        monkeypatch.setattr(store, "commit", self)

    async def __call__(self, commit: Commit) -> Written:
        self.asked.set()
        await self.let.wait()
        return await self._commit(commit)


class Deaf:
    """Loses the answer to a worker's first commit."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self._add, self.sent = store._commits.add, 0
        monkeypatch.setattr(store._commits, "add", self)

    def __call__(self, head: Any, item: Any) -> asyncio.Future[Any]:
        answer = self._add(head, item)
        self.sent += 1
        if self.sent > 1:
            return answer
        unheard: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda _: unheard.set_exception(RedisUnknownError("lost")))
        return unheard


@contextlib.asynccontextmanager
async def benched(redis_url: str) -> AsyncIterator[Bench]:
    """One, on an empty shard; at the end every play has found all as it should be."""
    link = await Link(redis_url).open(wait_s=30)
    fleet, catalogue = Fleet(1), Catalogue()
    await fleet.join(link)
    for row in (Long.definition.row(), LongAct.definition.row()):
        await link.run("announce", keys.prefix(0), 60_000, row.kind, row.model_dump_json())
    await catalogue.refresh(link)
    bench = Bench(link, fleet, catalogue)
    yield bench
    await link.close()
    for failure in bench.failures:
        raise failure
