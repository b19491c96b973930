"""One voice session as its worker has it: who speaks is listened to as he speaks, and understood once he has ended.

What is said lies in Redis until it is understood: so if this process dies, or the child that finds the end does, all of
it is there for whoever goes on.
"""

import asyncio
import contextlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.speech.ears import Ears
from backend_loop.speech.ending_child import LOST
from backend_loop.speech.engine import WIDTH
from backend_loop.speech.processes import SpeechProcesses
from shared import keys
from shared.errors import RedisAwayError
from shared.logs import get
from shared.redis import Link

log = get(__name__)

HOLD_MS: Final = 750
"""For so long nobody else listens to what this worker has taken; renewed three times in that."""

PARTIAL_S: Final = 3.0
"""What is said anew before it is said again what somebody seems to say: a short command is understood before."""

REST: Final = 2.0
"""Of what it takes to say it: a slow machine guesses less, so that the last word does not wait for guesses."""

TRIES: Final = 3
AGAIN_S: Final = 0.2


class GoneError(Exception):
    """Nobody waits for it any more, or somebody else listens."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session lies, and for whom this worker listens to it."""

    link: Link
    shard: int
    id: str
    owner: str

    async def run(self, verb: str, *args: str | bytes | int) -> Any:
        """A verb of `listen`; raises `GoneError`."""
        answer = await self.link.run("listen", keys.prefix(self.shard), verb, self.owner, *args)
        if answer == b"GONE":
            raise GoneError
        return answer


