"""What is said, as a recording, to real processes and a home: heard, done and answered, or refused at the door."""

import asyncio
import io
import wave
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio
import redis

from dualloop.client import Client
from shared import keys
from shared.clock import parse_rfc3339
from tests import ears
from tests.home import Home
from tests.stories.furnished import furnished
from tests.stories.stack import Stack
from tests.stories.terminal import Terminal
from tests.waiting import eventually

pytestmark = pytest.mark.usefixtures("unheard")

AUDIO: Final = Path(__file__).parent.parent / "audio"
LIVING_ROOM, BEDROOM = "light.living_room", "light.bedroom"
CURL: Final = {"content-type": "application/x-www-form-urlencoded"}
"""What curl --data-binary says of everything."""

WAIT: Final = {"prefer": "wait=30"}
MOST: Final = 512 * 1024

Document = dict[str, Any]


def recording(name: str) -> bytes:
    return (AUDIO / f"{name}.wav").read_bytes()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(
    module_redis_url: str, shared_home: Home, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("voice")
    async with furnished(
        module_redis_url, folder, shared_home, DUALLOOP_MAX_AUDIO=str(MOST), DUALLOOP_AUDIO_MEMORY="0.5"
    ) as stack:
        yield stack


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=40) as client:
        yield client


@pytest.fixture
def store(module_redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(module_redis_url) as store:
        yield store


def kept(store: redis.Redis) -> list[bytes]:
    """Recordings that lie in Redis."""
    found: Any = store.keys("*audio:*")
    return list(found)


# Said and done


@ears.wanted
async def test_a_recording_is_heard_done_and_answered_by_what_was_seen(
    home: Home, client: httpx.AsyncClient, store: redis.Redis
) -> None:
    answer = await client.post("/v1/voice", content=recording("en01-a"), headers=CURL | WAIT)
    done: Document = answer.json()
    assert (answer.status_code, done["status"], done["type"]) == (200, "SUCCEEDED", "assistant.command"), done
    assert done["freshness"]["verified"] is True
    assert done["result"]["text"] == "The living room light is on."
    speech = done["result"]["speech"]
    assert (speech["engine"], done["result"]["heard"]) == ("sphinx", speech["heard"])
    assert 0.5 < speech["confidence"] <= 1
    assert (home.look(LIVING_ROOM)["value"]["power"], kept(store)) == ("on", [])
    mission = (await client.get(f"/v1/missions/{done['task_id']}")).json()
    assert mission["envelope"]["source"] == "voice"
    assert mission["envelope"]["payload"]["audio"]["bytes"] == len(recording("en01-a"))
    children = {child["type"] for child in mission["children"]}
    assert children == {"speech.transcribe", "device.control"}


@ears.wanted
async def test_a_form_and_samples_without_a_header_are_heard_as_well(home: Home, client: httpx.AsyncClient) -> None:
    form = {"file": ("said.wav", recording("en02-a"), "audio/wav")}
    with wave.open(io.BytesIO(recording("en02-a"))) as file:
        samples, rate = file.readframes(file.getnframes()), file.getframerate()
    home.hand(BEDROOM, power="on")
    by_form = (await client.post("/v1/voice", files=form, params={"locale": "en"}, headers=WAIT)).json()
    home.hand(BEDROOM, power="on")
    kind = {"content-type": f"audio/L16;rate={rate}"}
    bare = (await client.post("/v1/voice", content=samples, params={"locale": "en"}, headers=kind | WAIT)).json()
    assert [done["result"]["text"] for done in (by_form, bare)] == ["The bedroom light is off."] * 2


@ears.wanted
async def test_the_ack_comes_at_once_and_the_session_remembers(home: Home, client: httpx.AsyncClient) -> None:
    said = {"session": "voice session", "area": "kitchen", "priority": "normal", "deadline_s": "60", "locale": "en"}
    answer = await client.post("/v1/voice", content=recording("en01-b"), params=said)
    ack = answer.json()
    assert (answer.status_code, ack["status"]) == (202, "PENDING")
    assert answer.headers["location"] == f"/v1/results/{ack['correlation_id']}"
    done = (await client.get(answer.headers["location"], params={"wait": 30})).json()
    envelope = (await client.get(f"/v1/missions/{ack['task_id']}")).json()["envelope"]
    assert [envelope[name] for name in ("session", "area", "priority")] == ["voice session", "kitchen", "normal"]
    assert done["status"] == "SUCCEEDED", done
    undo = {"text": "turn off the light", "locale": "en", "session": "voice session"}
    home.hand("light.kitchen", power="on")
    answered = (await client.post("/v1/commands", json=undo, headers=WAIT)).json()
    assert answered["result"]["text"] == "The kitchen light is off."


@ears.wanted
@pytest.mark.usefixtures("home")
async def test_the_same_key_is_the_same_command(client: httpx.AsyncClient, store: redis.Redis) -> None:
    key = {"idempotency-key": "said-once"}
    first = await client.post("/v1/voice", content=recording("en01-a"), headers=key)
    again = await client.post("/v1/voice", content=recording("en01-a"), headers=key)
    assert (first.status_code, again.status_code, again.json()) == (202, 202, first.json())
    assert again.headers["idempotent-replayed"] == "true"
    done = (await client.get(first.headers["location"], params={"wait": 30})).json()
    assert done["status"] == "SUCCEEDED", done
    late = await client.post("/v1/voice", content=recording("en01-a"), headers=key)
    assert (late.json(), kept(store)) == (first.json(), []), "nothing is laid down for what has ended"
    two = [("idempotency-key", "said-once"), ("idempotency-key", "said-twice")]
    other = await client.post("/v1/voice", content=recording("en01-a"), headers=two)
    assert (other.status_code, other.json()["code"]) == (422, "invalid")
    other = await client.post("/v1/voice", content=recording("en01-b"), headers=key)
    assert (other.status_code, other.json()["code"]) == (422, "idempotency_mismatch")


@ears.wanted
async def test_two_satellites_that_hear_one_utterance_switch_once(home: Home, client: httpx.AsyncClient) -> None:
    ends, apart_ms = list[Document](), 1_000
    for _ in range(5):  # again where the machine was so slow that it came within no second
        if apart_ms >= 1_000:
            before = len(home.acts(BEDROOM))
            said = [{"session": one, "locale": "en"} for one in ("satellite 1", "satellite 2")]
            posts = (client.post("/v1/voice", content=recording("en08-a"), params=one, headers=WAIT) for one in said)
            ends = [answer.json() for answer in await asyncio.gather(*posts)]
            one, other = (parse_rfc3339(end["created_at"]) for end in ends)
            apart_ms = abs(one - other)
    assert [end["status"] for end in ends] == ["SUCCEEDED"] * 2
    same = [end["result"].get("same_as") for end in ends]
    assert sorted(one is None for one in same) == [False, True], ends
    assert len(home.acts(BEDROOM)) == before + 1


# Not understood


async def test_silence_is_no_command(client: httpx.AsyncClient) -> None:
    done = (await client.post("/v1/voice", content=bytes(32_000), params={"rate": 16_000}, headers=WAIT)).json()
    assert (done["status"], done["result"]["problem"]) == ("SUCCEEDED", "nothing_heard")
    assert done["result"]["text"] == "I did not hear anything."


async def test_what_only_begins_like_a_file_ends_with_a_sentence(client: httpx.AsyncClient, store: redis.Redis) -> None:
    done = (await client.post("/v1/voice", content=b"RIFF....WAVE and no more", headers=WAIT)).json()
    assert (done["status"], done["error"]["code"], done["result"]["problem"]) == ("FAILED", "permanent", "unreadable")
    assert (done["result"]["text"], kept(store)) == ("I cannot listen to that recording.", [])


async def test_a_language_that_the_engine_does_not_know_is_said_in_it(client: httpx.AsyncClient) -> None:
    chinese = {"locale": "zh-CN"}
    done = (await client.post("/v1/voice", content=recording("zh01-a"), params=chinese, headers=WAIT)).json()
    assert (done["status"], done["result"]["problem"]) == ("FAILED", "language_not_spoken")
    assert not done["result"]["text"].isascii()
    assert "DUALLOOP_WYOMING_URL" in done["error"]["message"]


# At the door


@pytest.mark.parametrize(
    ("body", "params", "headers", "status", "code"),
    [
        (b"", {}, {}, 422, "empty_recording"),
        (b"ID3 an MP3", {}, {"content-type": "audio/mpeg"}, 415, "no_recording"),
        (b"RIFF....WAVE" + bytes(MOST), {}, {}, 413, "too_large"),
        (b"RIFF....WAVE" + bytes(3 * MOST), {}, {}, 413, "too_large"),
        (bytes(320), {"rate": "1"}, {}, 422, "invalid"),
        (bytes(320), {"rate": "fast"}, {}, 422, "invalid"),
        (b"RIFF....WAVE", {"locale": "no locale"}, {}, 422, "invalid"),
        (b"RIFF....WAVE", {"deadline_s": "0"}, {}, 422, "invalid"),
        (b"RIFF....WAVE", {"priority": "whenever"}, {}, 422, "invalid"),
        (b"RIFF....WAVE", {}, {"idempotency-key": "two words"}, 422, "invalid"),
        (b"RIFF....WAVE", {}, {"origin": "https://evil.example"}, 403, "forbidden_origin"),
    ],
)
async def test_what_is_no_recording_is_refused_and_leaves_nothing(  # noqa: PLR0917  a row of the table
    client: httpx.AsyncClient,
    store: redis.Redis,
    body: bytes,
    params: dict[str, str],
    headers: dict[str, str],
    status: int,
    code: str,
) -> None:
    answer = await client.post("/v1/voice", content=body, params=params, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert kept(store) == []


@pytest.mark.usefixtures("home")
async def test_a_filling_redis_takes_commands_and_no_recordings(client: httpx.AsyncClient, store: redis.Redis) -> None:
    used = int(store.info("memory")["used_memory"])  # type: ignore[index]
    store.config_set("maxmemory", round(used * 1.5))
    try:
        refused = await client.post("/v1/voice", content=recording("en01-a"))
        typed = await client.post("/v1/commands", json={"text": "turn on the study light"}, headers=WAIT)
    finally:
        store.config_set("maxmemory", 0)
    assert (refused.status_code, refused.json()["code"], refused.json()["retryable"]) == (503, "audio_refused", True)
    assert int(refused.headers["retry-after"]) > 0
    assert (typed.status_code, typed.json()["status"], kept(store)) == (200, "SUCCEEDED", [])


async def test_a_recording_whose_command_never_came_goes_by_itself(stack: Stack, store: redis.Redis) -> None:
    """What a foreground leaves that dies in between; and no mission is ever without the recording it came with."""
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=40) as client:
        stack.workers[0].freeze()
        try:
            ack = (await client.post("/v1/voice", content=recording("en01-a"), params={"deadline_s": 5})).json()
            key = keys.audio(0, ack["task_id"])
            left_ms = int(store.pttl(key))  # type: ignore[arg-type]
            assert store.get(key) == recording("en01-a")
        finally:
            stack.workers[0].thaw()
        assert 5_000 < left_ms <= 65_000
        await client.post(f"/v1/commands/{ack['correlation_id']}/cancel")
        await eventually(lambda: store.get(key) is None, 30, "the end of the command is the end of its recording")


# By client and command line


@ears.wanted
@pytest.mark.usefixtures("home")
async def test_the_client_sends_recordings(stack: Stack) -> None:
    async with Client(stack.url) as client:
        ack = await client.speak(recording("en01-a"), locale="en", session=None)
        done = await client.wait(ack.correlation_id, timeout=60)
    assert done["result"]["text"] == "The living room light is on."


@ears.wanted
@pytest.mark.usefixtures("home")
async def test_the_command_line_sends_files(stack: Stack, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, DUALLOOP_URL=stack.url)
    said = await terminal.run("send", "--audio", str(AUDIO / "en02-a.wav"), "--locale", "en", "--wait")
    assert (said.code, said.err) == (0, "")
    assert "The bedroom light was off already." in said.out.splitlines()
    missing = await terminal.run("send", "--audio", str(tmp_path / "nothing.wav"))
    assert (missing.code, "cannot be read" in missing.err) == (1, True)
