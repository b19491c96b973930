"""A voice session where no process finds the end of what is said: no half of it is heard for the whole."""

import asyncio
from typing import Any, cast

import pytest

from backend_loop.services import ServiceUnavailable
from backend_loop.speech import voice_session
from backend_loop.speech.voice_session import TRIES, Place, VoiceSession
from shared.errors import RedisAwayError


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_session, "AGAIN_S", 0.0)


class Ending:
    """In the place of the processes: each dies."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def ask_for_all(self, _module: str, *, at: int, **_order: Any) -> dict[str, Any]:
        self.asked.append(at)
        raise ServiceUnavailable("it was ended by SIGKILL")


class Ears:
    """In the place of an engine: hears everything."""

    guesses = False

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def listen(self, recording: bytes, _rate: int, _language: str) -> Any:
        self.heard.append(recording)
        raise ServiceUnavailable("it hears and says nothing")


class Told:
    """In the place of a link, which is away where somebody says that all was said."""

    async def run(self, _script: str, _prefix: str, verb: str, *_: Any) -> bytes:
        if verb == "over":
            raise RedisAwayError("it is not there")
        return b"OK"


def session_of(ending: Any, ears: Any) -> VoiceSession:
    return VoiceSession(
        Place(cast("Any", Told()), 0, "s", "w"),
        16_000,
        "en",
        ears=ears,
        ending=ending,
        guessing=asyncio.Lock(),
        most_s=30.0,
    )


async def understood(said: bytes, *, ended: bool) -> tuple[dict[str, Any], list[int], list[bytes]]:
    """What is told, from where on it was looked for the end, and what the engine was given."""
    ending, ears = Ending(), Ears()
    session = session_of(ending, ears)
    session._pcm += said
    session._ended = ended
    session._news.set()
    async with asyncio.TaskGroup() as group:
        return await session._heard(group), ending.asked, ears.heard


async def test_who_may_still_speak_is_told_that_he_is_not_heard_and_not_cut_short() -> None:
    told, asked, heard = await understood(bytes(3_200), ended=False)
    assert told == {"problem": "unavailable", "detail": "the end of what is said cannot be found now"}
    assert (asked, heard) == ([0] * TRIES, [])


async def test_of_who_has_said_that_it_is_all_all_is_heard() -> None:
    told, asked, heard = await understood(bytes(3_200), ended=True)
    assert told == {"problem": "unavailable", "detail": "it hears and says nothing"}
    assert (asked, heard) == ([0] * TRIES, [bytes(3_200)] * TRIES)