class VoiceSession:
    """One that this worker has taken.

    Args:
        place: of the session.
        rate: samples a second. language: of the speaker.
        ears: what listens. ending: the one process that finds the ends of all sessions.
        guessing: held while one of this worker's sessions guesses: the last word of others must not wait for many.
        most_s: how long anybody may speak.
    """

    def __init__(  # noqa: PLR0913  wired in one place
        self,
        place: Place,
        rate: int,
        language: str,
        *,
        ears: Ears,
        ending: SpeechProcesses,
        guessing: asyncio.Lock,
        most_s: float,
    ) -> None:
        """Nothing was heard yet."""
        self._place, self._rate, self._language = place, rate, language
        self._ears, self._ending, self._guessing, self._most_s = ears, ending, guessing, most_s
        self._pcm, self._pieces, self._ended = bytearray(), 0, False
        self._stir, self._news = asyncio.Event(), asyncio.Event()
        self._guessed_at, self._guess = 0, ""
        self._clock = asyncio.get_running_loop().time
        self._rested_at = 0.0
        self._early: tuple[bytes, asyncio.Task[dict[str, Any]]] | None = None

    def stir(self) -> None:
        """It goes on, or is over."""
        self._stir.set()

    async def run(self) -> None:
        """Listen to it to its end; returns early where nobody waits for it any more, or somebody else listens."""
        try:
            async with asyncio.TaskGroup() as group:
                holding = group.create_task(self._hold())
                told = await self._heard(group)
                holding.cancel()
                await self._say(told, final=True)
        except* GoneError:
            pass

    async def _heard(self, group: asyncio.TaskGroup) -> dict[str, Any]:
        """What was said, or why that is not known."""
        try:
            said = await self._listen(group)
        except ServiceRefused as fault:
            return {"problem": "refused", "detail": str(fault)}
        except ServiceUnavailable as fault:
            return {"problem": "unavailable", "detail": str(fault)}
        with contextlib.suppress(RedisAwayError):  # what comes meanwhile is let pass
            await self._place.run("over", self._place.id)
        if self._early is not None and self._early[0] == said:
            return await self._early[1]
        return await self._understand(said)

    async def _hold(self) -> None:
        """Take what is said, and keep everybody else from it."""
        while True:
            self._stir.clear()
            try:
                _, ended, pieces = await self._place.run("pull", HOLD_MS, self._place.id, self._pieces)
            except RedisAwayError:
                pass  # whose link says so in the log; what was said lies there, or has lapsed
            else:
                self._pieces += len(pieces)
                self._pcm += b"".join(pieces)
                self._ended = bool(ended)
                if pieces or ended:
                    self._news.set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HOLD_MS / 3000):
                    await self._stir.wait()

    async def _listen(self, group: asyncio.TaskGroup) -> bytes:
        """Return once somebody has spoken, with what he has said; empty: nobody has."""
        at = 0
        while True:
            await self._news.wait()
            self._news.clear()
            last, upto = self._ended, len(self._pcm)
            heard = await self._feed(at, upto, last=last)
            at = upto
            if heard["over"] or last:
                return self._said(heard["said"])
            if heard["speaking"] and self._ears.guesses:
                self._guess_now(group, self._said(heard["said"]))

    async def _feed(self, at: int, upto: int, *, last: bool) -> dict[str, Any]:
        """Have the child hear more of it; one that has forgotten what was before hears all of it again.

        Raises:
            ServiceUnavailable: it is not known whether that was all, and half a sentence may be another one.
        """
        for _ in range(TRIES):
            order = {"stream": self._place.id, "rate": self._rate, "most_s": self._most_s, "at": at, "last": last}
            try:
                pcm = b64encode(self._pcm[at:upto]).decode()
                heard: dict[str, Any] = await self._ending.ask_for_all("ending_child", pcm=pcm, **order)
            except ServiceRefused as fault:
                if fault.code != LOST:
                    raise
                at = 0
            except ServiceUnavailable as fault:
                log.warning("voice not followed", stream=self._place.id, error=str(fault))
                at = 0
            else:
                return heard
        if not last:
            raise ServiceUnavailable("the end of what is said cannot be found now")
        return {"speaking": False, "over": True, "said": (0.0, upto / WIDTH / self._rate)}

    def _said(self, span: Sequence[float] | None) -> bytes:
        if span is None:
            return b""
        start, end = (round(seconds * self._rate) * WIDTH for seconds in span)
        return bytes(self._pcm[start:end])

    async def _understand(self, said: bytes) -> dict[str, Any]:
        """Have an engine hear it; one that does not answer is asked again."""
        if not said:
            return {"text": "", "heard": "", "confidence": None}
        for n in range(TRIES):
            try:
                return (await self._ears.listen(said, self._rate, self._language))._asdict()
            except ServiceRefused as fault:
                return {"problem": "refused", "detail": str(fault)}
            except ServiceUnavailable as fault:
                why = str(fault)
                await asyncio.sleep(AGAIN_S * n)
        return {"problem": "unavailable", "detail": why}

    def _guess_now(self, group: asyncio.TaskGroup, said: bytes) -> None:
        """Who pauses may have ended: it is understood while that is waited for. Who goes on is told of it by parts."""
        if said:
            if self._early is None or self._early[0] != said:
                self._early = said, group.create_task(self._tell(said))
                self._guessed_at = len(self._pcm)
        elif (
            len(self._pcm) - self._guessed_at >= PARTIAL_S * self._rate * WIDTH
            and self._clock() >= self._rested_at
            and not self._guessing.locked()
        ):
            self._guessed_at = len(self._pcm)
            group.create_task(self._part(bytes(self._pcm)))

    async def _part(self, pcm: bytes) -> None:
        async with self._guessing:
            began = self._clock()
            await self._tell(pcm)
            self._rested_at = self._clock() + REST * (self._clock() - began)

    async def _tell(self, pcm: bytes) -> dict[str, Any]:
        """Say what somebody seems to say."""
        told = await self._understand(pcm)
        text = told.get("text", "")
        if text and text != self._guess:
            self._guess = text
            with contextlib.suppress(RedisAwayError, GoneError):  # what comes at the end counts
                await self._say({"partial": text}, final=False)
        return told

    async def _say(self, told: dict[str, Any], *, final: bool) -> None:
        await self._place.run("say", self._place.id, to_json(told), int(final))
