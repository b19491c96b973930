"""What a foreground asks of Redis for a recording, and what it tells who said it where there is no room."""

from typing import Any, cast

import pytest

from frontend_loop.door import Door, _Place
from shared.errors import Problem
from shared.settings import Settings


class Full:
    """Redis, where too many recordings wait."""

    def __init__(self) -> None:
        self.asked: tuple[Any, ...] = ()

    async def run(self, *asked: Any) -> bytes:
        self.asked = asked
        return b"CROWDED"


async def test_each_shard_has_its_part_of_what_recordings_may_have_and_who_finds_none_left_may_say_it_again() -> None:
    door, full = Door.__new__(Door), Full()
    door._link, door._settings = cast("Any", full), Settings(shards=2, audio_kept=101, _env_file=None)
    with pytest.raises(Problem, match="51 bytes") as refused:
        await door._deposit(_Place("m", 0, ""), b"said", 30_000)
    assert (refused.value.code, refused.value.retryable) == ("audio_refused", True)
    assert full.asked[-2:] == (51, b"said")
