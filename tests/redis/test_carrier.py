"""The carrier of outboxes, dying or standing still at every step, alone and side by side: a row acts once."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest
import redis

from backend_loop import document
from backend_loop.carrier import Carrier, told_of
from backend_loop.children import Child
from backend_loop.course import Course
from shared import keys
from shared.fleet import Fleet
from shared.redis import Link
from shared.settings import Settings
from tests.redis.audit import faults, leftovers, read
from tests.redis.scripts_client import FAR, New, Verbs, Write, event

SHARDS: Final = 2
SETTINGS: Final = Settings(shards=SHARDS)
ENDED: Final = '"type":"t","status":"SUCCEEDED","result":{"n":1},"error":null,"reason":null'
LAST: Final[dict[str, Any]] = {"state": "SUCCEEDED", "events": (event("SUCCEEDED", "SUCCEEDED"),)}


class DiedError(Exception):
    """The process was killed here."""


class Mortal:
    """A link that is cut before or after its n-th call, and gives way to others before each."""

    def __init__(
        self, link: Link, n: int | None = None, *, after: bool = False, dice: random.Random | None = None
    ) -> None:
        self.link, self.n, self.after, self.dice, self.calls = link, n, after, dice, 0

    @property
    def connected(self) -> bool:
        return self.link.connected

    async def run(self, *args: Any) -> Any:
        return await self._live(self.link.run, *args)

    async def call(self, *args: Any) -> Any:
        return await self._live(self.link.call, *args)

    async def up(self) -> None:
        await self.link.up()

    async def _live(self, call: Callable[..., Any], *args: Any) -> Any:
        for _ in range(self.dice.randrange(4) if self.dice else 0):
            await asyncio.sleep(0)
        self.calls += 1
        if self.calls == self.n and not self.after:
            raise DiedError
        answer = await call(*args)
        if self.calls == self.n:
            raise DiedError
        return answer


class Town:
    """A parent in shard 0 and its three children in both shards, driven by hand."""

    def __init__(self, link: Link, fleet: Fleet, client: Any) -> None:
        self.link, self.fleet = link, fleet
        self.shards = [Verbs(client, shard) for shard in range(SHARDS)]
        self.parent = fleet.ids.new(0, 1)
        self.kids = [fleet.ids.derived(shard, 1, f"kid {n}") for n, shard in enumerate((0, 1, 1))]
        self.accepted = 0

    def row(self, kid: str) -> str:
        return json.dumps(
            {
                "row": "accept",
                "child": kid,
                "type": "t",
                "version": 1,
                "lane": "normal:default:a",
                "held": "",
                "root": self.parent,
                "run": 1,
                "deadline": FAR,
                "state": "START",
                "latest": "",
                "used_until": FAR,
                "envelope": {},
            },
            separators=(",", ":"),
        )

    async def live(self, carry: Callable[[], Any]) -> None:
        """From the first commit to the last end; `carry` carries all rows."""
        home = self.shards[0]
        home.accept(New(self.parent))
        rows = tuple(map(self.row, self.kids))
        home.commit("w1", home.take("w1")[self.parent].write("leave", waiting_for="children", rows=rows))
        await carry()
        for kid, verbs in ((self.kids[0], home), (self.kids[1], self.shards[1])):
            verbs.commit("w2", verbs.take("w2", 1)[kid].write("end", middle=ENDED, **LAST))
        await carry()
        mine = home.take("w1")[self.parent]
        told = [json.loads(one) for one in mine.unread]
        assert sorted(one["task_id"] for one in told) == sorted(self.kids[:2]), "each end is told once"
        assert {(one["entry"], one["run"], one["status"]) for one in told} == {("child", 1, "SUCCEEDED")}
        cancel = json.dumps({"row": "cancel", "child": self.kids[2], "reason": "requested"})
        home.commit("w1", mine.write("end", rows=(cancel,), **LAST))
        await carry()
        self.check()

    def check(self) -> None:
        ends = {kid: self.of(kid).result(kid) for kid in self.kids}
        statuses = [end["status"] for end in ends.values() if end is not None]
        assert statuses == ["SUCCEEDED", "SUCCEEDED", "CANCELLED"]
        for kid in self.kids:
            log = [event["status"] for event in self.of(kid).log(kid)]
            assert sum(one in {"SUCCEEDED", "CANCELLED"} for one in log) == 1, "each ends once"
        for verbs in self.shards:
            shard = read(verbs.redis, verbs.shard)
            assert faults(shard) == []
            assert "outbox" not in shard.keys
            for one in (self.parent, *self.kids):
                if verbs.redis.zscore(verbs.key("retire"), one):
                    verbs.set_score("retire", one, 1)
            verbs.take("w2")  # a ring keeps its tenants until a claim finds their lanes empty
            verbs.retire()
            assert leftovers(read(verbs.redis, verbs.shard)) == []

    def of(self, kid: str) -> Verbs:
        return self.shards[1 if kid != self.kids[0] else 0]

    def due(self) -> bool:
        """Whoever held rows is given up; whether there are any."""
        left = False
        for verbs in self.shards:
            for one in verbs.redis.zrange(verbs.key("outboxes"), 0, -1):
                verbs.set_score("outboxes", one.decode(), 1)
                left = True
        return left

    def carriers(self, mortal: Any) -> list[Carrier]:
        return [Carrier(mortal, shard, self.fleet, SETTINGS) for shard in range(SHARDS)]


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[Link]:
    link = await Link(redis_url).open(wait_s=30)
    yield link
    await link.close()


async def _town(link: Link, redis_url: str) -> Town:
    client = redis.Redis.from_url(redis_url)
    client.flushall()
    fleet = Fleet(SHARDS)
    await fleet.join(link)
    client.delete(keys.FLEET)  # no shard's
    return Town(link, fleet, client)


async def _round(carriers: list[Carrier]) -> None:
    for carrier in carriers:
        try:
            await carrier.loop._once()  # type: ignore[operator]  # one turn of the loop, by hand
        except DiedError:
            return


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_p5_a_carrier_may_die_between_any_two_steps(link: Link, redis_url: str, *, after: bool) -> None:
    n, alive = 0, False
    while not alive:
        n += 1
        town = await _town(link, redis_url)
        first, others = Mortal(link, n, after=after), Mortal(link)

        async def carry(town: Town = town, first: Mortal = first, others: Mortal = others) -> None:
            while town.due():
                await _round(town.carriers(others if first.calls >= (first.n or 0) else first))

        await town.live(carry)
        alive = first.calls < n
    assert n > 20, "it died at every step"


@pytest.mark.parametrize("seed", range(40))
async def test_p5_two_carriers_of_the_same_rows_do_no_harm(link: Link, redis_url: str, seed: int) -> None:
    dice = random.Random(seed)
    town = await _town(link, redis_url)

    async def carry() -> None:
        while town.due():
            mortals = [
                Mortal(link, dice.choice([None, dice.randrange(1, 12)]), after=dice.random() < 0.5, dice=dice)
                for _ in range(3)
            ]
            rounds = [_round(town.carriers(mortal)) for mortal in mortals]
            first = asyncio.ensure_future(rounds[0])
            for _ in range(dice.randrange(6)):
                await asyncio.sleep(0)
            town.due()  # the first one has stood still for longer than it may hold its rows
            await asyncio.gather(first, *rounds[1:])

    await town.live(carry)


async def test_a_row_that_accept_refuses_is_laid_aside_and_the_parent_is_told(link: Link, redis_url: str) -> None:
    town = await _town(link, redis_url)
    home = town.shards[0]
    home.accept(New(town.parent))
    late, strange = town.row(town.kids[0]).replace(str(FAR) + ',"envelope"', '1,"envelope"'), '{"row":"webhook"}'
    rows = (late, "no row", '{"row":"cancel","child":"nobody","reason":"requested"}', strange)
    home.commit("w1", home.take("w1")[town.parent].write("leave", waiting_for="children", rows=rows))
    await _round(town.carriers(link)[:1])

    [told] = [json.loads(one) for one in home.unread(town.parent)]
    assert (told["task_id"], told["status"], told["error"]["code"]) == (town.kids[0], "FAILED", "permanent")
    dead = [json.loads(one) for one in home.redis.lrange(home.key(f"dead_rows:{town.parent}"), 0, -1)]
    assert [one["row"] for one in dead] == list(rows[:3])
    assert dead[0]["why"] == "accept answered TOO_OLD"
    assert home.rows(town.parent) == [strange], "a later release may know it"


async def test_a_full_redis_puts_a_row_off(link: Link, redis_url: str) -> None:
    town = await _town(link, redis_url)
    home = town.shards[0]
    home.accept(New(town.parent))
    rows = (town.row(town.kids[1]),)
    home.commit("w1", home.take("w1")[town.parent].write("leave", waiting_for="children", rows=rows))
    home.redis.config_set("maxmemory", 1)
    try:
        await _round(town.carriers(link)[:1])
    finally:
        home.redis.config_set("maxmemory", 0)
    assert home.rows(town.parent) == list(rows)
    town.due()
    await _round(town.carriers(link)[:1])
    assert town.shards[1].place(town.kids[1]) == "lane"


async def test_a_large_result_is_left_where_it_is(link: Link, redis_url: str) -> None:
    town = await _town(link, redis_url)
    home = town.shards[0]
    home.accept(New(town.parent), New(town.kids[0], root=f"{town.parent} {town.parent} 1 7", deadline_ms=FAR))
    taken = home.take("w1")
    home.commit("w1", taken[town.parent].write("leave", wake_at=FAR, waiting_for="timer"))
    middle = ENDED.replace("1", '"' + "y" * 20_000 + '"')
    home.commit("w1", taken[town.kids[0]].write("end", middle=middle))
    town.due()
    await _round(town.carriers(link)[:1])

    [told] = [json.loads(one) for one in home.unread(town.parent)]
    assert (told["status"], told.get("result")) == ("SUCCEEDED", None)


@pytest.mark.parametrize(("length", "kept"), [(300, 300), (100_000, 501)])
def test_of_a_large_error_its_parent_is_told_how_it_begins(length: int, kept: int) -> None:
    error = {"code": "permanent", "message": "m" * length, "state": "PAY", "attempts": 2, "errors": []}
    told = told_of("kid", {"type": "t", "status": "FAILED", "result": None, "error": error, "reason": None})
    assert {name: told["error"][name] for name in ("code", "state", "attempts")} == {
        "code": "permanent",
        "state": "PAY",
        "attempts": 2,
    }
    assert len(told["error"]["message"]) == kept
    assert ("errors" in told["error"]) is (length == kept)


async def test_who_lives_is_cancelled_where_no_worker_could_say_who(link: Link, redis_url: str) -> None:
    town = await _town(link, redis_url)
    home = town.shards[0]
    for verbs, kid in zip((home, town.shards[1], town.shards[1]), town.kids, strict=True):
        verbs.accept(New(kid, root=f"{town.parent} {town.parent} 1 7", deadline_ms=FAR))
    known = [Child(kid, "t", None, "FAN", 1, n) for n, kid in enumerate(town.kids)]
    known[0] = known[0]._replace(status="SUCCEEDED")
    known[1] = known[1]._replace(cancel=2)
    text = document.write(Course("FAN", children=(*known, Child("held", "t", None, "FAN", 1, 9, spec={}))), {})
    home.accept(New(town.parent))
    home.release("w1", *((one, taken.fence) for one, taken in home.take("w1").items() if one != town.parent))
    fence = int(home.record(town.parent)["fence"])
    write = Write(town.parent, fence, 0, 0, "leave", "WAITING", document=text.decode(), rows=('{"row":"cancel_all"}',))
    assert home.commit("w1", write)[0].word == "OK"
    await _round(town.carriers(link)[:1])

    assert [town.of(kid).place(kid) for kid in town.kids] == ["lane", "ended", "ended"]
    assert home.rows(town.parent) == []
