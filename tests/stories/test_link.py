"""The link to Redis: many in flight, comes back by itself, and what was lost on the way is unknown, never repeated."""

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from shared import keys
from shared.errors import RedisAwayError, RedisUnknownError
from shared.flights import Flights
from shared.redis import Link, ReplyError
from tests.conftest import StartRedis
from tests.toxic import Toxic
from tests.waiting import eventually

PREFIX = keys.prefix(0)


@pytest.fixture
async def toxic(redis_url: str) -> AsyncIterator[Toxic]:
    async with Toxic(redis_url) as proxy:
        yield proxy


@pytest.fixture
async def link(toxic: Toxic) -> AsyncIterator[Link]:
    link = await Link(toxic.url, timeout_s=30).open(wait_s=30)
    yield link
    await link.close()


async def test_answers_come_to_whoever_asked(link: Link) -> None:
    answers = await asyncio.gather(*(link.call("ECHO", f"{n}") for n in range(1000)))
    assert answers == [f"{n}".encode() for n in range(1000)]


async def test_a_refused_command_says_why_and_harms_no_other(link: Link) -> None:
    await link.call("SET", "text", "x")
    calls = (link.call("LPUSH", "text", "y"), link.call("GET", "text"))
    wrong, right = list[object](await asyncio.gather(*calls, return_exceptions=True))
    assert isinstance(wrong, ReplyError)
    assert str(wrong).startswith("WRONGTYPE")
    assert right == b"x"


@pytest.mark.parametrize("wrong", [None, "\ud800"])
async def test_what_cannot_be_sent_is_refused_at_once_and_shifts_no_answer(link: Link, wrong: str | None) -> None:
    with pytest.raises((TypeError, UnicodeEncodeError)):
        await link.call("ECHO", wrong)  # type: ignore[arg-type]  # what a caller may get wrong
    async with asyncio.timeout(30):
        assert await asyncio.gather(*(link.call("ECHO", f"{n}") for n in range(3))) == [b"0", b"1", b"2"]


async def test_a_caller_that_leaves_keeps_its_place_in_the_queue(link: Link) -> None:
    gone = link.call("ECHO", "gone")
    stays = link.call("ECHO", "stays")
    gone.cancel()
    assert await stays == b"stays"


async def test_a_reply_that_is_lost_after_the_effect_is_unknown(link: Link, toxic: Toxic) -> None:
    toxic.swallow = True
    lost = link.call("INCR", "n")
    await toxic.swallowed.wait()
    toxic.reset()
    with pytest.raises(RedisUnknownError):
        await lost
    toxic.swallow = False
    await link.up()
    assert await link.call("GET", "n") == b"1"  # done once, and not again by the link


async def test_b05_it_comes_back_by_itself_and_says_meanwhile_that_it_is_away(link: Link, toxic: Toxic) -> None:
    toxic.refuse = True
    toxic.reset()
    await eventually(lambda: not link.connected)
    with pytest.raises(RedisAwayError):
        await link.call("PING")
    toxic.refuse = False
    async with asyncio.timeout(30):
        await link.up()
    assert await link.call("PING") == b"PONG"


