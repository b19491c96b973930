"""What may happen between a command with a key and its ack (P16): each time the repeat comes to the one mission."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import redis

from frontend_loop.door import ACCEPTS_FOR_A_SECOND_FLIGHT, Ack, Door
from frontend_loop.idempotency import ACCEPT_WINDOW_MS, KEEP_S, Idempotency, Reservation
from shared import keys
from shared.catalogue import Catalogue, Row
from shared.errors import Problem
from shared.fleet import Fleet
from shared.flights import Flights
from shared.ids import shard_of
from shared.redis import Link
from shared.settings import Settings
from tests.redis.audit import faults, read
from tests.toxic import Toxic
from tests.waiting import eventually

SHARDS = 4
SETTINGS = Settings(_env_file=None, shards=SHARDS)
COMMAND: dict[str, Any] = {"type": "t", "payload": {"entity": "lamp"}}
ROW = Row(
    type="t", version=1, payload_schema={"type": "object"}, target="entity", initial="S", states={}, transitions=[]
)


@dataclass
class Fleetwide:
    """One foreground on a sound link; others as the tests want them."""

    link: Link
    fleet: Fleet
    catalogue: Catalogue
    client: Any  # a redis.Redis; its stubs say of every answer that it may have to be awaited

    def door(self, link: Link | None = None) -> Door:
        return Door(link or self.link, self.fleet, self.catalogue, SETTINGS, "front")

    def missions(self) -> list[str]:
        return [key.decode().rpartition(":")[2] for key in self.client.scan_iter("dl:*:mission:*")]

    async def announce(self, row: Row) -> None:
        await self.link.run("announce", keys.prefix(0), 60_000, row.kind, row.model_dump_json())
        await self.catalogue.refresh(self.link)

    def sound(self) -> None:
        for shard in range(SHARDS):
            assert [one for one in faults(read(self.client, shard)) if not one.startswith("stray key")] == []


@pytest.fixture
async def fleetwide(redis_url: str) -> AsyncIterator[Fleetwide]:
    link, fleet, catalogue = await Link(redis_url).open(wait_s=30), Fleet(SHARDS), Catalogue()
    await fleet.join(link)
    with redis.Redis.from_url(redis_url) as client:
        made = Fleetwide(link, fleet, catalogue, client)
        await made.announce(ROW)
        yield made
        await link.close()
        made.sound()


async def take(door: Door, key: str = "k", **more: Any) -> Ack:
    return await door.take(COMMAND | more, "http", key=key)


async def test_who_dies_between_reserve_and_accept_leaves_an_id_that_the_repeat_takes(fleetwide: Fleetwide) -> None:
    reserved = fleetwide.fleet.ids.new(shard_of("default:lamp", SHARDS), 1)
    idempotency = Idempotency(fleetwide.link, SHARDS, SETTINGS.retention_s)
    await idempotency.reserve("default", "k", COMMAND, reserved, "default:lamp")
    assert fleetwide.missions() == []
    ack = await take(fleetwide.door())
    assert (ack.task_id, ack.replayed) == (reserved, False), "nobody has had an ack of it yet"
    again = await take(fleetwide.door())
    assert (again.body, again.replayed) == (ack.body, True)
    assert fleetwide.missions() == [reserved]


async def test_a_reservation_holds_on_to_the_target_it_was_made_for(fleetwide: Fleetwide) -> None:
    """Its id lies in that target's shard; a type that has another rule since must not put it elsewhere."""
    other = next(f"lamp{n}" for n in range(99) if shard_of(f"default:lamp{n}", SHARDS) != shard_of("default:x", SHARDS))
    command = {"type": "t", "payload": {"entity": other, "room": "x"}}
    idempotency = Idempotency(fleetwide.link, SHARDS, SETTINGS.retention_s)
    reserved = fleetwide.fleet.ids.new(shard_of(f"default:{other}", SHARDS), 1)
    await idempotency.reserve("default", "k", command, reserved, f"default:{other}")
    await fleetwide.announce(ROW.model_copy(update={"target": "room"}))
    ack = await fleetwide.door().take(command, "http", key="k")
    assert ack.task_id == reserved
    held = fleetwide.client.get(keys.target(ack.shard, f"default:{other}"))
    assert held == reserved.encode()


async def test_a_lost_reply_of_the_reservation_is_a_503_and_the_repeat_has_its_id(fleetwide: Fleetwide) -> None:
    async with Toxic(fleetwide.link._url) as toxic:
        link = await Link(toxic.url, timeout_s=30).open(wait_s=30)
        toxic.swallow = True
        with pytest.raises(Problem, match="nothing was taken") as refused:
            await asyncio.gather(take(fleetwide.door(link)), _cut(toxic))
        await link.close()
    assert (refused.value.status, refused.value.retryable) == (503, True)
    [key] = fleetwide.client.keys("dl:*:idem:*")
    reserved = fleetwide.client.hget(key, "id")
    ack = await take(fleetwide.door())
    assert (ack.task_id.encode(), ack.replayed) == (reserved, False)


