"""What a Redis URL may settle, and what it may not: both clients of a process are made of it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from backend_loop.lease import Lease, Renewal
from shared import keys
from shared.catalogue import Catalogue
from shared.errors import RedisUnknownError
from shared.redis import Link
from shared.redis_url import RedisUrlError
from tests.toxic import Toxic
from tests.waiting import eventually

OTHERS = "?protocol=3&decode_responses=yes&max_connections=10&timeout=9&socket_timeout=60&socket_connect_timeout=60"
"""What another client of the same Redis may want in its URL."""


@pytest.fixture
async def toxic(redis_url: str) -> AsyncIterator[Toxic]:
    async with Toxic(redis_url) as proxy:
        yield proxy


@pytest.fixture
async def link(toxic: Toxic) -> AsyncIterator[Link]:
    link = await Link(toxic.url + OTHERS, timeout_s=1).open(wait_s=30)
    yield link
    await link.close()


async def test_answers_are_what_the_readers_of_them_expect(link: Link) -> None:
    await link.call("HSET", keys.CATALOGUE, "a.b@1", "no row")
    assert await link.call("HGETALL", keys.CATALOGUE) == [b"a.b@1", b"no row"]  # a list: RESP2
    await link.call("SET", keys.CATALOGUE_REV, 1)
    assert await Catalogue().refresh(link)


async def test_a_silent_redis_is_left_after_our_time_out(link: Link, toxic: Toxic) -> None:
    toxic.hold()
    with pytest.raises(RedisUnknownError):
        async with asyncio.timeout(30):
            await link.call("PING")


async def test_a_redis_that_does_not_greet_is_left_after_our_time_out(toxic: Toxic) -> None:
    toxic.hold()
    link = await Link(toxic.url + "/1" + OTHERS, timeout_s=1).open()  # a database has to be selected: a handshake
    await eventually(lambda: toxic.taken >= 3, what="it is asked again and again")
    toxic.release()
    async with asyncio.timeout(30):
        await link.up()
    await link.close()


async def test_the_lease_is_renewed_in_spite_of_them(toxic: Toxic) -> None:
    lost: asyncio.Queue[str] = asyncio.Queue()
    lease = Lease(0, 0.6, lost.put_nowait)
    lease.renewed(owner := lease.owner, 0.0)  # as after a claim, though Redis knows no such owner
    renewal = Renewal(toxic.url + OTHERS, [lease], 0.6, asyncio.get_running_loop())
    renewal.begin()
    assert await asyncio.wait_for(lost.get(), 60) == owner
    lease.renewed(lease.owner, 0.0)
    taken = toxic.taken
    toxic.hold()
    await eventually(lambda: toxic.taken > taken + 1, what="a renewal that gets no answer is given up and tried anew")
    toxic.release()
    await renewal.stop()
    assert not renewal.is_alive()


class _Handle:
    """A timer that remembers from which thread it was cancelled."""

    def __init__(self, handle: asyncio.TimerHandle, cancelled_in: list[int]) -> None:
        self._handle, self._cancelled_in = handle, cancelled_in

    def cancel(self) -> None:
        self._cancelled_in.append(threading.get_ident())
        self._handle.cancel()


class _Watched:
    """The event loop, with such timers."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self.cancelled_in = loop, list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)

    def call_later(self, delay: float, callback: Callable[[], None]) -> _Handle:
        return _Handle(self._loop.call_later(delay, callback), self.cancelled_in)


async def test_renewing_ends_and_its_timer_is_touched_by_the_event_loop_alone(redis_url: str) -> None:
    loop = _Watched(asyncio.get_running_loop())
    renewal = Renewal(redis_url, [], 0.6, loop)  # type: ignore[arg-type]  # it does all that the event loop does
    renewal.begin()
    await renewal.stop()
    assert not renewal.is_alive()
    assert loop.cancelled_in == [threading.get_ident()]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://127.0.0.1:6379", "write redis://"),
        ("127.0.0.1:6379", "write redis://"),
        ("", "write redis://"),
        ("redis://:s3/cret@127.0.0.1", "write redis://"),
        ("redis://127.0.0.1:99999", "write redis://"),
        ("redis://127.0.0.1?db=one", "Invalid value for 'db'"),
        ("redis://127.0.0.1?ssl_cert_req=none", "ssl_cert_req"),
        ("rediss://127.0.0.1?ssl_cert_reqs=perhaps", "perhaps"),
    ],
)
def test_a_wrong_url_says_what_to_write_and_nothing_of_its_password(url: str, sentence: str) -> None:
    with pytest.raises(RedisUrlError, match=sentence) as caught:
        Link(url)
    assert "s3" not in str(caught.value)


async def test_whatever_goes_wrong_the_link_goes_on(redis_url: str) -> None:
    ups = 0

    def up() -> None:
        nonlocal ups
        ups += 1
        if ups == 1:
            raise LookupError("as nobody who is told should")

    link = await Link(redis_url, on_up=up).open()
    await eventually(lambda: ups == 2 and link.connected)
    assert await link.call("PING") == b"PONG"
    await link.close()
