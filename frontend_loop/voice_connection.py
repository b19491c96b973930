"""A socket that is spoken to: as others, with binary frames of what is said, one utterance after another."""

from collections.abc import Awaitable
from typing import Any, Final

from starlette.types import Message, Receive, Send

from frontend_loop import frames
from frontend_loop.connection import Connection, Parts
from frontend_loop.frames import BadFrameError, Frame, Ref
from frontend_loop.reading import read_as
from frontend_loop.voice_sessions import Speaker, VoiceSession, VoiceSessions, unheard
from shared.errors import Problem, RedisAwayError, unavailable
from shared.sessions import TYPE

DEADLINE_S: Final = 30.0
"""Who has spoken waits no longer for an answer."""

TOO_BIG: Final = 1009
LONGEST: Final = 1_000
"""Characters of an utterance."""


class VoiceConnection(Connection):
    """Serves one accepted socket until either side ends it.

    Bytes begin an utterance, unless the last one is over: then a start has to, since what comes after the end of
    somebody's words is his silence.
    """

    path = "/v1/voice"
    ops = ("start", "end", *frames.OPS)

    def __init__(self, parts: Parts, voices: VoiceSessions, speaker: Speaker, traceparent: str | None) -> None:
        """`speaker`: what holds for utterances whose start does not say otherwise."""
        super().__init__(parts, traceparent)
        self._voices, self._speaker = voices, speaker
        self._now: VoiceSession | None = None
        self._fresh = True
        self._said_ref: Ref = None
        self._odd = b""

    async def run(self, receive: Receive, send: Send) -> None:
        """Serve it; nothing of it is left when this returns."""
        try:
            await super().run(receive, send)
        finally:
            self._over()

    async def drain(self) -> None:
        """Say that this process goes; what was said to its end is carried on, all else is to be said again."""
        if self._now is not None and not self._now.ended:
            self._fail(Problem("draining", "say it again to another foreground", retryable=True, retry_after=1))
        await super().drain()

    async def _take(self, message: Message) -> None:
        """What is said is taken in its order, all else beside it."""
        if (samples := message.get("bytes")) is not None:
            await self._try(self._hear(samples))
            return
        try:
            frame = frames.read_frame(message.get("text"), self._settings.max_depth, self.ops)
        except BadFrameError as bad:
            self._refuse(bad.ref, bad.problem)
            return
        if frame.op == "start":
            await self._start(frame)
        elif frame.op == "end":
            await self._end(frame)
        else:
            await self._answer(frame)

    async def _start(self, frame: Frame) -> None:
        if self._now is not None:
            self._refuse(frame.ref, Problem("bad_frame", "somebody speaks already: send an end before"))
            return
        said = {name: frame.fields[name] for name in Speaker.model_fields if frame.fields.get(name) is not None}
        try:
            speaker = read_as(Speaker, self._speaker.model_dump() | said)
        except Problem as problem:
            self._refuse(frame.ref, problem)
            return
        await self._try(self._open(speaker, frame.ref))

    async def _end(self, frame: Frame) -> None:
        if self._now is None:
            if self._fresh:
                self._refuse(frame.ref, Problem("bad_frame", "nothing was said"))
            return  # it was over before: nobody has to wait for that to be known
        await self._try(self._now.end())

    async def _open(self, speaker: Speaker, ref: Ref) -> None:
        self._fresh, self._odd, self._said_ref = False, b"", ref
        session = self._now = await self._voices.open(speaker)
        await self._begin(self._follow(session, ref))

    async def _hear(self, samples: bytes) -> None:
        if self._now is None:
            if not self._fresh:
                return
            await self._open(self._speaker, None)
        if self._now is None or self._now.ended:
            return
        samples = self._odd + samples  # a frame may end amid a sample
        whole = len(samples) - len(samples) % 2
        self._odd = samples[whole:]
        if whole:
            await self._now.push(samples[:whole])

    async def _try(self, work: Awaitable[None]) -> None:
        """Do this; an utterance that cannot be taken in is over."""
        try:
            await work
        except Problem as problem:
            self._fail(problem)
        except RedisAwayError as error:
            self._fail(unavailable(str(error)))

    def _fail(self, problem: Problem) -> None:
        self._refuse(self._said_ref, problem)
        self._over()
        if problem.code == "too_large":
            self._close(TOO_BIG, problem.detail)

    def _over(self) -> None:
        if (session := self._now) is not None:
            self._now = None
            self._voices.leave(session)

    async def _follow(self, session: VoiceSession, ref: Ref) -> None:
        await self._guarded(ref, "voice", self._carry_on(session, ref))

    async def _carry_on(self, session: VoiceSession, ref: Ref) -> None:
        """Tell what is understood, then have it done like any command."""
        try:
            while "partial" in (told := await session.next()):
                if session is self._now:
                    self._send(frames.partial(ref, told["partial"]))
        except (Problem, RedisAwayError):
            if session is not self._now:
                return  # it has failed before, and that was said
            self._over()
            raise
        if session is not self._now:
            return
        self._over()
        command = command_of(told, session.speaker)
        self._send(frames.final(ref, told))
        await self._submit(ref, command, "voice")


def command_of(told: dict[str, Any], speaker: Speaker) -> dict[str, Any]:
    """The command that was spoken.

    Raises:
        Problem: there is none: why nobody could listen, or that nothing was heard.
    """
    if "problem" in told:
        if told["problem"] == "unavailable":
            raise unheard(told["detail"])
        raise Problem("speech_refused", told["detail"])
    if not told["text"].strip():
        raise Problem("nothing_heard", "nothing was heard that can be understood: say it again")
    text = told["text"][:LONGEST]
    payload: dict[str, Any] = {"text": text, "speech": told | {"text": text}}
    if speaker.locale is not None:
        payload["locale"] = speaker.locale
    command = {"type": TYPE, "payload": payload, "deadline_s": DEADLINE_S}
    said = {"area": speaker.area, "session": speaker.session}
    return command | {name: value for name, value in said.items() if value is not None}
