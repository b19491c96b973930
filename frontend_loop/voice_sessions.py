"""Voice sessions: what is being said goes to Redis as it comes, and what was understood comes back.

A voice session is no mission: it is short, nobody promises anything of it, and it ends with its final text. Whoever
listens to it is a worker; here bytes are moved, and what is said of them is waited for. All of it expires by itself a
few seconds after the last word of this foreground.
"""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Iterable
from typing import Annotated, Any, Final
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from frontend_loop.feed import Feed
from frontend_loop.utterance import Locale
from shared import keys
from shared.audio import RATES, kind_of, stranger
from shared.envelope import Text
from shared.errors import Problem, RedisAwayError
from shared.loop import Answer, Idle, Loop
from shared.redis import Link
from shared.settings import Settings

KEEP_MS: Final = 10_000
"""A voice session without a word of its foreground lives for so long."""

LOOK_S: Final = 0.25
"""What was understood is looked for so often: no hint has to arrive."""

ALONE_MS: Final = 1_200
"""For so long nobody may listen; who has died holds his sessions for less than a second after his last word."""

PAUSES_S: Final = 15.0
"""What may be said before, between and after the speech that is listened to."""

QUIET_S: Final = 5.0
"""Who sends nothing for so long, not even silence, has ended."""

UNDERSTOOD_S: Final = 30.0
"""For so long an answer is waited for, once somebody has ended."""

SLOWLY: Final = 2.0
"""So many times as long as it lasts may it take to say it: who sends a word a minute keeps others from speaking."""

LEAVE_S: Final = 30.0
WIDTH: Final = 2
"""Bytes of a sample."""


