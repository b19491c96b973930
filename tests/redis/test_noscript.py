"""A Redis that forgot its scripts (a flush, another master): nothing ran, so all is sent again (P4)."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis

from shared import keys
from shared.flights import Flights
from shared.redis import Link, ReplyError
from tests.redis.audit import faults, read
from tests.redis.scripts_client import New, Taken, Verbs


@pytest.fixture
async def link(any_redis_url: str) -> AsyncIterator[Link]:
    link = await Link(any_redis_url).open(wait_s=30)
    yield link
    await link.close()


@pytest.fixture
def client(any_redis_url: str) -> redis.Redis:
    return redis.Redis.from_url(any_redis_url)


async def test_a_call_loads_its_script_again(link: Link, client: redis.Redis) -> None:
    client.script_flush()

    assert (await link.run("accept", keys.prefix(0), *New("m").args()))[1:] == [b"OK"]
    assert (await link.run("accept", keys.prefix(0), *New("m").args()))[1:] == [b"DUPLICATE"]
    client.script_flush()
    assert (await link.run("claim", keys.prefix(0), "w1", 1, 6000, 2000, 1000, 5, 5, "default", ",t@1,"))[2][0][
        0
    ] == b"m"
    client.close()


async def test_a_flight_is_sent_again_whole_and_once(link: Link, client: redis.Redis) -> None:
    flights = Flights(link, "accept", keys.prefix(0), second_from=12)
    client.script_flush()

    answers = await asyncio.gather(*(flights.add((), New(f"m{n}").args()) for n in range(120)))

    assert answers == [b"OK"] * 120
    assert faults(read(client)) == []
    assert client.zcard(keys.prefix(0) + "lane:normal:default:a") == 120
    client.close()


async def test_flights_that_meet_a_flush_in_mid_air_land_once(link: Link, client: redis.Redis) -> None:
    """Two flights are under way; the scripts go between them; every item is answered, none is written twice."""
    accepts = Flights(link, "accept", keys.prefix(0), second_from=1)
    names = [f"m{n:03}" for n in range(200)]
    waiting = [accepts.add((), New(name).args()) for name in names]
    await asyncio.sleep(0)
    client.script_flush()
    assert await asyncio.gather(*waiting) == [b"OK"] * 200

    verbs = Verbs(client)
    taken: dict[str, Taken] = {}
    while part := verbs.take("w1"):
        taken |= part
    assert sorted(taken) == names
    commits = Flights(link, "commit", keys.prefix(0), second_from=1)
    waiting = [commits.add(("w1", 60_000, 60_000), one.write("end").args()) for one in taken.values()]
    client.script_flush()
    assert await asyncio.gather(*waiting) == [1] * 200
    assert faults(read(client)) == []
    client.close()


async def test_a_failed_item_is_answered_alone(link: Link, client: redis.Redis) -> None:
    flights = Flights(link, "accept", keys.prefix(0), second_from=12)
    items = (New("m"), New("bad", lane="nowhere"), New("n"))
    answers = await asyncio.gather(*(flights.add((), item.args()) for item in items))

    assert [answers[0], answers[1][0], answers[2]] == [b"OK", b"ERROR", b"OK"]
    client.close()


async def test_a_script_that_redis_refuses_is_an_error_of_its_caller(link: Link) -> None:
    with pytest.raises(ReplyError):
        await link.run("claim", keys.prefix(0), "w1", 1)
