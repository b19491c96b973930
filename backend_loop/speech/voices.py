"""The voice sessions that one worker listens to: taken as soon as somebody speaks, given back where it stops."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import from_json

from backend_loop.sessions import Sessions
from backend_loop.speech.ears import Ears
from backend_loop.speech.processes import SpeechProcesses
from backend_loop.speech.voice_session import HOLD_MS, Place, VoiceSession
from shared import keys
from shared.envelope import TENANT
from shared.errors import RedisAwayError
from shared.fleet import Fleet
from shared.home import Inventory
from shared.logs import get
from shared.loop import After, Answer, Idle, Loop
from shared.redis import Link
from shared.settings import Settings

log = get(__name__)

LOOK_S: Final = 5.0
"""Who waits for somebody to listen says so again and again: no poll has to be fast."""

AGAIN_S: Final = 0.25
SPARE_S: Final = 1.0
"""What engines are given is shorter by so much than what they listen to: silence around speech is part of it."""


class Voices:
    """Those of one worker; opened by its loop, closed by its owner.

    Args:
        settings: how many at a time, and how long anybody may speak.
        redis_url: where they are.
        worker: its instance id.
        ears: what listens.
        home: the inventory as it is now.
    """

    def __init__(
        self, settings: Settings, redis_url: str, worker: str, ears: Ears, home: Callable[[], Inventory]
    ) -> None:
        """Nothing is opened yet."""
        self._settings, self._worker, self._ears, self._home = settings, worker, ears, home
        self._ending = SpeechProcesses(settings.model_copy(update={"speech_processes": 1}))
        self._link = Link(redis_url, timeout_s=settings.redis_timeout_s)
        channels = [make for n in range(settings.shards) for make in (keys.speaking(n), keys.ears(n, worker))]
        self._speaking = {keys.speaking(n).encode() for n in range(settings.shards)}
        self._hints = Link(
            redis_url, timeout_s=settings.redis_timeout_s, channels=tuple(channels), on_message=self._hear
        )
        self._speakers = Sessions(self._link, Fleet(settings.shards), settings)
        self._open, self._guessing = False, asyncio.Lock()
        self._sessions: dict[str, VoiceSession] = {}
        self._shards: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.loop = Loop(
            "voice",
            self._take,
            trigger="woken",
            interval_s=LOOK_S,
            describe="takes what people are saying, and listens until they have ended",
            output="what was understood, for their foregrounds",
            on_failure="another worker takes them",
            vital=False,
        )

    async def close(self) -> None:
        """Listen no more; whoever else listens goes on."""
        held = dict(self._shards)
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for shard in set(held.values()):
            ids = [id_ for id_, where in held.items() if where == shard]
            try:
                await self._link.run("listen", keys.prefix(shard), "quit", self._worker, *ids)
            except RedisAwayError as error:
                log.warning("voices kept, their hold will lapse", sessions=len(ids), error=str(error))
        await self._ending.close()
        if self._open:
            await self._hints.close()
            await self._link.close()

    def _hear(self, channel: bytes, message: bytes) -> None:
        if channel in self._speaking:
            self.loop.wake()
        elif (session := self._sessions.get(message.decode())) is not None:
            session.stir()

    async def _take(self) -> Answer:
        if not self._open:
            self._open = True
            await self._link.open()
            await self._hints.open()
        try:
            for shard in range(self._settings.shards):
                free = self._settings.voice_sessions - len(self._tasks)
                if free > 0:
                    item = ("take", self._worker, HOLD_MS, free)
                    taken = await self._link.run("listen", keys.prefix(shard), *item)
                    for id_, head in zip(taken[::2], taken[1::2], strict=True):
                        self._begin(shard, id_.decode(), from_json(head))
        except RedisAwayError:
            return After(AGAIN_S)  # whose link says so in the log
        return Idle()

    def _begin(self, shard: int, id_: str, head: Mapping[str, Any]) -> None:
        if id_ in self._shards:
            return  # its hold had lapsed, and nobody else came: it goes on
        self._shards[id_] = shard
        task = asyncio.get_running_loop().create_task(self._listen(shard, id_, head), name=f"voice {id_}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _listen(self, shard: int, id_: str, head: Mapping[str, Any]) -> None:
        try:
            session = self._sessions[id_] = VoiceSession(
                Place(self._link, shard, id_, self._worker),
                head["rate"],
                await self._language(head["locale"], head["session"]),
                ears=self._ears,
                ending=self._ending,
                guessing=self._guessing,
                most_s=self._settings.speech_s - SPARE_S,
            )
            await session.run()
        except* RedisAwayError as errors:
            log.warning("voice not told", stream=id_, error=str(errors.exceptions[0]))
        except* Exception:
            log.exception("voice failed", stream=id_)
        finally:
            self._sessions.pop(id_, None)
            del self._shards[id_]
            self.loop.wake()

    async def _language(self, locale: str | None, session: str | None) -> str:
        """Of who speaks: as he says, as he has said in his session, or as it is spoken in this home."""
        if locale is None and session is not None:
            met = await self._speakers.meet(TENANT, session, "", area=None, language=None)
            locale = met.language
        return locale or next(iter(self._home().languages), "en")
