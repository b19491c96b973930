"""The processes that listen: warm, replaced when they die, ended when nobody waits; the event loop never notices."""

import asyncio
import os
import signal
import time
import wave
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.speech.engine import RATE, WIDTH
from backend_loop.speech.processes import SpeechProcesses
from backend_loop.speech.sphinx import Sphinx
from backend_loop.speech.whisper import Whisper
from shared.home import Area, Inventory
from shared.settings import Settings
from tests import ears
from tests.processes.proc import gone
from tests.speech_scores import AUDIO, HOME
from tests.waiting import eventually

LIMITS = {"max_bytes": 4_000_000, "max_s": 30.0}


@pytest.fixture
async def one() -> AsyncIterator[SpeechProcesses]:
    """A place for one process only."""
    processes = SpeechProcesses(Settings(speech_processes=1))
    yield processes
    await processes.close()


def speech(name: str = "en05-a") -> bytes:
    with wave.open(str(AUDIO / f"{name}.wav")) as file:
        pcm: bytes = file.readframes(file.getnframes())
    return pcm


async def sound(processes: SpeechProcesses, data: bytes, rate: int | None = None) -> dict[str, Any]:
    raw = None if rate is None else (rate, 1)
    answer: dict[str, Any] = await processes.ask("recording_child", data=b64encode(data).decode(), raw=raw, **LIMITS)
    return answer


def pid_of(processes: SpeechProcesses) -> int:
    """The one process there is."""
    (child,) = processes._children._all
    return child._process.pid


async def test_a_process_is_kept_warm_and_cuts_a_recording_to_what_is_said(one: SpeechProcesses) -> None:
    silence = bytes(2 * RATE)
    first = await sound(one, silence + speech() + silence, RATE)
    pid = pid_of(one)
    said = b64decode(first["pcm"])
    assert first["audio_ms"] == round(len(silence + speech() + silence) / WIDTH / RATE * 1000)
    assert 0.5 * len(speech()) < len(said) < len(speech())
    assert said in silence + speech() + silence
    assert (await sound(one, silence, RATE))["pcm"] == ""
    assert pid_of(one) == pid


async def test_what_it_refuses_comes_with_its_code_and_what_it_cannot_do_is_said(one: SpeechProcesses) -> None:
    with pytest.raises(ServiceRefused, match="no WAV, FLAC or OGG") as refused:
        await sound(one, b"hello")
    assert refused.value.code == "unreadable"
    with pytest.raises(ServiceUnavailable, match="KeyError"):
        await one.ask("recording_child", data="")
    with pytest.raises(ServiceRefused, match="ModuleNotFoundError"):
        await one.ask("deafness")
    assert (await sound(one, speech(), RATE))["pcm"], "and all the while it is the same process's turn"


@ears.wanted
async def test_a_process_that_dies_costs_one_utterance(one: SpeechProcesses) -> None:
    await sound(one, speech(), RATE)
    pid = pid_of(one)
    asking = asyncio.ensure_future(listened(one, speech() * 4))
    await busy(pid)
    os.kill(pid, signal.SIGSEGV)  # as a decoder does on bytes that it does not understand
    with pytest.raises(ServiceUnavailable, match="ended by SIGSEGV"):
        await asking
    assert (await sound(one, speech(), RATE))["pcm"]
    assert pid_of(one) != pid


async def listened(processes: SpeechProcesses, pcm: bytes) -> str:
    return (await Sphinx(processes, lambda: HOME).transcribe(pcm, RATE, "en")).text


async def busy(pid: int) -> None:
    """Wait until a process computes."""

    def ticks() -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    await eventually(lambda: ticks() > before + 5, what="the process computes")


@ears.wanted
async def test_who_waits_no_longer_ends_it_and_the_next_one_is_listened_to(one: SpeechProcesses) -> None:
    await sound(one, speech(), RATE)
    pid = pid_of(one)
    asking = asyncio.ensure_future(listened(one, speech() * 6))
    await busy(pid)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(lambda: gone(pid), what="the process is ended")
    assert await listened(one, speech()) == "what is the temperature in the bedroom"


async def test_who_leaves_amid_his_speech_leaves_the_others_their_process_and_nothing_behind_its_end(
    one: SpeechProcesses,
) -> None:
    piece, order = bytes(640), {"rate": RATE, "most_s": 30.0, "last": False}

    def feed(stream: str, at: int) -> asyncio.Task[Any]:
        pcm = b64encode(piece).decode()
        return asyncio.ensure_future(one.ask_for_all("ending_child", stream=stream, at=at, pcm=pcm, **order))

    async def leave(*streams: str) -> None:
        """While the process is at the first of them, and the rest wait for their turn."""
        os.kill(pid, signal.SIGSTOP)
        asking = [feed(stream, 0) for stream in streams]
        await eventually(one._children._places.locked, what="the process is asked")
        for leaving in asking:
            leaving.cancel()
        await asyncio.wait(asking)
        assert all(leaving.cancelled() for leaving in asking)

    await feed("who stays", 0)
    pid = pid_of(one)
    await leave("who goes")
    os.kill(pid, signal.SIGCONT)
    assert not (await feed("who stays", len(piece)))["over"], "it knows what it has heard"
    assert pid_of(one) == pid
    await leave("who goes", "another", "a third")
    await one.close()
    assert (one._children._all, one._shared, gone(pid)) == (set(), set(), True)


@ears.wanted
async def test_the_event_loop_goes_on_while_it_listens(one: SpeechProcesses) -> None:
    await listened(one, speech())
    asking = asyncio.ensure_future(listened(one, speech() * 4))
    began = last = time.monotonic()
    beats, longest = 0, 0.0
    while not asking.done():
        await asyncio.sleep(0)
        now = time.monotonic()
        beats, longest, last = beats + 1, max(longest, now - last), now
    await asking
    assert beats > 100
    assert longest < (last - began) / 3, "the loop was held up"


@ears.wanted
async def test_a_change_of_the_home_is_heard_at_once(one: SpeechProcesses) -> None:
    homes = [HOME, Inventory(areas=[Area(id="den", names={"en": ["den"]})])]
    engine = Sphinx(one, lambda: homes[0])
    assert (await engine.transcribe(speech(), RATE, "en")).text == "what is the temperature in the bedroom"
    homes.pop(0)
    assert "bedroom" not in (await engine.transcribe(speech(), RATE, "en")).text


async def test_engines_refuse_what_they_do_not_know(one: SpeechProcesses, tmp_path: Path) -> None:
    with pytest.raises(ServiceRefused, match="English only, not zh-CN: set DUALLOOP_WYOMING_URL") as refused:
        await Sphinx(one, lambda: HOME).transcribe(speech(), RATE, "zh-CN")
    assert refused.value.code == "language_not_spoken"
    with pytest.raises(ServiceRefused, match=r"not installed|no weights"):
        await Whisper(one, tmp_path).transcribe(speech(), RATE, "en")
