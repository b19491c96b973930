"""Who listens is slow, dies or hears badly: nothing that was said is lost, done twice, or done on a doubtful yes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import redis

from tests.home import Home
from tests.processes.commands import Front
from tests.speech_words import DOUBTFUL, hears
from tests.stories.furnished import furnished
from tests.stories.stack import Stack
from tests.waiting import eventually
from tests.webhook_receiver import Receiver, receiving, silence, status

pytestmark = pytest.mark.usefixtures("unheard")

SAID: Final = (Path(__file__).parent.parent / "audio" / "en01-a.wav").read_bytes()
LAMP, LOCK = "light.kitchen", "lock.front_door"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def speech() -> AsyncIterator[Receiver]:
    """A speech server that answers as it is told to."""
    async with receiving() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(
    module_redis_url: str, shared_home: Home, speech: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("voice")
    env: dict[str, Any] = {
        "DUALLOOP_SPEECH_URL": f"http://127.0.0.1:{speech.port}/v1",
        "DUALLOOP_LEASE_S": "1.5",
        "DUALLOOP_SHARDS": "3",
    }
    async with furnished(module_redis_url, folder, shared_home, **env) as stack:
        yield stack


async def say(front: Front, session: str, deadline_s: float = 60) -> str:
    """Say something; what is heard of it the server says."""
    said = {"locale": "en", "session": session, "deadline_s": str(deadline_s)}
    answer = await front.client.post("/v1/voice", content=SAID, params=said)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["correlation_id"])


@pytest.mark.asyncio(loop_scope="module")
async def test_kill_9_while_it_is_listened_to_loses_nothing_and_does_it_once(
    home: Home, stack: Stack, front: Front, speech: Receiver
) -> None:
    speech.deliveries.clear()
    speech.answers.extend([silence, hears("turn the kitchen light on")])
    before = len(home.acts(LAMP))
    said = await say(front, "killed")
    await eventually(lambda: speech.deliveries, what="it is listened to")
    stack.workers[0].kill()
    stack.workers[0].spawn()
    done: dict[str, Any] = await front.end(said)
    assert (done["status"], done["result"]["text"]) == ("SUCCEEDED", "The kitchen light is on."), done
    assert len(home.acts(LAMP)) == before + 1
    first, second = (one.body.partition(b"RIFF")[2].rpartition(b"\r\n--")[0] for one in speech.deliveries)
    assert (bool(first), first) == (True, second), "whoever takes over hears the same"
    assert kept(stack) == 0


def kept(stack: Stack) -> int:
    """How many recordings lie in Redis."""
    with contextlib.closing(redis.Redis.from_url(stack.redis_url)) as store:
        found: Any = store.keys("*audio:*")
    return len(found)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("end", ["cancel", "deadline"])
async def test_who_is_waited_for_no_longer_is_not_listened_to_either(
    stack: Stack, front: Front, speech: Receiver, end: str
) -> None:
    for deadline_s in (600,) if end == "cancel" else (4, 16, 64):  # more where the machine is slow
        speech.deliveries.clear()
        speech.answers.clear()
        speech.answers.append(silence)
        said = await say(front, end, deadline_s)

        async def listened(said: str = said) -> bool:
            return bool(speech.deliveries) or await _ended(front, said)

        await eventually(listened, within=100, what="it is listened to")
        if speech.deliveries:
            break
    if end == "cancel":
        assert kept(stack) == 1
        await front.cancel(said)
    done = await front.end(said)
    assert (done["status"], kept(stack)) == ("CANCELLED" if end == "cancel" else "FAILED", 0), done
    if end == "deadline":
        assert done["result"]["text"] == "I cannot hear just now. Please say it again."
    children = (await front.client.get(f"/v1/missions/{said}")).json()["children"]
    await eventually(lambda: _ended(front, children[0]["task_id"]), what="who listens has ended")


async def _ended(front: Front, task_id: str) -> bool:
    return bool((await front.result(task_id, wait=0))["finished_at"])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_doubtful_yes_opens_no_door(home: Home, front: Front, speech: Receiver) -> None:
    home.hand(LOCK, lock="locked")
    speech.answers.extend([hears("unlock the front door"), hears("yes", DOUBTFUL), hears("yes")])
    asking = await say(front, "doubtful")
    await eventually(lambda: _asks(front, asking), what="it asks back, however clear that was")
    doubtful = await front.end(await say(front, "doubtful"))
    assert (doubtful["result"]["problem"], doubtful["result"]["asked_by"]) == ("not_understood", asking)
    assert (home.look(LOCK)["value"]["lock"], await _asks(front, asking)) == ("locked", True)
    clear = await front.end(await say(front, "doubtful"))
    assert clear["result"]["answers"] == asking
    assert (await front.end(asking))["status"] == "SUCCEEDED"
    assert home.look(LOCK)["value"]["lock"] == "unlocked"


async def _asks(front: Front, correlation_id: str) -> bool:
    return (await front.state(correlation_id)) == ("WAITING", "ASKING")


@pytest.mark.asyncio(loop_scope="module")
async def test_what_one_speaker_says_is_understood_in_the_order_in_which_he_says_it(
    home: Home, front: Front, speech: Receiver
) -> None:
    heard = asyncio.Event()

    async def late(receiver: Receiver, writer: asyncio.StreamWriter) -> None:
        await heard.wait()
        await hears("turn on the kitchen light")(receiver, writer)

    speech.deliveries.clear()
    speech.answers.extend([late, hears("turn on the study light")])
    long = await say(front, "in order")
    await eventually(lambda: speech.deliveries, what="the first is listened to")
    short = await say(front, "in order")
    assert (await front.result(short, wait=0))["waiting_for"] == "target", "nobody overtakes him"
    heard.set()
    ends = [await front.end(one) for one in (long, short)]
    assert [end["result"]["text"] for end in ends] == ["The kitchen light is on.", "The study light is on."]
    assert [act["action"] for act in home.acts("light.study")][-1:] == ["turn_on"]


@pytest.mark.asyncio(loop_scope="module")
async def test_of_two_who_say_cancel_the_second_means_the_command_and_not_the_first(
    front: Front, speech: Receiver
) -> None:
    heard = asyncio.Event()

    async def late(receiver: Receiver, writer: asyncio.StreamWriter) -> None:
        await heard.wait()
        await hears("cancel that")(receiver, writer)

    speech.answers.append(hears("turn on the light"))
    command = await say(front, "twice")
    await eventually(lambda: _asks(front, command), what="it asks where")
    speech.deliveries.clear()
    speech.answers.extend([late, hears("cancel that")])
    first = await say(front, "twice")
    await eventually(lambda: speech.deliveries, what="the first is listened to")
    second = await say(front, "twice")
    assert (await front.result(second, wait=0))["waiting_for"] == "target", "it is not understood before the first"
    heard.set()
    ends = [await front.end(one) for one in (first, second)]
    assert [(end["status"], end["result"]["cancelled"]) for end in ends] == [("SUCCEEDED", command)] * 2
    assert (await front.end(command))["status"] == "CANCELLED"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_server_that_fails_is_asked_again_and_then_told_of(home: Home, front: Front, speech: Receiver) -> None:
    speech.answers.extend([status(503), hears("switch on the kitchen light")])
    done = await front.end(await say(front, "again"))
    assert (done["status"], home.look(LAMP)["value"]["power"]) == ("SUCCEEDED", "on")
    speech.answers.extend([status(500)] * 3)
    failed = await front.end(await say(front, "failed"))
    assert (failed["error"]["code"], failed["result"]["problem"]) == ("child_failed", "cannot_hear_now")
    assert failed["result"]["text"] == "I cannot hear just now. Please say it again."
