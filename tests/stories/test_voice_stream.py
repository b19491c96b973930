"""What is said into a socket: understood while it is said, done once it has ended, and answered by what was seen."""

import io
import wave
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio
import redis

import dualloop
from tests.home import Home, running_home
from tests.stories.stack import Stack, running
from tests.stories.talk import Talk, talking
from tests.waiting import eventually

AUDIO: Final = Path(__file__).parent.parent / "audio"
INVENTORY: Final = Path(dualloop.__file__).parent / "home" / "inventory.json"
LIVING_ROOM: Final = "light.living_room"
RATE: Final = 16_000
SLICE_MS: Final = 40
"""As microphones tell it; here they come as fast as they are taken."""


def samples(name: str) -> bytes:
    """Of a recording, at 16,000 a second."""
    with wave.open(io.BytesIO((AUDIO / f"{name}.wav").read_bytes())) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        return file.readframes(file.getnframes())


def silence(seconds: float) -> bytes:
    return bytes(round(seconds * RATE) * 2)


def slices(pcm: bytes, size: int = RATE * SLICE_MS // 1000 * 2) -> Iterable[bytes]:
    return (pcm[at : at + size] for at in range(0, len(pcm), size))


async def speak(talk: Talk, pcm: bytes) -> None:
    for piece in slices(pcm):
        await talk.raw(piece)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with running_home(tmp_path_factory.mktemp("house")) as home:
        yield home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(module_redis_url: str, house: Home, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("voice")
    (folder / "home.json").write_bytes(INVENTORY.read_bytes())
    env = {
        "DUALLOOP_HOME_URL": house.url,
        "DUALLOOP_HOME_FILE": str(folder / "home.json"),
        "DUALLOOP_VOICE_SESSIONS": "2",
        "DUALLOOP_SPEECH_S": "6",
        "DUALLOOP_AUDIO_MEMORY": "0.5",
    }
    async with running(module_redis_url, folder, **env) as stack, httpx.AsyncClient(trust_env=False) as client:

        async def furnished() -> bool:
            command = {"text": "turn off the hall light", "locale": "en"}
            answer = await client.post(
                f"{stack.url}/v1/commands", json=command, headers={"prefer": "wait=30"}, timeout=40
            )
            return "problem" not in (answer.json().get("result") or {"problem": ""})

        await eventually(furnished, 30, "the worker knows the home")
        yield stack


@pytest.fixture
def home(house: Home) -> Home:
    house.fresh()
    return house


@pytest.fixture
def store(module_redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(module_redis_url) as store:
        yield store


def left(store: redis.Redis) -> list[bytes]:
    """What voice sessions have left behind."""
    found: list[bytes] = [*store.keys("*}:stream*"), *store.keys("*}:spoken*")]
    return found


def voice(stack: Stack, query: str = "locale=en") -> str:
    return f"{stack.ws.removesuffix('/v1/ws')}/v1/voice?{query}"


async def understood(talk: Talk) -> dict[str, Any]:
    """The final frame."""
    return await talk.until(lambda frame: frame["op"] in {"final", "error"}, 40)


async def test_what_is_said_is_understood_done_and_answered_by_what_was_seen(
    stack: Stack, home: Home, store: redis.Redis
) -> None:
    async with talking(voice(stack)) as talk:
        await speak(talk, samples("en01-a") + silence(1))
        final = await understood(talk)
        assert final["op"] == "final", final
        ack = await talk.until(lambda frame: frame["op"] in {"ack", "error"})
        result = await talk.result(ack["correlation_id"], 40)
        talk.check(ack["correlation_id"])
    assert result["status"] == "SUCCEEDED", result
    assert result["freshness"]["verified"] is True
    assert result["result"]["text"] == "The living room light is on."
    assert (result["result"]["heard"], result["result"]["speech"]["engine"]) == (final["heard"], "sphinx")
    assert home.look(LIVING_ROOM)["value"]["power"] == "on"
    await eventually(lambda: not left(store), what="nothing of it is left")
