"""Whoever waits for a broker can be cancelled at any moment, and is."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import aiomqtt
import pytest

from shared.mqtt import connect
from tests.ports import unused_port

CONNACK = b"\x20\x02\x00\x00"
MORE_THAN_SOCKETS_HOLD = bytes(64 * 1024 * 1024)


@pytest.mark.parametrize("turns", range(6))
async def test_who_is_cancelled_while_the_broker_answers_is_cancelled(mqtt_url: str, turns: int) -> None:
    loop = asyncio.get_running_loop()
    heard: list[bool] = []
    async with connect(mqtt_url) as client:
        saying = asyncio.create_task(client.publish("a", "b", qos=1))
        answered = client._client.on_publish
        assert answered is not None

        def cancel(after: int) -> None:
            if after:
                loop.call_soon(cancel, after - 1)
            else:
                heard.append(saying.cancel())

        def answers(*args: object) -> None:
            answered(*args)  # type: ignore[arg-type]  # as the library set it
            cancel(turns)

        client._client.on_publish = answers
        await asyncio.wait({saying})
        cancel(0)  # where it was faster than these turns
        assert saying.cancelled() == heard[0]


@pytest.fixture
async def deaf() -> AsyncIterator[str]:
    """A broker that lets everybody in and reads nothing more."""
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport is read and written
        writer.write(CONNACK)
        await over.wait()
        writer.transport.abort()

    port = unused_port()
    async with await asyncio.start_server(serve, "127.0.0.1", port):
        yield f"mqtt://127.0.0.1:{port}"
        over.set()


async def is_cancelled(work: Coroutine[Any, Any, None], inside: asyncio.Event) -> bool:
    """Whether work ends cancelled that is told to, once it is inside."""
    task = asyncio.create_task(work)
    await inside.wait()
    task.cancel()
    await asyncio.wait({task})
    return task.cancelled()


async def test_a_good_bye_that_nobody_hears_takes_no_cancellings_place(deaf: str) -> None:
    inside = asyncio.Event()

    async def speak() -> None:
        async with connect(deaf, wait_s=0.2) as client:
            client._client.publish("a", MORE_THAN_SOCKETS_HOLD)
            inside.set()
            await asyncio.Event().wait()

    assert await is_cancelled(speak(), inside)


async def test_a_good_bye_that_nobody_hears_is_told_where_nothing_else_is_wrong(deaf: str) -> None:
    with pytest.raises(aiomqtt.MqttError, match=r"does not answer within 0\.2 s"):
        async with connect(deaf, wait_s=0.2) as client:
            client._client.publish("a", MORE_THAN_SOCKETS_HOLD)


async def test_what_comes_amid_a_good_bye_takes_no_cancellings_place(
    deaf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = asyncio.Event()

    async def speak() -> None:
        async with connect(deaf, wait_s=600) as client:
            leaves = client._client.disconnect

            def trips(*args: object) -> object:
                trouble = ValueError("no such topic")  # as of a message that the library cannot read
                asyncio.get_running_loop().call_soon(client._disconnected.set_exception, trouble)
                return leaves(*args)  # type: ignore[arg-type]  # as the library calls it

            monkeypatch.setattr(client._client, "disconnect", trips)
            client._client.publish("a", MORE_THAN_SOCKETS_HOLD)
            inside.set()
            await asyncio.Event().wait()

    assert await is_cancelled(speak(), inside)
