"""Speech servers that people have already: Wyoming over TCP, and OpenAI-compatible ones over HTTP."""

import asyncio
import email.parser
import email.policy
import json
import socket
import subprocess
import sys
import wave
from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest

from backend_loop.devices.http import http_client
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.speech.engine import RATE, Transcript
from backend_loop.speech.openai import OpenAI
from backend_loop.speech.wyoming import Wyoming

ROOT = Path(__file__).parent.parent.parent
KEY = "sk-live-0123456789"
SPEECH = bytes(2 * RATE)


@pytest.fixture(scope="module")
def wyoming() -> Iterator[str]:
    """The URL of a real server process."""
    program = (sys.executable, "-m", "tests.wyoming_server")
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"tcp://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


async def asked(url: str, language: str, *hints: str, within_s: float = 60.0) -> Transcript:
    return await Wyoming(url, within_s=within_s).transcribe(SPEECH, RATE, language, hints)


async def test_a_wyoming_server_is_given_all_of_the_speech_and_the_names(wyoming: str) -> None:
    heard = await asked(wyoming, "zh-CN", "客厅灯", "卧室灯")
    assert json.loads(heard.text) == {"bytes": len(SPEECH), "rate": RATE, "names": ["客厅灯", "卧室灯"]}
    assert (heard.confidence, heard.engine) == (None, "wyoming"), "the protocol has no confidence"
    assert 0 <= heard.took_ms < 60_000


async def test_a_wyoming_server_that_tells_parts_first_is_waited_for(wyoming: str) -> None:
    assert (await asked(wyoming, "parts")).text == "turn on the light"


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("silent", "ended without a transcript"),
        ("number", "ended without a transcript"),
        ("garbage", "what is no event"),
        ("half", "what is no event|ended without"),
        ("huge", "what is no event"),
        ("chatter", "ended without a transcript"),
    ],
)
async def test_what_a_wyoming_server_says_is_foreign(wyoming: str, language: str, sentence: str) -> None:
    with pytest.raises(ServiceUnavailable, match=sentence):
        await asked(wyoming, language)


async def test_a_wyoming_server_says_why_it_does_not(wyoming: str) -> None:
    with pytest.raises(ServiceRefused, match="the model is not loaded"):
        await asked(wyoming, "error")


async def test_a_wyoming_server_that_hangs_or_is_not_there_keeps_nobody(wyoming: str, unused_tcp_port: int) -> None:
    with pytest.raises(ServiceUnavailable, match="no answer"):
        await asked(wyoming, "hang", within_s=0.3)
    with pytest.raises(ServiceUnavailable, match="no answer"):
        await asked(f"tcp://127.0.0.1:{unused_tcp_port}", "en")
    with pytest.raises(ServiceUnavailable, match="no answer"):
        await asked("unix:///nowhere/at.all", "en")


async def test_a_wyoming_server_that_reads_nothing_keeps_nobody_longer_than_it_may(tmp_path: Path) -> None:
    place = tmp_path / "frozen"
    with socket.socket(socket.AF_UNIX) as frozen:  # the kernel lets others in, and nobody is there
        frozen.bind(str(place))
        frozen.listen()
        async with asyncio.timeout(60):
            with pytest.raises(ServiceUnavailable, match="no answer: out of time"):
                await Wyoming(f"unix://{place}", within_s=0.3).transcribe(bytes(4_000_000), RATE, "en")


