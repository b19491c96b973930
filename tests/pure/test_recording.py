"""What a foreground sees of a recording: by its first bytes, its type and its rate, and never by decoding it."""

from pathlib import Path

import pytest

from frontend_loop.multipart import file_of
from frontend_loop.recording import recording_of
from shared.errors import Problem

WAV = (Path(__file__).parent.parent / "audio" / "en01-a.wav").read_bytes()
CURL = "application/x-www-form-urlencoded"
"""What curl --data-binary says of everything."""
FORM = 'multipart/form-data; boundary="a b"'
MOST = 1_000_000


def form(*parts: tuple[str, bytes]) -> bytes:
    told = (b"--a b\r\n" + head.encode() + b"\r\n\r\n" + body + b"\r\n" for head, body in parts)
    return b"".join(told) + b"--a b--\r\n"


def file(content_type: str, name: str = "a.wav") -> str:
    return f'Content-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: {content_type}'


@pytest.mark.parametrize("content_type", ["", CURL, "audio/wav", "audio/mpeg", "text/plain"])
def test_a_file_is_what_its_first_bytes_say(content_type: str) -> None:
    found = recording_of(WAV, content_type, None, MOST)
    assert (found.data, found.told()) == (WAV, {"bytes": len(WAV), "kind": "WAV", "rate": None})
    assert recording_of(b"fLaC...", content_type, None, MOST).kind == "FLAC"
    assert recording_of(b"OggS...", content_type, None, MOST).kind == "OGG"


@pytest.mark.parametrize(
    ("content_type", "rate"),
    [
        ("audio/L16;rate=16000", None),
        ('audio/l16; channels=1; rate="16000"', None),
        ("application/octet-stream", 16_000),
        (CURL, 16_000),
        ("", 16_000),
    ],
)
def test_samples_without_a_header_need_their_rate(content_type: str, rate: int | None) -> None:
    assert recording_of(bytes(320), content_type, rate, MOST)[1:] == ("PCM", 16_000)


@pytest.mark.parametrize(
    ("content_type", "rate", "code"),
    [
        ("audio/L16", None, "no_recording"),
        ("audio/L16;rate=fast", None, "no_recording"),
        ("audio/L16;rate=16000;channels=2", None, "no_recording"),
        ("application/octet-stream", None, "no_recording"),
        ("audio/mpeg", 16_000, "no_recording"),
        ("application/json", 16_000, "no_recording"),
        ("audio/L16;rate=1", None, "invalid"),
        ("", 999_999, "invalid"),
    ],
)
def test_all_else_is_refused(content_type: str, rate: int | None, code: str) -> None:
    with pytest.raises(Problem) as refused:
        recording_of(bytes(320), content_type, rate, MOST)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("begins", "name"),
    [
        (b"\x1aE\xdf\xa3\x9fB\x86\x81", "WebM"),
        (b"\0\0\0\x20ftypM4A ", "MP4"),
        (b"ID3\4\0\0", "MP3"),
        (b"FORM\0\0\0\x10AIFF", "AIFF"),
        (b"caff\0\1", "CAF"),
        (b"#!AMR\n", "AMR"),
    ],
)
def test_what_browsers_and_telephones_record_is_no_noise_whatever_its_rate(begins: bytes, name: str) -> None:
    with pytest.raises(Problem, match=f"nobody listens to {name} here: send a WAV") as refused:
        recording_of(begins + bytes(320), CURL, 48_000, MOST)
    assert refused.value.code == "no_recording"


def test_nothing_and_too_much_are_refused() -> None:
    for body, code in ((b"", "empty_recording"), (WAV, "too_large")):
        with pytest.raises(Problem) as refused:
            recording_of(body, "audio/wav", None, len(WAV) - 1)
        assert refused.value.code == code
    assert recording_of(WAV, "audio/wav", None, len(WAV)).kind == "WAV"


def test_a_form_has_one_file_whatever_its_bytes() -> None:
    hostile = WAV + b"\r\n\r\n--a\r\n"
    body = form(('Content-Disposition: form-data; name="note"', b"x"), (file("audio/wav"), hostile))
    assert file_of(FORM, body) == ("audio/wav", hostile)
    assert recording_of(body, FORM, None, MOST).data == hostile
    samples = form((file("audio/L16;rate=8000", "a.pcm"), bytes(320)))
    assert recording_of(samples, FORM, None, MOST)[1:] == ("PCM", 8_000)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", form((file("audio/wav"), WAV))),
        ("multipart/form-data; boundary=", form((file("audio/wav"), WAV))),
        (FORM, b""),
        (FORM, WAV),
        (FORM, b"before" + form((file("audio/wav"), WAV))),
        (FORM, form((file("audio/wav"), WAV)).removesuffix(b"--a b--\r\n")),
        (FORM, form()),
        (FORM, form(('Content-Disposition: form-data; name="file"', WAV))),
        (FORM, form((file("audio/wav"), WAV), (file("audio/wav"), WAV))),
        (FORM, b"--a b\r\nno end of headers\r\n--a b--"),
        (FORM, form((file("audio/wav", "a" * 5_000), WAV))),
        (FORM, form(*[('Content-Disposition: form-data; name="note"', b"x")] * 200, (file("audio/wav"), WAV))),
        (FORM, form((f"Content-Disposition: form-data; filename*{'1' * 5_000}=x", WAV))),
        (FORM, form(("Content-Disposition: form-data; filename; =; ;;", WAV))),
    ],
)
def test_a_form_that_cannot_be_read_is_refused(content_type: str, body: bytes) -> None:
    with pytest.raises(Problem) as refused:
        recording_of(body, content_type, None, MOST)
    assert refused.value.code == "invalid"


@pytest.mark.parametrize("header", ["audio/L16; rate*" + "1" * 5_000 + "=8000", 'audio/L16; rate="' + ";" * 60_000])
def test_a_header_that_never_ends_takes_nobodys_time(header: str) -> None:
    with pytest.raises(Problem) as refused:
        recording_of(bytes(320), header, None, MOST)
    assert refused.value.code == "no_recording"
    part = form((f'Content-Disposition: form-data; filename="{";" * 500_000}', WAV))
    with pytest.raises(Problem) as refused:
        recording_of(part, FORM, None, MOST)
    assert refused.value.code == "invalid"


def test_a_name_of_a_file_may_have_all_that_clients_write() -> None:
    for name in ('"a;b=c.wav"', r'"say \"hi\".wav"', "a.wav", '""'):
        assert file_of(FORM, form((f"content-disposition: form-data; name=f; FileName={name}", WAV)))[1] == WAV
    assert file_of(FORM, form(("Content-Disposition: form-data; filename*=UTF-8''%e5%ae%a2.wav", WAV)))[1] == WAV


def test_an_empty_file_in_a_form_is_no_recording() -> None:
    with pytest.raises(Problem) as refused:
        recording_of(form((file("audio/wav"), b"")), FORM, None, MOST)
    assert "no audio" in refused.value.detail
