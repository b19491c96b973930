"""A voice session as its foreground has it, on a real Redis: lost hints cost nothing, and nobody waits for ever."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from frontend_loop import voice_sessions
from frontend_loop.feed import Feed
from frontend_loop.voice_sessions import Speaker, VoiceSession, VoiceSessions
from shared import keys
from shared.errors import Problem
from shared.redis import Link
from shared.settings import Settings

MOMENT_S = 0.05


@pytest.fixture
def settings(redis_url: str) -> Settings:
    return Settings(_env_file=None, redis_url=redis_url, speech_s=1.0)


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[Link]:
    link = await Link(redis_url).open(wait_s=30)
    yield link
    await link.close()


@pytest.fixture
async def session(link: Link, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> VoiceSession:
    """Nothing is heard of it but what is looked for: its feed listens to nobody."""
    monkeypatch.setattr(voice_sessions, "LOOK_S", 0.01)
    return await VoiceSessions(link, Feed(link, 1), settings).open(Speaker(locale="en"))


async def listen(link: Link, verb: str, *args: Any) -> Any:
    return await link.run("listen", keys.prefix(0), verb, "worker", *args)


async def test_what_was_understood_is_found_where_its_hint_was_lost(link: Link, session: VoiceSession) -> None:
    await listen(link, "take", 60_000, 1)
    await listen(link, "say", session.id, '{"text":"on"}', 1)
    assert await session.next() == {"text": "on"}


async def test_who_sends_nothing_any_more_has_ended(
    link: Link, session: VoiceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(voice_sessions, "QUIET_S", MOMENT_S)
    monkeypatch.setattr(voice_sessions, "UNDERSTOOD_S", MOMENT_S)
    await listen(link, "take", 60_000, 1)
    await session.push(b"..")
    with pytest.raises(Problem) as late:
        await session.next()
    assert (late.value.code, "not understood" in late.value.detail) == ("speech_unavailable", True)
    assert session.ended
    assert (await listen(link, "pull", 5_000, session.id, 0))[1] == b"1"


async def test_who_sends_on_when_all_was_said_has_ended(link: Link, session: VoiceSession) -> None:
    await listen(link, "take", 60_000, 1)
    await session.push(b"..")
    await listen(link, "over", session.id)
    assert not session.ended
    await session.push(b"..")
    assert session.ended


async def test_where_nobody_listens_that_is_told(session: VoiceSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_sessions, "ALONE_MS", 20)
    with pytest.raises(Problem) as alone:
        await session.next()
    assert "nobody listens" in alone.value.detail


async def test_hints_that_make_no_sense_are_let_pass(link: Link, session: VoiceSession) -> None:
    await listen(link, "take", 60_000, 1)
    session.hear([b"{", b"[]", b'{"partial":"o"}'])
    session.hear(None)
    assert await session.next() == {"partial": "o"}


async def test_of_too_much_it_is_said_how_much_would_do(session: VoiceSession) -> None:
    most = round((1.0 + voice_sessions.PAUSES_S) * 16_000) * 2
    await session.push(bytes(most))
    with pytest.raises(Problem) as long:
        await session.push(b"..")
    assert (long.value.code, str(most) in long.value.detail) == ("too_large", True)


async def test_what_has_lapsed_is_to_be_said_again(link: Link, session: VoiceSession) -> None:
    await link.call("DEL", f"{keys.prefix(0)}stream:{session.id}")
    for work in (session.push(b".."), session.end(), session.next()):
        with pytest.raises(Problem) as gone:
            await work
        assert (gone.value.code, gone.value.retryable) == ("speech_unavailable", True)