class Speaker(BaseModel):
    """Who speaks, and how; from the query of the socket, and from each start."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    locale: Locale | None = Field(None, description="language of the speaker, BCP 47")
    area: Text | None = Field(None, description="where the speaker is")
    session: Text | None = Field(None, description="ties a speaker's commands together")
    rate: Annotated[int, Field(ge=RATES.start, lt=RATES.stop)] = Field(16_000, description="samples a second")


class VoiceSession:
    """One, from its first bytes to its final text; made by `VoiceSessions.open`, and left by whoever opened it."""

    def __init__(self, link: Link, shard: int, speaker: Speaker, settings: Settings) -> None:
        """Not opened yet."""
        self.id, self.shard, self.speaker = uuid4().hex, shard, speaker
        self._link, self._prefix, self._share = link, keys.prefix(shard), settings.audio_memory
        self._most = min(round((settings.speech_s + PAUSES_S) * speaker.rate) * WIDTH, settings.max_audio)
        self._ended, self._silent = False, True
        self._clock = asyncio.get_running_loop().time
        self._by = self._clock() + SLOWLY * (settings.speech_s + PAUSES_S)
        self._until = self._clock() + QUIET_S
        self._told: deque[dict[str, Any]] = deque()
        self._stir = asyncio.Event()

    @property
    def ended(self) -> bool:
        """Whether the client has said that nothing more will come, or who listens that this was all."""
        return self._ended

    async def open(self, front: str) -> None:
        """Ask for somebody who listens.

        Raises:
            Problem: 503, there is no room.
            RedisAwayError: nothing was opened.
        """
        head = self.speaker.model_dump_json(include={"rate", "locale", "session"})
        self._took(await self._link.run("speak", self._prefix, "open", self.id, KEEP_MS, self._share, front, head))

    async def push(self, samples: bytes) -> None:
        """More of what is said; what comes after its end is dropped, and then it has `ended`, whoever goes on sending.

        Raises:
            Problem: 413, or 503; 415: it begins like a file of what no samples are.
            RedisAwayError: it may be lost.
        """
        if self._silent and (file := stranger(samples) or kind_of(samples)) not in {None, "WAV"}:
            detail = (
                f"this begins like a file, {file}: send samples, 16 bit, little endian, mono, at the rate that is said"
            )
            raise Problem("no_recording", detail)
        self._silent = False
        self._until = min(self._clock() + QUIET_S, self._by)
        item = (self.id, KEEP_MS, self._share, self._most, samples)
        answer = await self._link.run("speak", self._prefix, "push", *item)
        self._took(answer)
        if answer == b"OVER":  # which Redis knows already, and it may have been understood and dropped by now
            self._all_said()

    async def end(self) -> None:
        """Nothing more is said.

        Raises:
            Problem: 503, it has lapsed.
            RedisAwayError: it may not have been heard.
        """
        self._all_said()
        await self._look()

    def _all_said(self) -> None:
        self._ended, self._until = True, self._clock() + UNDERSTOOD_S

    def hear(self, lines: list[bytes] | None) -> None:
        """Take what the feed has heard of it."""
        for line in lines or ():
            with contextlib.suppress(ValueError):  # a hint: what is true is looked for
                told = from_json(line)
                if isinstance(told, dict):
                    self._told.append(told)
        self._stir.set()

    async def next(self) -> dict[str, Any]:
        """What was understood: ``{"partial": …}`` any number of times, then once the final document.

        Raises:
            Problem: 503, nobody listens, or not to the end.
            RedisAwayError: it is not known.
        """
        while not self._told:
            self._stir.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._stir.wait()
                continue
            late = self._clock() > self._until
            if late and self._ended:
                raise unheard(f"what was said was not understood within {UNDERSTOOD_S:g} s")
            if late:
                await self.end()
            elif (final := await self._look()) is not None:
                return final
        return self._told.popleft()

    async def _look(self) -> dict[str, Any] | None:
        answer = await self._link.run("listen", self._prefix, "look", self.id, KEEP_MS, int(self._ended))
        if answer == b"GONE":
            raise unheard("what was said was not kept")
        if answer[1] > ALONE_MS:
            raise unheard("nobody listens: start a background process that serves the pool speech, or a further one")
        final = from_json(answer[2]) if answer[2] else None
        return final if isinstance(final, dict) else None

    def _took(self, answer: bytes) -> None:
        if answer == b"FULL":
            detail = f"Redis is filled to more than {self._share:.0%}, which is left to commands: send text, or later"
            raise Problem("audio_refused", detail, retryable=True, retry_after=5)
        if answer == b"LONG":
            raise Problem("too_large", f"this is longer than the {self._most} bytes that are listened to at a time")
        if answer == b"GONE":
            raise unheard("what was said was not kept")


class VoiceSessions:
    """Those of one foreground."""

    def __init__(self, link: Link, feed: Feed, settings: Settings) -> None:
        """None is open."""
        self._link, self._feed, self._settings = link, feed, settings
        self._open: dict[VoiceSession, Any] = {}
        self._left: set[VoiceSession] = set()
        self.leaving = Loop(
            "voice-leave",
            self._drop,
            trigger="woken",
            interval_s=LEAVE_S,
            describe="removes voice sessions that were understood, or whose client has gone",
            output="their keys",
            on_failure="they lapse by themselves",
            vital=False,
        )

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    async def open(self, speaker: Speaker) -> VoiceSession:
        """Begin one; `leave` it in the end.

        Raises:
            Problem: 429 or 503.
            RedisAwayError: it was not begun.
        """
        if len(self._open) >= self._settings.voice_sessions:
            detail = f"{len(self._open)} people speak to this process already: say it a little later"
            raise Problem("too_many_voices", detail, retryable=True, retry_after=2)
        shards = self._settings.shards
        session = VoiceSession(self._link, random.randrange(shards), speaker, self._settings)  # noqa: S311  balance
        self._open[session] = self._feed.listen(session.shard, session.id, session.hear)
        try:
            await session.open(self._feed.front)
        except BaseException:
            self.leave(session)
            raise
        return session

    def leave(self, session: VoiceSession) -> None:
        """This one is over, whatever became of it."""
        if (forget := self._open.pop(session, None)) is not None:
            forget()
            self._left.add(session)
            self.leaving.wake()

    async def _drop(self) -> Answer:
        left, self._left = self._left, set()
        await _all(self._link.run("listen", keys.prefix(one.shard), "drop", one.id) for one in left)
        return Idle()


async def _all(works: Iterable[Any]) -> None:
    """Do them together; one that fails keeps no other from being done."""
    for answer in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(answer, Exception) and not isinstance(answer, RedisAwayError):
            raise answer


def unheard(why: str) -> Problem:
    """503: it may be said again."""
    return Problem("speech_unavailable", why, retryable=True, retry_after=1)
