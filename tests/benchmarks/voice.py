"""What speech costs: whoever types must not feel it, and who speaks wants the lamp to be on."""

import contextlib
import http.client
import json
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_json

from dualloop.home.inventory import furnish
from tests.benchmarks.calm import calm
from tests.benchmarks.client import Client
from tests.benchmarks.figure import Benchmark, Row, Sample, Size, percentile
from tests.benchmarks.latency import URGENT, times
from tests.benchmarks.speaking import Said, lamp_s
from tests.benchmarks.stage import LOCAL, Stage
from tests.home import Home, running_home
from tests.waiting import until

SAID: Final = (Path(__file__).parent.parent / "audio" / "en01-a.wav").read_bytes()
TYPED: Final = to_json({"text": "turn on the living room lights", "locale": "en"})
LAMP: Final = "light.living_room"
SPEAKERS: Final = 4


def _measure(stage: Stage, size: Size) -> dict[str, Sample]:
    many = size.of(300)
    stage.empty()
    furnish(stage.folder / "home.json")
    with (
        # of this measurement alone: with the Redis that is emptied, fences begin anew
        running_home(Path(tempfile.mkdtemp(dir=stage.folder))) as home,
        stage.foreground() as (port, _),
        stage.background(DUALLOOP_HOME_URL=home.url),
    ):
        for type_ in ("test.noop", "assistant.command", "speech.transcribe"):
            stage.serves(port, type_)
        until(lambda: _ask(port, "/v1/commands", TYPED)["result"]["devices"], within=30, what="the home is known")
        _ask(port, "/v1/voice", SAID)  # the engine is loaded
        calm(size.patience_s)
        idle, lamps = _accepts(port, many), [_lamp(home, port) for _ in range(size.of(30))]
        said = Said(SAID)
        ends = [_spoken(home, port, said) for _ in range(2 if size.quick else 10)]
        with _speaking(port) as heard:
            busy = _accepts(port, many)
        if not heard:
            raise RuntimeError("nothing was heard while it was measured")
    spoken, typed = (percentile(taken, 0.5) * 1e3 for taken in zip(*lamps, strict=True))
    samples = {"voice-lamp": Sample(spoken, typed), "voice-stream": Sample(percentile(ends, 0.5) * 1e3, spoken)}
    for share, name in ((0.5, "p50"), (0.95, "p95")):
        samples[f"voice-accept-{name}"] = Sample(percentile(busy, share) * 1e3, percentile(idle, share) * 1e3)
    return samples


def _accepts(port: int, many: int) -> list[float]:
    with Client(port) as client:
        return times(lambda: client.accept(URGENT)[0], many)


def _lamp(home: Home, port: int) -> tuple[float, float]:
    """Seconds from a POST to the answer that the lamp was seen to be on: said, and typed."""
    taken = []
    for path, body in (("/v1/voice", SAID), ("/v1/commands", TYPED)):
        home.hand(LAMP, power="off")
        begun = time.perf_counter()
        told = _ask(port, path, body)
        taken.append(time.perf_counter() - begun)
        if not (told["freshness"] or {}).get("verified") or home.look(LAMP)["value"]["power"] != "on":
            raise RuntimeError(f"the lamp is not on: {told}")
    return taken[0], taken[1]


def _spoken(home: Home, port: int, said: Said) -> float:
    """Seconds from the end of speech to the answer that the lamp was seen to be on."""
    home.hand(LAMP, power="off")
    return lamp_s(port, said)


@contextlib.contextmanager
def _speaking(port: int) -> Iterator[list[str]]:
    """So many speakers, each of whom speaks again as soon as he is answered; what was heard of them."""
    heard, over = list[str](), threading.Event()

    def speak() -> None:
        while not over.is_set():
            heard.append(_ask(port, "/v1/voice?deadline_s=120", SAID)["result"]["heard"])

    speakers = [threading.Thread(target=speak) for _ in range(SPEAKERS)]
    for speaker in speakers:
        speaker.start()
    try:
        until(lambda: heard, within=60, what="they are heard")
        yield heard
    finally:
        over.set()
        for speaker in speakers:
            speaker.join()


def _ask(port: int, path: str, body: bytes) -> Any:
    """The result document."""
    connection = http.client.HTTPConnection(LOCAL, port, timeout=60)
    with contextlib.closing(connection):
        kind = "application/json" if path == "/v1/commands" else "audio/wav"
        connection.request("POST", path, body, {"content-type": kind, "prefer": "wait=30"})
        response = connection.getresponse()
        told = response.read()
    if response.status != 200:
        raise RuntimeError(f"POST {path} answered {response.status}: {told[:300]!r}")
    return json.loads(told)


VOICE = Benchmark(
    "voice",
    (
        Row("voice-accept-p50", f"accept while {SPEAKERS} speak, p50", "ms", "idle"),
        Row("voice-accept-p95", f"accept while {SPEAKERS} speak, p95", "ms", "idle"),
        Row("voice-lamp", "recording to lamp seen on, p50", "ms", "typed"),
        Row("voice-stream", "end of speech to lamp seen on, p50", "ms", "recording"),
    ),
    _measure,
)
