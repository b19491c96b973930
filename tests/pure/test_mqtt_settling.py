"""How a hub knows that all has come which its broker had to send before."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import cast

import aiomqtt
import pytest

from backend_loop.devices.mqtt import hub as hub_module
from backend_loop.devices.mqtt.hub import Hub
from shared.mqtt import MqttUrl


def test_a_mark_that_comes_late_shows_that_marks_come() -> None:
    hub = Hub(MqttUrl("127.0.0.1", 1), ["zigbee2mqtt"], "homeassistant")
    hub._hears_itself = False
    hub._take(hub._own, "7", retained=False)
    assert hub._hears_itself
    assert not hub._mark.is_set(), "and it is not taken for another one"


@pytest.fixture
async def waiting_hub(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Hub]:
    """One that has a connection, on which it waits for an answer."""
    monkeypatch.setattr(hub_module, "SETTLE_S", 0.01)
    hub = Hub(MqttUrl("127.0.0.1", 1), ["zigbee2mqtt"], "homeassistant")

    async def hear() -> None:
        await asyncio.Event().wait()

    reading = hub._reading = asyncio.create_task(hear())
    yield hub
    reading.cancel()
    await asyncio.wait({reading})


async def test_a_broker_is_waited_for_as_long_as_it_sends_what_it_has_retained(
    waiting_hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer, rounds = asyncio.Event(), 0

    def beat() -> None:
        nonlocal rounds
        rounds += 1
        waiting_hub._came += rounds < 20
        if rounds == 20:
            answer.set()

    monkeypatch.setattr(waiting_hub.loop, "beat", beat)
    assert await waiting_hub._answered(answer.wait(), lambda: waiting_hub._came)
    assert rounds == 20, "many times longer than one that is silent"


async def test_a_silent_broker_is_not_waited_for_and_a_lost_one_neither(waiting_hub: Hub) -> None:
    assert not await waiting_hub._answered(asyncio.Event().wait(), lambda: 0)

    async def lost() -> None:
        raise aiomqtt.MqttError("gone")

    waiting_hub._reading = asyncio.create_task(lost())
    with pytest.raises(aiomqtt.MqttError, match="gone"):
        await waiting_hub._answered(asyncio.Event().wait(), lambda: 0)


class Messages:
    """What a hub says to its broker, which drops the first so many of its marks."""

    def __init__(self, hub: Hub, *, drops: int = 0) -> None:
        self._hub, self._drops = hub, drops
        self.said = list[str]()

    async def subscribe(self, topics: list[tuple[str, int]], **_more: object) -> None:
        self.said.extend(topic for topic, _ in topics)

    async def publish(self, topic: str, payload: bytes, **_more: object) -> None:
        self.said.append("mark")
        self._drops -= 1
        if self._drops < 0:
            self._hub._take(topic, payload.decode(), retained=False)


def settled(hub: Hub, messages: Messages) -> Awaitable[None]:
    """Once it knows who is there, or that this broker keeps it from hearing itself."""
    return asyncio.wait_for(hub._settle(cast("aiomqtt.Client", messages)), 60)


async def test_a_mark_that_is_lost_costs_no_other_mark_and_is_told(
    waiting_hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    await settled(waiting_hub, Messages(waiting_hub))
    assert not caplog.messages
    await settled(waiting_hub, Messages(waiting_hub, drops=1))
    assert waiting_hub._hears_itself
    assert "max_queued_messages 0" in caplog.text
    await settled(waiting_hub, Messages(waiting_hub, drops=2))
    assert not waiting_hub._hears_itself, "one that never comes may be forbidden"


async def test_devices_that_chat_keep_nobody_waiting_for_a_mark_that_does_not_come(
    waiting_hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def beat() -> None:
        waiting_hub._came += 1

    monkeypatch.setattr(waiting_hub.loop, "beat", beat)
    await settled(waiting_hub, Messages(waiting_hub, drops=1_000_000))
    assert not waiting_hub._hears_itself


async def test_no_two_kinds_of_announcements_are_under_way_together(waiting_hub: Hub) -> None:
    messages = Messages(waiting_hub)
    await settled(waiting_hub, messages)
    for kind in waiting_hub._book.topics:
        assert messages.said[messages.said.index(kind[-1]) + 1] == "mark"


def test_a_later_mark_shows_that_what_was_before_an_earlier_one_has_come() -> None:
    hub = Hub(MqttUrl("127.0.0.1", 1), ["zigbee2mqtt"], "homeassistant")
    hub._settling = 7
    for mark, comes in (("6", False), ("7" * 5_000, False), ("seven", False), ("8", True)):
        hub._take(hub._own, mark, retained=False)
        assert hub._mark.is_set() is comes


async def test_a_good_bye_that_trips_the_library_keeps_nobody_from_being_heard_again(waiting_hub: Hub) -> None:
    async def trips() -> None:
        raise ValueError("no such topic")

    config = '{"unique_id": "plug", "state_topic": "plug/state", "command_topic": "plug/set"}'
    waiting_hub._take("homeassistant/switch/plug/config", config, retained=True)
    waiting_hub._take_in()
    (line,) = waiting_hub.lines.values()
    line.there.set()
    waiting_hub._client = cast("aiomqtt.Client", Messages(waiting_hub))
    waiting_hub._session.push_async_callback(trips)
    await waiting_hub.close()
    assert not line.there.is_set()
