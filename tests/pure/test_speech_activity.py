"""When an utterance begins and ends: on rows of likelihoods, and on real speech."""

import wave
from collections.abc import Iterable
from pathlib import Path

import pytest

from backend_loop.speech.activity import FRAME, FRAME_BYTES, FRAME_S, Ear, EndPointer, Patience, Span, speech_in
from backend_loop.speech.engine import RATE

AUDIO = Path(__file__).parent.parent / "audio"
QUICK = Patience(end_s=3 * FRAME_S, nobody_s=6 * FRAME_S, most_s=20 * FRAME_S, begin_s=2 * FRAME_S, margin_s=FRAME_S)


def fed(likelihoods: Iterable[float], patience: Patience = QUICK) -> tuple[EndPointer, int]:
    """Who was fed until it was over, and with how many frames."""
    pointer, count = EndPointer(patience), 0
    for likelihood in likelihoods:
        count += 1
        if pointer.feed(likelihood):
            break
    return pointer, count


def test_an_utterance_is_over_when_it_was_silent_for_so_long() -> None:
    pointer, count = fed([0, 0, 0.9, 0.9, 0.9, 0, 0, 0, 0.9])
    assert count == 8, "three silent frames end it, whatever comes then"
    assert pointer.span == Span(1 * FRAME, 6 * FRAME)
    assert not pointer.feed(0.9) or pointer.span == Span(1 * FRAME, 6 * FRAME)


def test_a_pause_for_breath_ends_nothing() -> None:
    pointer, count = fed([0.9, 0.9, 0, 0, 0.9, 0.9, 0, 0, 0])
    assert (count, pointer.span) == (9, Span(0, 7 * FRAME))


def test_a_click_is_no_beginning() -> None:
    pointer, count = fed([0, 0.9, 0, 0, 0.9, 0, 0.9, 0.9])
    assert (count, pointer.over, pointer.span) == (6, True, None), "nobody spoke for so long"


def test_between_voice_and_silence_it_is_as_before() -> None:
    assert fed([0.9, 0.9, 0.4, 0.4, 0.4, 0.4, 0, 0, 0])[1] == 9
    assert fed([0.4] * 6)[0].span is None


def test_nobody_may_speak_for_ever() -> None:
    pointer, count = fed([0.9] * 100)
    assert count == 20
    assert pointer.span == Span(0, 20 * FRAME, cut=True)


def test_a_stream_that_ends_early_has_what_was_said_until_then() -> None:
    pointer, _ = fed([0, 0.9, 0.9])
    assert pointer.speaking
    assert pointer.close() == Span(0, 3 * FRAME)
    assert fed([0, 0.9])[0].close() is None


@pytest.mark.parametrize("name", ["en01-a", "en06-b", "zh01-a", "zh03-a"])
def test_real_speech_is_ended_after_it_and_before_long(name: str) -> None:
    with wave.open(str(AUDIO / f"{name}.wav")) as file:
        pcm = file.readframes(file.getnframes())
    whole = speech_in(pcm)
    assert whole is not None
    ear, pointer, heard = Ear(), EndPointer(), 0
    for at in range(0, len(pcm) + 2 * RATE, 1_000):  # pieces as a network cuts them, and then a silent room
        piece = (pcm[at : at + 1_000]).ljust(1_000, b"\0")
        for likelihood in ear.feed(piece):
            heard += 1
            if pointer.feed(likelihood):
                break
        if pointer.over:
            break
    assert pointer.span is not None
    assert pointer.span.start == whole.start
    assert pointer.span.end <= whole.end, "a pause within the sentence is shorter than the patience"
    assert pointer.span.end > whole.end - 0.1 * RATE
    assert heard * FRAME_S * RATE <= pointer.span.end + 1.0 * RATE


def test_there_is_no_speech_in_silence_or_noise() -> None:
    assert speech_in(bytes(2 * RATE)) is None
    assert speech_in(b"") is None
    hum = b"".join((300 * (n // 80 % 2)).to_bytes(2, "little") for n in range(RATE))
    assert speech_in(hum) is None


def test_pieces_of_any_size_make_the_same_frames() -> None:
    with wave.open(str(AUDIO / "en07-a.wav")) as file:
        pcm = file.readframes(RATE)
    whole, pieces = Ear(), Ear()
    parts = [pcm[at : at + 777] for at in range(0, len(pcm), 777)]
    one = list(whole.feed(pcm))
    assert len(one) == len(pcm) // FRAME_BYTES
    assert [likelihood for part in parts for likelihood in pieces.feed(part)] == pytest.approx(one)
