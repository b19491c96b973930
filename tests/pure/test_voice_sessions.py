"""What a foreground has of a voice session: how much it may be told."""

from typing import Any, cast

import pytest

from frontend_loop import voice_sessions
from frontend_loop.voice_sessions import PAUSES_S, SLOWLY, Speaker, VoiceSession
from shared.errors import Problem
from shared.settings import Settings


class Tape:
    """In the place of a link: what Redis was told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    async def run(self, *args: Any) -> bytes:
        self.told.append(args)
        return b"OK"


@pytest.mark.parametrize(("rate", "most"), [(16_000, round((2 + PAUSES_S) * 16_000) * 2), (192_000, 1_000_000)])
async def test_it_is_as_long_as_is_listened_to_and_no_larger_than_any_recording(rate: int, most: int) -> None:
    link, settings = Tape(), Settings(speech_s=2, max_audio=1_000_000, _env_file=None)
    await VoiceSession(cast("Any", link), 0, Speaker(rate=rate), settings).push(bytes(2))
    ((verb, _, word, *_, room, samples),) = link.told
    assert (verb, word, room, samples) == ("speak", "push", most, bytes(2))


@pytest.mark.parametrize("begins", [b"\x1aE\xdf\xa3", b"OggS", b"fLaC"])
async def test_a_file_is_no_speech_and_who_sends_one_is_told_so(begins: bytes) -> None:
    link, settings = Tape(), Settings(_env_file=None)
    with pytest.raises(Problem, match="begins like a file") as refused:
        await VoiceSession(cast("Any", link), 0, Speaker(), settings).push(begins + bytes(320))
    assert (refused.value.code, link.told) == ("no_recording", [])


async def test_what_comes_amid_speech_is_sound_and_so_is_what_follows_the_header_of_a_wav() -> None:
    link = Tape()
    session = VoiceSession(cast("Any", link), 0, Speaker(), Settings(_env_file=None))
    for samples in (b"RIFF....WAVE", b"OggS", b"fLaC"):
        await session.push(samples)
    assert [told[-1] for told in link.told] == [b"RIFF....WAVE", b"OggS", b"fLaC"]


class Dropped(Tape):
    """In the place of a link: all was said, and it was understood and dropped before anybody could look."""

    async def run(self, *args: Any) -> bytes:
        await super().run(*args)
        return b"OVER" if args[0] == "speak" else b"GONE"


async def test_who_sends_on_when_all_was_said_is_not_told_that_it_was_lost() -> None:
    session = VoiceSession(cast("Any", Dropped()), 0, Speaker(), Settings(_env_file=None))
    await session.push(bytes(2))
    assert session.ended


class Listener(Tape):
    """In the place of a link: somebody listens, and has understood once it is ended."""

    async def run(self, *args: Any) -> Any:
        await super().run(*args)
        return b"OK" if args[0] == "speak" else [b"OK", 0, b'{"text":"so far"}' if args[-1] else b""]


async def test_who_speaks_slowly_for_ever_has_ended_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_sessions, "LOOK_S", 0.001)
    session = VoiceSession(cast("Any", Listener()), 0, Speaker(), Settings(speech_s=2, _env_file=None))
    began, last = session._clock(), SLOWLY * (2 + PAUSES_S)
    for said in range(1, 1 + round(last / 4)):
        monkeypatch.setattr(session, "_clock", lambda at=began + 4 * said: at)
        await session.push(bytes(2))
        assert not session.ended
    monkeypatch.setattr(session, "_clock", lambda: began + last + 1)
    await session.push(bytes(2))
    assert await session.next() == {"text": "so far"}
    assert session.ended