class Server:
    """Answers each request with the next of its answers, and keeps what it was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.heard: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.answers: list[bytes] = []

    def says(self, status: int, body: Any, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        answer = f"HTTP/1.1 {status} X\r\n{head}connection: close\r\ncontent-length: {len(content)}\r\n\r\n".encode()
        self.answers.append(answer + content)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {"line": head[0], **dict(line.lower().split(": ", 1) for line in head[1:] if line)}
        kept = dict(line.split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers["content-length"]))
        form = f"content-type: {kept.get('Content-Type', kept.get('content-type'))}\r\n\r\n".encode() + body
        parts = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(form)
        fields = {
            str(part.get_param("name", header="content-disposition")): part.get_payload(decode=True)
            for part in parts.iter_parts()
        }
        self.heard.append(({**headers, **kept}, fields))
        writer.write(self.answers.pop(0))
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    one = Server()
    serving = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.url = f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}/v1"
    yield one
    serving.close()
    await serving.wait_closed()


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with http_client() as one:
        yield one


def engine(server: Server, client: httpx.AsyncClient, **given: Any) -> OpenAI:
    return OpenAI(server.url, client, **{"model": None, "key": KEY, "within_s": 60.0, **given})


async def test_an_openai_server_is_given_a_file_and_says_how_sure_it_is(
    server: Server, client: httpx.AsyncClient
) -> None:
    server.says(200, {"text": " turn on the light ", "segments": [{"avg_logprob": -0.1}, {"avg_logprob": -0.5}]})
    heard = await engine(server, client, model="base").transcribe(SPEECH, RATE, "en-US", ["lamp", "AC"])
    assert (heard.text, heard.confidence, heard.engine) == ("turn on the light", 0.607, "openai")
    headers, fields = server.heard[0]
    assert headers["line"] == "POST /v1/audio/transcriptions HTTP/1.1"
    assert headers["authorization"] == f"Bearer {KEY}"
    told = {name: value.decode() for name, value in fields.items() if name != "file"}
    assert told == {"model": "base", "language": "en", "prompt": "lamp, AC", "response_format": "verbose_json"}
    with wave.open(BytesIO(fields["file"])) as file:
        assert (file.getframerate(), file.getnchannels(), file.readframes(RATE)) == (RATE, 1, SPEECH)


async def test_a_server_that_knows_the_short_form_only_is_asked_for_that_from_then_on(
    server: Server, client: httpx.AsyncClient
) -> None:
    server.says(400, {"error": {"message": "response_format 'verbose_json' is not compatible with model"}})
    server.says(200, {"text": "one"})
    server.says(200, {"text": "two", "segments": []})
    one = engine(server, client)
    first, second = [await one.transcribe(SPEECH, RATE, "en") for _ in range(2)]
    assert (first.text, first.confidence, second.text, second.confidence) == ("one", None, "two", None)
    assert [fields["response_format"] for _, fields in server.heard] == [b"verbose_json", b"json", b"json"]


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}, r"provided: \*\*\*"),
        (404, {"detail": "Model base is not installed"}, "not installed"),
        (413, b"too long", "HTTP 413"),
    ],
)
async def test_an_openai_server_says_no_for_good_and_the_key_is_told_nobody(
    server: Server, client: httpx.AsyncClient, status: int, body: Any, sentence: str
) -> None:
    server.says(status, body)
    with pytest.raises(ServiceRefused, match=sentence) as fault:
        await engine(server, client).transcribe(SPEECH, RATE, "en")
    assert KEY not in str(fault.value)


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (503, {"error": "loading"}, "loading"),
        (429, b"", "HTTP 429"),
        (200, b"turn on the light", "no transcription"),
        (200, {"text": 7}, "no transcription"),
        (200, ["text"], "no transcription"),
        (200, b'{"text": "' + b"a" * 2_000_000 + b'"}', "more than 1048576 bytes"),
    ],
)
async def test_an_openai_server_has_no_answer_now(
    server: Server, client: httpx.AsyncClient, status: int, body: Any, sentence: str
) -> None:
    server.says(status, body, retry_after="3")
    with pytest.raises(ServiceUnavailable, match=sentence) as fault:
        await engine(server, client).transcribe(SPEECH, RATE, "en")
    assert fault.value.after_s == (0 if status == 200 else 3)


async def test_an_answer_that_is_packed_badly_is_none(server: Server, client: httpx.AsyncClient) -> None:
    server.says(200, b'{"text": "on"}', content_encoding="gzip")
    with pytest.raises(ServiceUnavailable, match="no answer"):
        await engine(server, client).transcribe(SPEECH, RATE, "en")


@pytest.mark.parametrize("segments", [{}, [None], [{"avg_logprob": "x"}], [{"avg_logprob": 3}], [{}]])
async def test_confidence_that_is_none_is_not_believed(
    server: Server, client: httpx.AsyncClient, segments: Any
) -> None:
    server.says(200, {"text": "a", "segments": segments})
    assert (await engine(server, client).transcribe(SPEECH, RATE, "en")).confidence is None


async def test_an_openai_server_that_is_not_there_keeps_nobody(client: httpx.AsyncClient, unused_tcp_port: int) -> None:
    nowhere = OpenAI(f"http://127.0.0.1:{unused_tcp_port}/v1", client, model=None, key="", within_s=2.0)
    with pytest.raises(ServiceUnavailable, match="no answer"):
        await nowhere.transcribe(SPEECH, RATE, "en")
