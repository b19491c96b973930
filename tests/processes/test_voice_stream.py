"""Processes die while somebody speaks: another one goes on listening, or who speaks is told, and nothing stays."""

import asyncio
import contextlib
import io
import os
import signal
import time
import wave
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import redis

from backend_loop.speech.activity import speech_in
from backend_loop.speech.engine import RATE
from tests.home import Home
from tests.speech_words import DOUBTFUL, hears
from tests.stories.furnished import furnished
from tests.stories.spoken import left, samples, silence, speak, understood, voice
from tests.stories.stack import Part, Stack
from tests.stories.talk import Talk, talking
from tests.waiting import eventually
from tests.webhook_receiver import Delivery, Receiver, receiving, status

pytestmark = pytest.mark.usefixtures("unheard")

LAMP: Final = "light.kitchen"
SAID: Final = samples("en01-a")
HALF: Final = len(SAID) // 4 * 2


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def speech() -> AsyncIterator[Receiver]:
    """A speech server that answers as it is told to."""
    async with receiving() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(
    module_redis_url: str, shared_home: Home, speech: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("stream")
    speech_url = f"http://127.0.0.1:{speech.port}/v1"
    async with furnished(module_redis_url, folder, shared_home, workers=2, DUALLOOP_SPEECH_URL=speech_url) as stack:
        yield stack


@pytest.fixture
def store(stack: Stack) -> Iterator[Any]:
    with redis.Redis.from_url(stack.redis_url) as store:
        yield store


async def listener(stack: Stack, store: Any) -> Part:
    """The worker that listens to the one voice session there is."""

    def owner() -> bytes | None:
        names = store.keys("*}:stream:*")
        found: bytes | None = store.hget(names[0], "owner") if names else None
        return found

    instance = (await eventually(owner, what="somebody listens") or b"").decode()
    return next(part for part in stack.workers if instance in part.log.read_text())


async def answered(talk: Talk, home: Home, before: int) -> None:
    """What was said is done, once."""
    final = await understood(talk)
    assert (final["op"], final.get("text")) == ("final", "turn on the kitchen light"), final
    ack = await talk.until(lambda frame: frame["op"] in {"ack", "error"})
    result = await talk.result(ack["correlation_id"], 40)
    assert result["result"]["text"] == "The kitchen light is on.", result
    assert len(home.acts(LAMP)) == before + 1


def hears_late(speech: Receiver, text: str) -> asyncio.Event:
    """The engine understands this next, once the event is set."""
    heard = asyncio.Event()

    async def late(receiver: Receiver, writer: asyncio.StreamWriter) -> None:
        await heard.wait()
        await hears(text)(receiver, writer)

    speech.deliveries.clear()
    speech.answers.append(late)
    return heard


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("how", ["killed", "stopped", "its child killed"])
async def test_who_listens_dies_and_what_was_said_is_understood_all_the_same(
    stack: Stack, home: Home, store: Any, speech: Receiver, how: str
) -> None:
    speech.deliveries.clear()
    speech.answers.append(hears("turn on the kitchen light"))
    before = len(home.acts(LAMP))
    async with talking(voice(stack)) as talk:
        await speak(talk, SAID[:HALF])
        part = await listener(stack, store)
        ends = None
        if how == "its child killed":
            children = await eventually(lambda: speaking_children(part), what="a child listens")
            for child in children:
                os.kill(child, signal.SIGKILL)
        elif how == "killed":
            part.kill()
        else:
            ends = asyncio.create_task(part.stop())  # while he speaks on: who is quiet for five seconds has ended
        await speak(talk, SAID[HALF:] + silence(1))
        await answered(talk, home, before)
    if ends is not None:
        await ends
    if how != "its child killed":
        await part.start()
    (heard,) = speech.deliveries
    span = speech_in(SAID)
    assert span is not None
    off = sound(heard) - (span.end - span.start)
    assert abs(off) <= RATE // 10, "all of it, whoever has listened to its first half"
    await eventually(lambda: not left(store), what="nothing of it is left")


def sound(delivery: Delivery) -> int:
    """How many samples an engine was given."""
    file = delivery.body[delivery.body.index(b"RIFF") :]
    with wave.open(io.BytesIO(file)) as told:
        return int(told.getnframes())


def speaking_children(part: Part) -> list[int]:
    """The processes in which a worker finds the ends of what is said."""
    pid = part.running.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(child)
        for child in children
        if b"backend_loop.speech.process" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_foreground_that_dies_leaves_nothing_for_long(stack: Stack, store: Any) -> None:
    async with talking(voice(stack)) as talk:
        await speak(talk, SAID[:HALF])
        await listener(stack, store)
        stack.foregrounds[0].kill()
        await talk.rest()
    there = left(store)
    assert there
    assert all(0 < int(store.pttl(name)) <= 10_000 for name in there)
    store.delete(*there)  # so that no other test has to wait for that
    await stack.foregrounds[0].start()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_foreground_that_goes_says_so_and_asks_to_say_it_again(stack: Stack, store: Any) -> None:
    async with talking(voice(stack)) as talk:
        await speak(talk, SAID[:HALF])
        await listener(stack, store)
        await stack.foregrounds[0].stop()
        closed = await talk.rest()
        told = [frame.get("problem", {}).get("code", frame["op"]) for frame in talk.frames]
    assert closed.rcvd is not None
    assert (closed.rcvd.code, sorted(told)) == (1012, ["draining", "draining"])
    await stack.foregrounds[0].start()


@pytest.mark.asyncio(loop_scope="module")
async def test_where_nobody_listens_who_speaks_is_told_within_two_seconds(stack: Stack, store: Any) -> None:
    with contextlib.ExitStack() as frozen:
        for part in stack.workers:
            part.freeze()
            frozen.callback(part.thaw)
        async with talking(voice(stack)) as talk:
            began = time.monotonic()
            await speak(talk, SAID[:HALF])
            told = await understood(talk)
            took = time.monotonic() - began
            assert (told["problem"]["code"], told["problem"]["retryable"]) == ("speech_unavailable", True)
            assert "nobody listens" in told["problem"]["detail"], "and not that it took too long"
            assert took < 20, "two seconds, and what a busy machine adds"
        await eventually(lambda: not left(store), what="nothing of it is left")


@pytest.mark.asyncio(loop_scope="module")
async def test_what_was_said_to_its_end_is_understood_and_taken_in_before_a_foreground_goes(
    stack: Stack, home: Home, speech: Receiver
) -> None:
    before, heard = len(home.acts(LAMP)), hears_late(speech, "turn on the kitchen light")
    async with talking(voice(stack)) as talk:
        await speak(talk, SAID)
        await talk.say("end")
        await eventually(lambda: speech.deliveries, what="it is listened to")
        stack.foregrounds[0].running.send_signal(signal.SIGTERM)
        await talk.until(lambda frame: frame["op"] == "draining")
        heard.set()
        closed = await talk.rest()
    ops = [frame["op"] for frame in talk.frames]
    assert closed.rcvd is not None
    assert (closed.rcvd.code, ops[:3]) == (1012, ["draining", "final", "ack"])
    await eventually(lambda: len(home.acts(LAMP)) == before + 1, what="it is done")
    await stack.foregrounds[0].stop()
    await stack.foregrounds[0].start()


@pytest.mark.asyncio(loop_scope="module")
async def test_an_open_microphone_may_send_on_while_a_slow_engine_listens_to_what_was_said(
    stack: Stack, home: Home, store: Any, speech: Receiver
) -> None:
    before, heard = len(home.acts(LAMP)), hears_late(speech, "turn on the kitchen light")
    async with talking(voice(stack)) as talk:
        await speak(talk, SAID + silence(1))

        async def asked() -> bool:
            await talk.raw(silence(0.001))  # who sends nothing for five seconds has ended
            return bool(speech.deliveries)

        await eventually(asked, what="it is listened to")
        for _ in range(60):  # seconds, which are more than may be said at a time
            await talk.raw(silence(1))
        await talk.say("ping", ref="all was taken")
        await talk.until(lambda frame: frame["op"] == "pong")
        (spoken,) = store.keys("*}:spoken:*")
        assert max(map(len, store.lrange(spoken, 0, -1))) < len(silence(1)), "of what came afterwards nothing is kept"
        heard.set()
        await answered(talk, home, before)


@pytest.mark.asyncio(loop_scope="module")
async def test_who_speaks_is_heard_in_the_language_of_his_session(stack: Stack, home: Home, speech: Receiver) -> None:
    async with talking(voice(stack, "session=mine")) as talk:
        for n, locale in enumerate(("zh-CN", None)):
            speech.deliveries.clear()
            speech.answers.append(hears("打开厨房的灯"))
            await talk.say("start", ref=n, **({"locale": locale} if locale else {}))
            await speak(talk, SAID)
            await talk.say("end")
            ack = await talk.until(lambda frame: frame["op"] in {"ack", "error"})
            assert (await talk.result(ack["correlation_id"], 40))["status"] == "SUCCEEDED"
            assert b'name="language"\r\n\r\nzh' in speech.deliveries[0].body
    assert home.look(LAMP)["value"]["power"] == "on"


@pytest.mark.long
@pytest.mark.asyncio(loop_scope="module")
async def test_a_redis_that_hangs_is_told_of_and_nothing_stays_behind(
    stack: Stack, home: Home, store: Any, speech: Receiver
) -> None:
    before = len(home.acts(LAMP))
    async with talking(voice(stack)) as talk:
        await speak(talk, SAID[:HALF])
        await listener(stack, store)
        store.execute_command("CLIENT", "PAUSE", 5_000, "ALL")
        await speak(talk, SAID[HALF:])
        assert (await understood(talk))["problem"]["code"] == "redis_unavailable"
        await eventually(lambda: not left(store), what="nothing of it is left")
        speech.answers.append(hears("turn on the kitchen light"))
        await talk.say("start")
        await speak(talk, SAID)
        await talk.say("end")
        await answered(talk, home, before)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_was_heard_badly_is_asked_back_and_who_hears_nothing_says_so(
    stack: Stack, home: Home, speech: Receiver
) -> None:
    before = len(home.acts(LAMP))
    speech.answers.extend([hears("turn on the kitchen light", DOUBTFUL), *[status(500)] * 3])
    async with talking(voice(stack, "locale=en&session=doubtful")) as talk:
        await speak(talk, SAID)
        await talk.say("end")
        final = await understood(talk)
        asked = await talk.until(lambda frame: "spoken" in (frame.get("data") or {}))
        assert (final["confidence"] < 0.5, asked["data"]["question"]) == (True, "confirm")
        await talk.say("start", ref="again")
        await speak(talk, SAID)
        await talk.say("end")
        failed = await understood(talk)
    assert (failed["problem"]["code"], failed["ref"]) == ("speech_unavailable", "again")
    assert len(home.acts(LAMP)) == before
