"""What is ended though no undo of it can run says what is not undone, and its children end with it (P5, P8)."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from pydantic_core import from_json

from backend_loop.admission import Admission
from backend_loop.breakers import Breakers
from backend_loop.executors import Executors
from backend_loop.lease import Lease
from backend_loop.mission import Mission, state, undo
from backend_loop.outcomes import Go, Outcome, WaitForChildren
from backend_loop.outside import Outside
from backend_loop.redis_clock import RedisClock
from backend_loop.runner import Runner
from backend_loop.spawning import Spawning
from backend_loop.store import Claimed, Store
from backend_loop.suspects import Suspect, Suspects
from frontend_loop.door import Door
from shared import keys
from shared.catalogue import Catalogue
from shared.fleet import Fleet
from shared.redis import Link
from shared.settings import Settings

SETTINGS = Settings(_env_file=None, pools=("default",))


class Child(Mission):
    """Never begins here."""

    type = "test.given_up_child"
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {"WORKING": {"done": "SUCCEEDED"}}

    @state("WORKING")
    async def work(self, _tools: Any) -> Outcome:
        return Go("done")


class Parent(Mission):
    """Books, charges while two children are at work, and waits for them in its act."""

    type = "test.given_up"
    table: ClassVar[Mapping[str, Mapping[str, str]]] = {
        "BOOKING": {"done": "CHARGING"},
        "CHARGING": {"done": "SUCCEEDED"},
    }

    class Context(BaseModel):
        """What later releases may refuse."""

        booked: int = 0

    @state("BOOKING")
    async def book(self, tools: Any) -> Outcome:
        tools.context.booked = 1
        return Go("done")

    @undo("BOOKING")
    async def unbook(self, tools: Any) -> None:
        raise NotImplementedError

    @state("CHARGING", acting=True)
    async def charge(self, tools: Any) -> Outcome:
        for n in range(2):
            tools.spawn(Child.type, {}, name=f"child {n}")
        return WaitForChildren(bound=1, event="done")

    @undo("CHARGING")
    async def pay_back(self, tools: Any) -> None:
        raise NotImplementedError


class Desk:
    """One process' way to shard 0."""

    def __init__(self, link: Link) -> None:
        self.link, self.fleet, self.catalogue, self.clock = link, Fleet(1), Catalogue(), RedisClock()
        self.store = Store(link, 0, Lease(0, SETTINGS.lease_s, lambda _owner: None), SETTINGS, self.clock)

    async def parent(self) -> str:
        """One with a child that lives and another one that waits for its place."""
        await self.fleet.join(self.link)
        for one in (Parent, Child):
            row = one.definition.row()
            await self.link.run("announce", keys.prefix(0), 60_000, row.kind, row.model_dump_json())
        await self.catalogue.refresh(self.link)
        ack = await Door(self.link, self.fleet, self.catalogue, SETTINGS, "").take(
            {"type": Parent.type, "payload": {}}, "cli"
        )
        await self.run()
        [accept] = await self.rows(ack.task_id)
        assert accept["row"] == "accept"
        await self.link.call("DEL", f"{keys.prefix(0)}outbox:{ack.task_id}")  # carried out
        return str(ack.task_id)

    async def claim(self) -> Claimed:
        answer = await self.store.claim(1, 1, f",{Parent.definition.kind},")
        assert answer is not None
        [claimed] = answer[1]
        return claimed

    async def run(self) -> None:
        outside = Outside(
            clock=self.clock,
            lease=self.store.lease,
            admission=Admission(self.link, 0, SETTINGS, self.clock, Breakers(self.link, 1)),
            executors=Executors(SETTINGS),
            wakes=lambda _s: None,
            spawning=Spawning(self.fleet, [Parent.definition, Child.definition], self.catalogue, 60.0),
        )
        await Runner(await self.claim(), Parent.definition, self.store, outside).run()

    async def wake(self, task_id: str) -> None:
        entry = '{"entry":"event","event":"nothing that it knows"}'
        await self.link.run("control", keys.prefix(0), task_id, "event", "e1", entry, "", 60_000, "null")

    async def set(self, task_id: str, field: str, value: str | bytes) -> None:
        await self.link.call("HSET", keys.mission(0, task_id), field, value)

    async def get(self, task_id: str, field: str) -> bytes:
        found: bytes = await self.link.call("HGET", keys.mission(0, task_id), field)
        return found

    async def rows(self, task_id: str) -> list[dict[str, Any]]:
        return [from_json(row) for row in await self.link.call("LRANGE", f"{keys.prefix(0)}outbox:{task_id}", 0, -1)]

    async def error(self, task_id: str) -> dict[str, Any]:
        found: dict[str, Any] = from_json(await self.link.call("GET", keys.result(0, task_id)))["error"]
        return found

    async def children(self, task_id: str) -> list[str]:
        """Of its document, those whose row went out."""
        document = from_json(await self.get(task_id, "document"))
        return [one[0] for one in document.get("children", []) if one[7] is None]


@pytest.fixture
async def desk(redis_url: str) -> AsyncIterator[Desk]:
    link = await Link(redis_url).open(wait_s=30)
    yield Desk(link)
    await link.close()


async def test_one_that_killed_its_workers_leaves_no_child_behind_and_says_what_is_not_undone(desk: Desk) -> None:
    parent = await desk.parent()
    [child] = await desk.children(parent)
    await desk.wake(parent)
    claimed = (await desk.claim())._replace(deaths=2)
    await desk.set(parent, "deaths", "2")
    suspect = Suspect(claimed, Parent.definition, desk.store, Suspects(SETTINGS, "", desk.link))
    await suspect._bury("was ended by SIGKILL")

    error = await desk.error(parent)
    assert (error["code"], error["undone"], error["not_undone"]) == ("worker_lost", [], ["CHARGING", "BOOKING"])
    assert await desk.rows(parent) == [{"row": "cancel", "child": child, "reason": "requested"}]


async def test_one_that_cannot_be_read_any_more_leaves_no_child_behind_and_says_what_is_not_undone(desk: Desk) -> None:
    parent = await desk.parent()
    [child] = await desk.children(parent)
    document = await desk.get(parent, "document")
    await desk.set(parent, "document", document.replace(b'"booked":1', b'"booked":"by nobody"'))
    await desk.wake(parent)
    await desk.run()

    error = await desk.error(parent)
    assert (error["code"], error["undone"], error["not_undone"]) == ("undecodable", [], ["CHARGING", "BOOKING"])
    assert await desk.rows(parent) == [{"row": "cancel", "child": child, "reason": "requested"}]
    assert await desk.children(parent) == [child]  # its document is as it was, for who can read it


@pytest.mark.parametrize(
    "document",
    [
        b"\xff no JSON",
        b'{"ending":5,"done":[["BOOKING",1]],"context":{"booked":"?"}}',
        b'{"children":7,"context":{}}',
        b'{"done":[7],"context":{}}',
        b'{"visits":7,"join":[],"bound":"?","context":{"booked":"?"}}',
    ],
)
async def test_whatever_is_damaged_in_its_document_it_ends(desk: Desk, document: bytes) -> None:
    parent = await desk.parent()
    await desk.set(parent, "document", document)
    await desk.wake(parent)
    await desk.run()

    assert (await desk.error(parent))["code"] == "undecodable"
    assert await desk.rows(parent) == []