async def test_a_lost_reply_of_the_accept_is_a_503_and_the_repeat_finds_the_mission(fleetwide: Fleetwide) -> None:
    async with Toxic(fleetwide.link._url) as toxic:
        link, door = await Link(toxic.url, timeout_s=30).open(wait_s=30), fleetwide.door()
        door._flights = [
            Flights(link, "accept", keys.prefix(shard), second_from=ACCEPTS_FOR_A_SECOND_FLIGHT, stamped=True)
            for shard in range(SHARDS)
        ]
        toxic.swallow = True
        with pytest.raises(Problem, match="may have been taken, or not"):
            await asyncio.gather(take(door), _cut(toxic))
        await link.close()
    [task_id] = fleetwide.missions()
    ack = await take(fleetwide.door())
    assert (ack.task_id, ack.replayed) == (task_id, True)
    assert fleetwide.missions() == [task_id]


async def test_many_at_once_come_to_one_mission_and_one_of_them_is_the_first(fleetwide: Fleetwide) -> None:
    doors = [fleetwide.door() for _ in range(3)]
    acks = await asyncio.gather(*(take(doors[n % 3]) for n in range(60)))
    assert len({ack.body for ack in acks}) == 1
    assert [ack.replayed for ack in acks].count(False) == 1
    assert fleetwide.missions() == [acks[0].task_id]


async def test_who_comes_back_after_the_key_has_lapsed_takes_nothing_in(
    fleetwide: Fleetwide, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A foreground stood still for more than a day between its two steps; another one has had the mission done."""
    idempotency = Idempotency(fleetwide.link, SHARDS, SETTINGS.retention_s)
    [late, now] = [await idempotency.reserve("default", key, COMMAND, _id(fleetwide), "default:lamp") for key in "kn"]
    assert late.used_until - (KEEP_S * 1000 + ACCEPT_WINDOW_MS) <= fleetwide.client.time()[0] * 1000 + 1000
    door = fleetwide.door()

    async def stood_still(*_: Any) -> Reservation:
        return replace(late, used_until=1)

    monkeypatch.setattr(door._idempotency, "reserve", stood_still)
    with pytest.raises(Problem, match="lapsed") as refused:
        await take(door)
    assert (refused.value.status, refused.value.retryable) == (503, True)
    assert fleetwide.missions() == []
    assert (await take(fleetwide.door(), key="n")).task_id == now.task_id


async def test_what_was_taken_in_is_told_though_its_type_has_gone(fleetwide: Fleetwide) -> None:
    ack = await take(fleetwide.door())
    await fleetwide.announce(ROW.model_copy(update={"payload_schema": {"type": "object", "required": ["room"]}}))
    again = await take(fleetwide.door())
    assert (again.body, again.replayed) == (ack.body, True)
    fleetwide.client.delete(keys.CATALOGUE)
    fleetwide.client.incr(keys.CATALOGUE_REV)
    await fleetwide.catalogue.refresh(fleetwide.link)
    again = await take(fleetwide.door())
    assert (again.body, again.replayed) == (ack.body, True)
    with pytest.raises(Problem, match="no worker"):
        await take(fleetwide.door(), key="another")
    with pytest.raises(Problem, match="another command"):
        await take(fleetwide.door(), priority="bulk")


async def test_a_command_that_is_refused_uses_no_key_up(fleetwide: Fleetwide) -> None:
    with pytest.raises(Problem):
        await take(fleetwide.door(), payload={"entity": 7})
    assert fleetwide.client.keys("dl:*:idem:*") == []
    assert not (await take(fleetwide.door())).replayed


async def test_a_command_without_a_key_pays_nothing(fleetwide: Fleetwide) -> None:
    door = fleetwide.door()
    await door.take(COMMAND, "http")
    fleetwide.client.config_resetstat()
    await door.take(COMMAND, "http")
    said = fleetwide.client.info("commandstats")
    assert {name: said[name]["calls"] for name in said if name.startswith("cmdstat_eval")} == {"cmdstat_evalsha": 1}
    assert fleetwide.client.keys("dl:*:idem:*") == []


async def test_the_key_may_lie_in_another_shard_than_its_mission(fleetwide: Fleetwide) -> None:
    door = fleetwide.door()
    acks = [await take(door, key=f"k{n}") for n in range(12)]
    assert {ack.shard for ack in acks} == {shard_of("default:lamp", SHARDS)}
    found = fleetwide.client.keys("dl:*:idem:*")
    assert len({key.split(b":")[1] for key in found}) > 1
    await eventually(lambda: len(fleetwide.missions()) == len(acks))


async def _cut(toxic: Toxic) -> None:
    """Once it was done, and its reply is lost."""
    await toxic.swallowed.wait()
    toxic.reset()


def _id(fleetwide: Fleetwide) -> str:
    return fleetwide.fleet.ids.new(shard_of("default:lamp", SHARDS), 1)