async def test_b05_thousands_of_vain_tries_cost_nothing_and_the_next_one_connects(
    link: Link, toxic: Toxic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an outage of an hour: each try follows the last one in the same loop, none is nested in another."""
    monkeypatch.setattr("shared.redis.BACKOFF_S", (0.0, 0.0))
    assert sys.getrecursionlimit() < 2000
    toxic.refuse = True
    toxic.reset()
    await eventually(lambda: toxic.taken > 2000, within=60)
    assert len(asyncio.all_tasks()) < 50
    toxic.refuse = False
    async with asyncio.timeout(30):
        await link.up()
    assert await link.call("PING") == b"PONG"


@pytest.mark.parametrize("turns", range(12))
async def test_it_closes_though_the_connection_was_lost_just_now(toxic: Toxic, turns: int) -> None:
    link = await Link(toxic.url).open(wait_s=30)
    toxic.hold()
    lost = link.call("PING")
    toxic.reset()
    with pytest.raises(RedisUnknownError):
        await lost
    for _ in range(turns):  # what follows from a loss takes a few turns of the event loop
        await asyncio.sleep(0)
    closed, _ = await asyncio.wait({asyncio.create_task(link.close())}, timeout=30)
    assert closed
    assert not link.connected


async def test_silence_is_a_loss_after_the_time_out(toxic: Toxic) -> None:
    link = await Link(toxic.url, timeout_s=0.5).open(wait_s=30)
    toxic.hold()
    with pytest.raises(RedisUnknownError):
        async with asyncio.timeout(30):
            await link.call("PING")
    toxic.release()
    async with asyncio.timeout(30):
        await link.up()
    await link.close()


async def test_scripts_are_loaded_again_where_the_server_forgot_them(link: Link) -> None:
    await link.call("SCRIPT", "FLUSH")
    assert (await link.run("renew", PREFIX, "nobody", 1000, 100)) == b"LOST"
    await link.call("SCRIPT", "FLUSH")
    flights = Flights(link, "commit", PREFIX, second_from=2)
    item = ("no-such-mission", 1, 0, 0, "stay", "RUNNING", "X", "", "", "", "", "", "", "", "")
    assert set(await asyncio.gather(*(flights.add(("owner", 1000, 1000), item) for _ in range(120)))) == {b"GONE"}


async def test_items_of_another_head_wait_for_a_flight_of_their_own(link: Link) -> None:
    flights = Flights(link, "commit", PREFIX, second_from=2)
    item = ("no-such-mission", 1, 0, 0, "stay", "RUNNING", "X", "", "", "", "", "", "", "", "")
    answers = await asyncio.gather(*(flights.add((f"owner{n % 3}", 1000, 1000), item) for n in range(30)))
    assert answers == [b"GONE"] * 30


async def test_a_flight_that_cannot_be_packed_fails_and_the_next_ones_leave(link: Link) -> None:
    flights = Flights(link, "commit", PREFIX, second_from=2)
    item = ("no-such-mission", 1, 0, 0, "stay", "RUNNING", "X", "", "", "", "", "", "", "", "")
    for _ in range(3):  # more often than there are flights
        with pytest.raises(UnicodeEncodeError):
            await flights.add(("owner", 1000, 1000), ("\ud800", *item[1:]))
    assert await flights.add(("owner", 1000, 1000), item) == b"GONE"


async def test_a_subscriber_hears_again_after_a_loss(redis_url: str, toxic: Toxic) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    ups: asyncio.Queue[None] = asyncio.Queue()
    hints = Link(
        toxic.url,
        timeout_s=30,
        channels=("news",),
        on_message=lambda _channel, message: heard.put_nowait(message),
        on_up=lambda: ups.put_nowait(None),
    )
    await hints.open()
    other = await Link(redis_url).open(wait_s=30)

    async def told(text: str) -> bool:
        return bool(await other.call("PUBLISH", "news", text))

    await ups.get()
    await eventually(lambda: told("one"))
    assert await heard.get() == b"one"
    toxic.reset()
    await ups.get()  # whoever listens is told that something may have been missed
    await eventually(lambda: told("two"))
    assert await heard.get() == b"two"
    hints.subscribe("more")
    await eventually(lambda: other.call("PUBLISH", "more", "three"))
    assert await heard.get() == b"three"
    await hints.close()
    await other.close()


async def test_b58_a_replica_is_left_and_refuses_as_away(start_redis: StartRedis) -> None:
    server = start_redis()
    ups: asyncio.Queue[None] = asyncio.Queue()
    link = await Link(server.url, timeout_s=30, on_up=lambda: ups.put_nowait(None)).open(wait_s=30)
    await ups.get()
    with server.client() as client:
        client.replicaof("127.0.0.1", "1")
        with pytest.raises(RedisAwayError, match=r"READONLY|MASTERDOWN"):
            await link.call("SET", "a", "b")
        async with asyncio.timeout(30):
            await ups.get()  # it has asked for the address again
        client.replicaof("NO", "ONE")
    assert await link.call("SET", "a", "b") == b"OK"
    await link.close()


async def test_passwords_are_the_connection_s_business(start_redis: StartRedis) -> None:
    server = start_redis()
    with server.client() as client:
        client.config_set("requirepass", "s3cret")
    url = server.url.replace("unix://", "unix://:s3cret@")
    link = await Link(url, timeout_s=30).open(wait_s=30)
    assert await link.call("PING") == b"PONG"
    await link.close()
    with pytest.raises(RedisAwayError) as caught:
        await Link(server.url.replace("unix://", "unix://:wrong@"), timeout_s=0.5).open(wait_s=0.3)
    assert "wrong" not in str(caught.value)
