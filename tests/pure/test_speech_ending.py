"""The end of what is said, found as it comes: in whatever pieces, at whatever rate, and anew where it was forgotten."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import soxr  # type: ignore[import-untyped]

from backend_loop.speech import ending_child
from backend_loop.speech.activity import EndPointer, Patience, speech_in
from backend_loop.speech.engine import RATE, WIDTH
from backend_loop.speech.refusal import Refusal
from tests.stories.spoken import samples, silence

SAID = samples("en01-a")


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    ending_child._STREAMS.clear()


def feed(pcm: bytes, at: int = 0, *, stream: str = "s", rate: int = RATE, last: bool = False) -> dict[str, Any]:
    order = {"stream": stream, "rate": rate, "most_s": 10.0, "at": at, "last": last}
    return ending_child.answer({"pcm": b64encode(pcm).decode(), **order})


def through(pcm: bytes, size: int, rate: int = RATE, stream: str = "s") -> list[dict[str, Any]]:
    """All that was told, up to the end."""
    told = []
    for at in range(0, len(pcm), size):
        told.append(feed(pcm[at : at + size], at, rate=rate, stream=stream))
        if told[-1]["over"]:
            break
    return told


def whole(pcm: bytes = SAID) -> tuple[float, float]:
    span = speech_in(pcm)
    assert span is not None
    return span.start / RATE, span.end / RATE


@pytest.mark.parametrize("size", [640, 1_280, 9_999 // 2 * 2])
def test_the_end_is_the_same_in_whatever_pieces_it_comes(size: int) -> None:
    told = through(SAID + silence(1), size)
    assert told[-1]["over"]
    assert told[-1]["said"] == pytest.approx(whole(SAID + silence(1)), abs=0.04)


def test_who_pauses_is_taken_at_the_word_that_he_has_said_if_he_does_not_go_on() -> None:
    told = through(SAID + silence(1), 640)
    paused = [one["said"] for one in told[:-1] if one["said"] is not None]
    assert paused[-1] == told[-1]["said"]
    assert [one["speaking"] for one in told[-3:]] == [True, True, False]


def test_who_goes_on_has_not_ended() -> None:
    once = SAID[: round(whole()[1] * RATE) * WIDTH] + silence(0.1)
    told = through(once + SAID + silence(1), 640)
    assert any(one["said"] for one in told[: len(once) // 640]), "it was a pause"
    assert told[-1]["said"][1] > len(once) / WIDTH / RATE + 1


def test_no_more_to_come_is_an_end_too() -> None:
    feed(SAID)
    end = feed(b"", len(SAID), last=True)
    assert (end["over"], end["said"]) == (True, pytest.approx(whole(), abs=0.1))


def test_nobody_who_speaks_is_an_end_without_words() -> None:
    told = through(silence(6), 640)
    assert (told[-1]["over"], told[-1]["said"]) == (True, None)
    assert len(told) * 640 / WIDTH / RATE == pytest.approx(5, abs=0.1)


def test_at_another_rate_it_ends_at_the_same_second() -> None:
    pcm = soxr.resample(np.frombuffer(SAID + silence(1), "<i2"), RATE, 44_100).astype("<i2").tobytes()
    told = through(pcm, 44_100 // 25 * 2, 44_100)
    assert told[-1]["said"] == pytest.approx(whole(), abs=0.1)


def test_two_who_speak_at_once_are_heard_apart() -> None:
    for at in range(0, len(SAID), 6_400):
        feed(SAID[at : at + 6_400], at, stream="a")
        feed(silence(0.2)[: len(SAID[at : at + 6_400])], at, stream="b")
    assert feed(b"", len(SAID), stream="a", last=True)["said"] is not None
    assert feed(b"", len(SAID), stream="b", last=True)["said"] is None


def test_a_stream_that_was_forgotten_is_asked_for_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending_child, "MOST", 1)
    feed(SAID[:6_400], stream="a")
    feed(SAID[:6_400], stream="b")
    for stream, at in (("a", 6_400), ("b", 3_200)):
        with pytest.raises(Refusal) as lost:
            feed(SAID[6_400:], at, stream=stream)
        assert lost.value.code == ending_child.LOST
    assert feed(SAID, stream="a", last=True)["said"] is not None


def test_what_has_ended_is_not_remembered() -> None:
    feed(SAID, last=True)
    assert not ending_child._STREAMS


def test_a_pause_is_told_once_it_could_not_be_longer_speech() -> None:
    pointer = EndPointer(Patience(begin_s=0.032, margin_s=0.064, end_s=0.32))
    for likelihood in (0.0, 0.9, 0.9, 0.1):
        pointer.feed(likelihood)
        assert pointer.pause is None
    pointer.feed(0.1)
    early = pointer.pause
    while not pointer.feed(0.1):
        assert pointer.pause == early
    assert (pointer.span, pointer.pause) == (early, None)
