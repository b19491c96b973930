"""What is said into a socket: understood while it is said, done once it has ended, and answered by what was seen."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import httpx
import numpy as np
import pytest
import pytest_asyncio
import redis
import soxr  # type: ignore[import-untyped]
import websockets

from tests import ears
from tests.home import Home
from tests.stories.furnished import furnished
from tests.stories.spoken import RATE, left, samples, silence, slices, speak, understood, voice
from tests.stories.stack import Stack
from tests.stories.talk import Talk, talking
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("unheard")

LIVING_ROOM: Final = "light.living_room"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(
    module_redis_url: str, shared_home: Home, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("voice")
    env: dict[str, Any] = {"DUALLOOP_VOICE_SESSIONS": "2", "DUALLOOP_SPEECH_S": "6", "DUALLOOP_AUDIO_MEMORY": "0.5"}
    async with furnished(module_redis_url, folder, shared_home, **env) as stack:
        yield stack


@pytest.fixture
def store(module_redis_url: str) -> Iterator[Any]:
    with redis.Redis.from_url(module_redis_url) as store:
        yield store


@ears.wanted
async def test_what_is_said_is_understood_done_and_answered_by_what_was_seen(
    stack: Stack, home: Home, store: Any
) -> None:
    async with talking(voice(stack)) as talk:
        await speak(talk, samples("en01-a"))
        partial = await talk.until(lambda frame: frame["op"] != "pong")
        await speak(talk, silence(1))
        final = await understood(talk)
        assert (partial["op"], final["op"]) == ("partial", "final"), talk.frames
        ack = await talk.until(lambda frame: frame["op"] in {"ack", "error"})
        result = await talk.result(ack["correlation_id"])
        talk.check(ack["correlation_id"])
    assert partial["text"]
    assert [frame["op"] for frame in talk.frames[-3:]].count("partial") == 0, "nothing is guessed any more"
    assert result["status"] == "SUCCEEDED", result
    assert result["freshness"]["verified"] is True
    assert result["result"]["text"] == "The living room light is on."
    assert (result["result"]["heard"], result["result"]["speech"]["engine"]) == (final["heard"], "sphinx")
    assert home.look(LIVING_ROOM)["value"]["power"] == "on"
    await eventually(lambda: not left(store), what="nothing of it is left")


@ears.wanted
async def test_one_after_the_other_on_one_socket_each_by_its_own_ref(stack: Stack, home: Home) -> None:
    async with talking(voice(stack, "")) as talk:
        for n, (name, text) in enumerate([("en01-a", "The living room light is on."), ("en01-b", "was on already.")]):
            await talk.say("start", ref=n, locale="en", session="hands full", area="living_room")
            await speak(talk, samples(name))
            await talk.say("end")
            assert (await understood(talk))["ref"] == n
            ack = await talk.until(lambda frame: frame["op"] in {"ack", "error"})
            assert ack["ref"] == n
            result = await talk.result(ack["correlation_id"])
            assert text in result["result"]["text"]
            await talk.raw(silence(0.2))  # what comes before the next start is nobody's
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as client:
        mission = (await client.get(f"/v1/missions/{result['task_id']}")).json()["envelope"]
    assert [mission[name] for name in ("source", "session", "area")] == ["voice", "hands full", "living_room"]
    assert home.look(LIVING_ROOM)["value"]["power"] == "on"


@ears.wanted
async def test_samples_come_at_any_rate_and_frames_may_end_amid_one(stack: Stack) -> None:
    pcm = soxr.resample(np.frombuffer(samples("en01-a"), "<i2"), RATE, 48_000).astype("<i2").tobytes()
    async with talking(voice(stack, "locale=en&rate=48000")) as talk:
        for piece in slices(pcm, 3_333):
            await talk.raw(piece)
        await talk.raw(bytes(48_000 * 2))
        final = await understood(talk)
        ack = await talk.until(lambda frame: frame["op"] in {"ack", "error"})
        await talk.result(ack["correlation_id"])  # else it switches the lamp on in the midst of the next test
    assert final["op"] == "final", final
    assert "living room" in final["text"]


async def test_who_says_nothing_is_told_so(stack: Stack, store: Any) -> None:
    async with talking(voice(stack)) as talk:
        await speak(talk, silence(5.5))
        nobody = await understood(talk)
        await talk.say("start", ref="again")
        await talk.say("end")
        nothing = await understood(talk)
    assert [frame["problem"]["code"] for frame in (nobody, nothing)] == ["nothing_heard"] * 2
    assert (nothing["ref"], nothing["problem"]["instance"]) == ("again", "/v1/voice")
    await eventually(lambda: not left(store), what="nothing of it is left")


async def test_a_language_that_nobody_knows_is_refused_with_a_sentence(stack: Stack) -> None:
    async with talking(voice(stack, "locale=zh-CN")) as talk:
        await speak(talk, samples("zh01-a"))
        await talk.say("end")
        refused = await understood(talk)
    assert refused["problem"]["code"] == "speech_refused", refused
    assert "English" in refused["problem"]["detail"]


async def test_who_goes_on_for_too_long_is_closed(stack: Stack, store: Any) -> None:
    async with talking(voice(stack)) as talk:
        hum = samples("en01-a")
        await talk.say("start", ref=1)
        for _ in range(40):
            await talk.raw(hum)
        closed = await talk.rest()
    codes = {frame["problem"]["code"] for frame in talk.frames if frame["op"] == "error"}
    assert closed.rcvd is not None
    assert (closed.rcvd.code, codes) == (1009, {"too_large"})
    await eventually(lambda: not left(store), what="nothing of it is left")


async def test_a_start_that_makes_no_sense_changes_nothing(stack: Stack) -> None:
    async with talking(voice(stack)) as talk:
        await talk.say("end", ref="early")
        assert (await talk.next())["problem"]["code"] == "bad_frame"
        await talk.say("start", ref="slow", rate=1)
        assert (await talk.next())["problem"]["errors"][0]["pointer"] == "/rate"
        await talk.say("start", ref="fine")
        await talk.say("start", ref="twice")
        twice = await talk.next()
        assert (twice["ref"], twice["problem"]["code"]) == ("twice", "bad_frame")
        await talk.say("sing", ref="op")
        assert "start, end, submit" in (await talk.next())["problem"]["detail"]
        await talk.say("ping", ref="p")
        assert (await talk.next())["op"] == "pong"


@pytest.mark.parametrize("query", ["rate=1", "rate=fast", "locale=%21", f"session={'s' * 201}"])
async def test_a_socket_that_makes_no_sense_is_refused_at_its_handshake(stack: Stack, query: str) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with talking(voice(stack, query)):
            pass
    assert refused.value.response.status_code == 422


async def test_no_more_speak_than_may_and_who_has_gone_makes_room(stack: Stack, store: Any) -> None:
    async def speaking(many: int, *talks: Talk) -> bool:
        for talk in talks:
            await talk.raw(silence(0.001))  # who is quiet for five seconds has ended
        return len(store.keys("*}:stream:*")) == many

    async with talking(voice(stack)) as one, talking(voice(stack)) as two, talking(voice(stack)) as three:
        await eventually(lambda: speaking(2, one, two), what="both are open")
        await three.raw(silence(0.1))
        full = await understood(three)
        assert (full["problem"]["code"], full["problem"]["retryable"]) == ("too_many_voices", True)
        await one.socket.close()
        await eventually(lambda: speaking(1, two), what="the one has gone")
        await three.say("start")
        await eventually(lambda: speaking(2, two, three), what="there is room")
    await eventually(lambda: not left(store), what="nothing of them is left")


async def test_near_the_limit_of_the_memory_nobody_is_listened_to_and_commands_are_taken(
    stack: Stack, store: Any
) -> None:
    store.config_set("maxmemory", int(int(store.info("memory")["used_memory"]) * 1.5))
    try:
        async with talking(voice(stack)) as talk:
            await talk.raw(silence(0.1))
            refused = await understood(talk)
            assert (refused["problem"]["code"], refused["problem"]["status"]) == ("audio_refused", 503)
            assert (await talk.result(await talk.submit("test.five")))["status"] == "SUCCEEDED"
    finally:
        store.config_set("maxmemory", 0)
