"""Foreign audio: what is read, and what is refused with a sentence."""

import io
import struct
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile  # type: ignore[import-untyped]

from backend_loop.speech.audio import Raw, decode
from backend_loop.speech.engine import RATE
from backend_loop.speech.refusal import Refusal
from shared.audio import kind_of

AUDIO = Path(__file__).parent.parent / "audio"
TONE_HZ = 440


def tone(rate: int, seconds: float = 1.0, channels: int = 1) -> Any:
    at = np.arange(int(rate * seconds)) / rate
    return np.repeat((0.5 * np.sin(2 * np.pi * TONE_HZ * at))[:, None], channels, axis=1).astype(np.float32)


def file(rate: int, kind: str, subtype: str, channels: int = 1, sound: Any = None) -> bytes:
    out = io.BytesIO()
    soundfile.write(out, tone(rate, channels=channels) if sound is None else sound, rate, format=kind, subtype=subtype)
    return out.getvalue()


def read(data: bytes, raw: Raw | None = None, *, max_bytes: int = 4_000_000, max_s: float = 30.0) -> Any:
    return np.frombuffer(decode(data, raw, max_bytes=max_bytes, max_s=max_s), "<i2")


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(
    ("kind", "subtype", "rate"),
    [
        ("WAV", "PCM_16", 44_100),
        ("WAV", "PCM_24", 48_000),
        ("WAV", "PCM_U8", 8_000),
        ("WAV", "FLOAT", 16_000),
        ("WAVEX", "PCM_16", 22_050),
        ("FLAC", "PCM_16", 44_100),
        ("OGG", "VORBIS", 44_100),
        ("OGG", "OPUS", 48_000),  # what telephones and browsers record
    ],
)
def test_a_recording_of_any_form_becomes_the_same_sound(kind: str, subtype: str, rate: int, channels: int) -> None:
    samples = read(file(rate, kind, subtype, channels))
    assert len(samples) == pytest.approx(RATE, abs=RATE // 50)
    loudest = np.argmax(np.abs(np.fft.rfft(samples[: RATE * 9 // 10].astype(float)))) / 0.9
    assert loudest == pytest.approx(TONE_HZ, abs=2)
    assert np.abs(samples).max() == pytest.approx(0.5 * 32_767, rel=0.15)


def test_what_is_in_form_already_comes_back_bit_for_bit() -> None:
    data = (AUDIO / "en01-a.wav").read_bytes()
    with wave.open(io.BytesIO(data)) as inside:
        pcm = inside.readframes(inside.getnframes())
    assert decode(data, None, max_bytes=len(data), max_s=30) == pcm
    assert decode(pcm, Raw(), max_bytes=len(pcm), max_s=30) == pcm


def test_samples_without_a_header_are_read_as_it_is_said() -> None:
    two = (tone(8_000, channels=2) * 32_767).astype("<i2").tobytes()
    samples = read(two + b"\1", Raw(8_000, 2))  # half a sample more, as a cut stream has
    assert len(samples) == pytest.approx(RATE, abs=8)


def test_a_stream_whose_header_promises_more_is_read_as_far_as_it_goes() -> None:
    data = bytearray(file(16_000, "WAV", "PCM_16"))
    data[4:8] = data[40:44] = struct.pack("<I", 0xFFFF_FFFF)  # what recorders write who cannot seek
    assert len(read(bytes(data))) == RATE
    assert len(read(bytes(data[:-8_000]))) == RATE - 4_000


@pytest.mark.parametrize("riff", [0, 36, 0xFFFF_FFFF])
def test_a_wav_whose_writer_could_not_go_back_is_read_to_its_end(riff: int) -> None:
    data = bytearray(file(16_000, "WAV", "PCM_16"))
    data[4:8], data[40:44] = struct.pack("<I", riff), bytes(4)
    assert len(read(bytes(data))) == RATE
    more = data[:36] + b"LIST" + struct.pack("<I", 5) + b"INFO\0\0" + data[36:]  # a chunk of odd length before it
    assert len(read(bytes(more))) == RATE


@pytest.mark.parametrize("seconds", [0.5, 32_768 / RATE, 3.0])
def test_a_flac_stream_is_read_to_its_end(seconds: float) -> None:
    data = bytearray(file(RATE, "FLAC", "PCM_16", sound=tone(RATE, seconds)))
    data[21] &= 0xF0  # how many samples it has, of which a pipe's writer knows nothing
    data[22:26] = bytes(4)
    assert len(read(bytes(data))) == round(seconds * RATE)


def test_a_wav_without_sound_has_none_whatever_stands_behind_it() -> None:
    data = bytearray(file(16_000, "WAV", "PCM_16", sound=np.zeros(0)) + b"LIST" + struct.pack("<I", 400) + bytes(400))
    data[4:8] = struct.pack("<I", len(data) - 8)
    with pytest.raises(Refusal, match="no audio in it"):
        read(bytes(data))


@pytest.mark.parametrize(
    ("data", "raw", "code"),
    [
        (b"", None, "empty"),
        (b"\0" * 5_000_000, Raw(), "too_large"),
        (b"hello, turn on the light", None, "unreadable"),
        (b"ID3\4" + bytes(400), None, "unreadable"),
        (b"RIFF\xff\xff\xff\xffWAVE" + b"junk" * 20, None, "unreadable"),
        (b"fLaC" + bytes(80), None, "unreadable"),
        (b"OggS" + bytes(80), None, "unreadable"),
        (bytes(64), Raw(rate=1), "unreadable"),
        (bytes(64), Raw(channels=0), "unreadable"),
        (bytes(64), Raw(channels=64), "unreadable"),
        (b"\0", Raw(), "empty"),
        (bytes(2 * RATE * 31), Raw(), "too_long"),
        (file(8_000, "FLAC", "PCM_16", sound=np.zeros(8_000 * 31)), None, "too_long"),
        (file(16_000, "WAV", "PCM_16", sound=np.zeros(0)), None, "empty"),
    ],
    ids=lambda value: f"{len(value)} bytes" if isinstance(value, bytes) else str(value),
)
def test_what_cannot_be_listened_to_is_refused_with_a_sentence(data: bytes, raw: Raw | None, code: str) -> None:
    with pytest.raises(Refusal) as refused:
        read(data, raw)
    assert refused.value.code == code, str(refused.value)
    assert len(str(refused.value)) > 20


def test_a_small_file_that_is_hours_long_is_given_up_when_it_is_too_long() -> None:
    silence = file(8_000, "FLAC", "PCM_16", sound=np.zeros(8_000 * 3_600))
    assert len(silence) < 300_000
    with pytest.raises(Refusal, match="longer than the 30 s"):
        read(silence)


def test_numbers_that_are_none_are_silence() -> None:
    sound = tone(16_000)[:, 0]
    sound[100:200], sound[200:300], sound[300:400] = np.nan, np.inf, 1e30
    samples = read(file(16_000, "WAV", "FLOAT", sound=sound))
    assert (samples[100:200] == 0).all()
    assert samples.max() == 32_767


def test_bytes_turned_round_never_do_more_than_be_refused() -> None:
    good = [file(16_000, kind, subtype) for kind, subtype in (("WAV", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "OPUS"))]
    dice = np.random.default_rng(5)
    refused = 0
    for _ in range(60):
        data = bytearray(good[dice.integers(3)])
        for at in dice.integers(4, min(len(data), 400), 8):
            data[at] = dice.integers(256)
        try:
            assert len(read(bytes(data), max_s=600)) <= 600 * RATE
        except Refusal:
            refused += 1
    assert 0 < refused < 60


def test_kinds_are_told_by_their_first_bytes() -> None:
    assert [kind_of(data) for data in (b"RIFF1234WAVEfmt ", b"fLaC", b"OggS", b"RIFF1234AVI ", b"")] == [
        "WAV",
        "FLAC",
        "OGG",
        None,
        None,
    ]
