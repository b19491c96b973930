"""What a foreground has of a voice session: how much it may be told."""

from typing import Any, cast

import pytest

from frontend_loop.voice_sessions import PAUSES_S, Speaker, VoiceSession
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
