"""A speech server as homes have it: the `wyoming` package's own, in a process of its own. It hears what it is told to.

``python -m tests.wyoming_server`` prints its port. The language says how it behaves; what it "hears" tells what it got.
"""

import asyncio
import json
import sys
from typing import Any

from wyoming.asr import Transcribe, Transcript, TranscriptChunk, TranscriptStart, TranscriptStop
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event
from wyoming.server import AsyncEventHandler, AsyncTcpServer


class Server(AsyncEventHandler):
    """One connection."""

    asked = Transcribe()
    form: AudioStart | None = None
    sound = b""

    async def handle_event(self, event: Event) -> bool:
        """One event; whether another is taken."""
        if Transcribe.is_type(event.type):
            self.asked = Transcribe.from_event(event)
        elif AudioStart.is_type(event.type):
            self.form = AudioStart.from_event(event)
        elif AudioChunk.is_type(event.type):
            self.sound += AudioChunk.from_event(event).audio
        elif AudioStop.is_type(event.type):
            await self._hear()
            return False
        return True

    async def _hear(self) -> None:
        assert self.form is not None
        got: dict[str, Any] = {"bytes": len(self.sound), "rate": self.form.rate, "names": self.asked.transcript_names}
        match self.asked.language:
            case "silent":
                return
            case "hang":
                await self.reader.read()
            case "error":
                await self.write_event(Error(text="the model is not loaded", code="x").event())
            case "number":
                await self.write_event(Event("transcript", {"text": 7}))
            case "garbage":
                self.writer.write(b"[1, 2]\n")
            case "half":
                self.writer.write(b'{"type": "transcript"')
            case "huge":
                self.writer.write(b'{"type": "transcript", "data_length": 2000000000}\n')
            case "chatter":
                self.writer.write(b'{"type": "pong"}\n' * 20_000)
            case "parts":
                await self.write_event(TranscriptStart(language="en").event())
                await self.write_event(TranscriptChunk(text="turn on ").event())
                await self.write_event(TranscriptChunk(text="the light").event())
                await self.write_event(Transcript("turn on the light", language="en").event())
                await self.write_event(TranscriptStop().event())
            case _:
                await self.write_event(Transcript(f" {json.dumps(got)} ", language=self.asked.language).event())


async def main() -> None:
    """Serve until killed."""
    server = AsyncTcpServer("127.0.0.1", 0)
    await server.start(Server)
    assert isinstance(server._server, asyncio.Server)
    sys.stdout.write(f"{server._server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
