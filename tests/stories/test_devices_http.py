"""The HTTP adapter against a real home, and against worse than a home."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from signal import SIGKILL

import httpx
import pytest

from backend_loop.devices.http import HttpDevice, http_client
from backend_loop.devices.judge import Decision, Verdict, decide, judge, overridden
from backend_loop.devices.protocol import (
    ActUnknown,
    Command,
    DeviceFault,
    DeviceRefused,
    DeviceUnreachable,
    OldFence,
    UnknownEntity,
)
from shared.clock import now_ms
from tests.home import Home, running_home
from tests.waiting import until

LAMP = "light.kitchen"
ON = Command(entity=LAMP, action="turn_on")


@pytest.fixture
async def device(home: Home) -> AsyncIterator[HttpDevice]:
    async with http_client() as client:
        yield HttpDevice(home.url, client)


def soon(seconds: float = 60.0) -> float:
    return time.monotonic() + seconds


async def test_observe_act_and_the_proof_of_it(home: Home, device: HttpDevice, request: pytest.FixtureRequest) -> None:
    looked_at, before = now_ms(), await device.observe(LAMP, deadline=soon())
    assert decide(before, ON, looked_at=looked_at) is Decision.ACT
    acted_at = now_ms()
    await device.act(ON, key=request.node.name, fence=1, deadline=soon())
    after = await device.observe(LAMP, deadline=soon())
    assert judge(before, after, ON, acted_at=acted_at) is Verdict.CONFIRMED
    assert decide(after, ON, looked_at=acted_at) is Decision.ALREADY_DONE
    assert after.source == "http"
    assert after.limits == {"brightness": (1, 100)}
    assert after.changes["power"].by == "command"
    assert home.acts(LAMP)[-1]["key"] == request.node.name


async def test_a_hand_before_the_act_is_seen_and_one_after_it_contradicts(home: Home, device: HttpDevice) -> None:
    asked_at, before = now_ms(), await device.observe(LAMP, deadline=soon())
    home.hand(LAMP, power="on")
    home.hand(LAMP, power="off")
    now = await device.observe(LAMP, deadline=soon())
    assert overridden(before, now, ON, asked_at=asked_at)
    acted_at = now_ms()
    await device.act(ON, key="forced", fence=1, deadline=soon())
    home.hand(LAMP, power="off")
    after = await device.observe(LAMP, deadline=soon())
    assert judge(now, after, ON, acted_at=acted_at) is Verdict.CONTRADICTED


async def test_a_stale_reading_does_not_verify_whatever_the_clock_of_the_bridge(home: Home, device: HttpDevice) -> None:
    before = await device.observe(LAMP, deadline=soon())
    home.hand(LAMP, power="on")
    home.faults(LAMP, observe_stale=True)
    home.hand(LAMP, power="off")
    acted_at = now_ms() + 1
    stale = await device.observe(LAMP, deadline=soon())
    assert stale.observed_at < acted_at
    assert judge(before, stale, ON, acted_at=acted_at) is Verdict.UNCONFIRMED


async def test_a_reading_whose_answer_took_long_is_as_new_as_the_question(home: Home, device: HttpDevice) -> None:
    home.hold(LAMP, "observed")
    looked_at = now_ms()
    looking = asyncio.create_task(device.observe(LAMP, deadline=soon()))
    await asyncio.to_thread(home.when_held, LAMP)
    until(lambda: now_ms() > looked_at + 5)
    home.release(LAMP)
    assert (await looking).observed_at >= looked_at


@pytest.mark.parametrize(
    ("faults", "observing", "acting"),
    [
        ({"offline": True}, DeviceUnreachable, DeviceUnreachable),
        ({"silent": True}, DeviceUnreachable, ActUnknown),
        ({"refuse": True}, None, DeviceRefused),
        ({"lose_answer": True}, None, ActUnknown),
        ({"act_latency_ms": 60_000}, None, ActUnknown),
        ({"latency_ms": 60_000}, DeviceUnreachable, ActUnknown),
    ],
    ids=str,
)
async def test_each_fault_has_its_word(
    home: Home,
    device: HttpDevice,
    faults: dict[str, int],
    observing: type[DeviceFault] | None,
    acting: type[DeviceFault],
) -> None:
    home.faults(LAMP, **faults)
    patience = 60 if faults.keys() & {"offline", "refuse", "lose_answer"} else 0.5  # the others give no answer at all
    if observing is not None:
        with pytest.raises(observing, match=LAMP):
            await device.observe(LAMP, deadline=soon(patience))
    with pytest.raises(acting, match=LAMP) as raised:
        await device.act(ON, key=str(faults), fence=1, deadline=soon(patience))
    assert type(raised.value) is acting


async def test_an_old_fence_a_wrong_value_and_unknown_names(device: HttpDevice) -> None:
    await device.act(Command(entity="light.hall", action="turn_on"), key="new", fence=9, deadline=soon())
    with pytest.raises(OldFence):
        await device.act(Command(entity="light.hall", action="turn_off"), key="old", fence=8, deadline=soon())
    dim = Command(entity=LAMP, action="set_brightness", value=1000)
    with pytest.raises(DeviceRefused, match="1000"):
        await device.act(dim, key="dim", fence=1, deadline=soon())
    for name in ("light.nowhere", "../livez", "a/b", "", "灯", "?x#y"):
        with pytest.raises((UnknownEntity, DeviceUnreachable)):
            await device.observe(name, deadline=soon())


async def test_nothing_is_sent_after_the_deadline(home: Home, device: HttpDevice) -> None:
    before = home.journal(LAMP)
    for call in (
        device.observe(LAMP, deadline=time.monotonic() - 1),
        device.act(ON, key="late", fence=1, deadline=time.monotonic() - 1),
    ):
        with pytest.raises(DeviceUnreachable, match="no time"):
            await call
    assert home.journal(LAMP) == before


async def test_nobody_at_the_address_is_surely_not_done() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    async with http_client() as client:
        device = HttpDevice(f"http://127.0.0.1:{port}", client)
        with pytest.raises(DeviceUnreachable):
            await device.act(ON, key="k", fence=1, deadline=soon())
        with pytest.raises(DeviceUnreachable):
            await device.observe(LAMP, deadline=soon())


async def test_a_home_killed_after_the_effect_leaves_it_unknown_and_the_key_still_holds(tmp_path: Path) -> None:
    async with http_client() as client:
        with running_home(tmp_path) as home:
            home.hold(LAMP, "acted")
            device = HttpDevice(home.url, client)
            acting = asyncio.create_task(device.act(ON, key="k", fence=1, deadline=soon()))
            await asyncio.to_thread(home.when_held, LAMP)
            home.end(SIGKILL)
            with pytest.raises(ActUnknown):
                await acting
        with running_home(tmp_path) as home:
            await HttpDevice(home.url, client).act(ON, key="k", fence=2, deadline=soon())
            assert [line["key"] for line in home.acts(LAMP)] == ["k"]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nno json !",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{",
        b"HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"",
    ],
    ids=repr,
)
async def test_a_bridge_that_talks_nonsense_is_no_reading_and_leaves_an_act_unknown(answer: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"POST"):
            await reader.readuntil(b"}")
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server, http_client() as client:
        device = HttpDevice(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", client)
        with pytest.raises(DeviceUnreachable):
            await device.observe(LAMP, deadline=soon())
        if not answer.startswith(b"HTTP/1.1 200 OK") or b"500" in answer:
            with pytest.raises(ActUnknown):
                await device.act(ON, key="k", fence=1, deadline=soon())


@pytest.mark.parametrize("detail", [b"[" * 100_000, b'"' + b"down " * 300_000 + b'"'], ids=["too deep", "too long"])
async def test_of_what_a_bridge_says_of_its_failure_little_is_kept(detail: bytes) -> None:
    answer = httpx.Response(500, content=b'{"detail": ' + detail + b"}")
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: answer)) as client:
        device = HttpDevice("http://home", client)
        with pytest.raises(DeviceUnreachable) as unread:
            await device.observe(LAMP, deadline=soon())
        with pytest.raises(ActUnknown) as unknown:
            await device.act(ON, key="k", fence=1, deadline=soon())
    assert max(len(str(fault.value)) for fault in (unread, unknown)) < 1_000


async def test_the_trace_goes_along() -> None:
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server, http_client() as client:
        device = HttpDevice(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", client)
        with pytest.raises(UnknownEntity):
            await device.observe(LAMP, deadline=soon(), traceparent=trace)
        with pytest.raises(UnknownEntity):
            await device.act(ON, key="k", fence=1, deadline=soon(), traceparent=trace)
    assert len(heard) == 2
    for request in heard:
        assert f"traceparent: {trace}".encode() in request.lower()
