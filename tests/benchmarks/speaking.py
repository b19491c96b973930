"""Somebody speaks into a socket, as fast as people do: how long after his last sound the lamp was seen to be on."""

import io
import json
import time
import wave
from typing import Final

from websockets.sync.client import connect
from websockets.sync.connection import Connection

from backend_loop.speech.activity import Patience, speech_in
from backend_loop.speech.engine import RATE, WIDTH
from tests.benchmarks.stage import LOCAL

SLICE_S: Final = 0.04
LONGEST_S: Final = 15.0
"""Of silence after it, if nobody ends it."""


class Said:
    """A recording, and when its speech ends."""

    def __init__(self, recording: bytes) -> None:
        """From a WAV file at the rate that engines listen to."""
        with wave.open(io.BytesIO(recording)) as file:
            pcm = file.readframes(file.getnframes())
        span = speech_in(pcm)
        if span is None:
            raise ValueError("nobody speaks in this recording")
        self.end_s = span.end / RATE - Patience().margin_s
        self.pcm = pcm[: round(self.end_s * RATE) * WIDTH]


def lamp_s(port: int, said: Said) -> float:
    """Seconds from the end of the speech to the answer that was verified; the end is found by voice activity."""
    with connect(f"ws://{LOCAL}:{port}/v1/voice?locale=en", proxy=None) as socket:
        begun = time.perf_counter()
        size = round(SLICE_S * RATE) * WIDTH
        pcm = said.pcm + bytes(round(LONGEST_S * RATE) * WIDTH)
        for n, at in enumerate(range(0, len(pcm), size)):
            time.sleep(max(0.0, begun + n * SLICE_S - time.perf_counter()))
            socket.send(pcm[at : at + size])
            if (taken := _answered(socket, 0)) is not None:
                return taken - begun - said.end_s
        if (taken := _answered(socket, LONGEST_S)) is not None:
            return taken - begun - said.end_s
    raise RuntimeError("nobody has answered")


def _answered(socket: Connection, within_s: float) -> float | None:
    """When the result came, if it has come."""
    while True:
        try:
            frame = json.loads(socket.recv(within_s))
        except TimeoutError:
            return None
        if frame["op"] == "error":
            raise RuntimeError(f"it was not understood: {frame}")
        if frame["op"] == "result":
            if not frame["freshness"]["verified"]:
                raise RuntimeError(f"the lamp is not on: {frame}")
            return time.perf_counter()
