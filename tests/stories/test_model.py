"""The client of a language model: against the demonstration's, and against servers that answer whatever they like."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from backend_loop import model as model_module
from backend_loop.alias import alias
from backend_loop.devices.http import http_client
from backend_loop.model import Model, model_of
from backend_loop.services import ServiceRefused, ServiceUnavailable
from backend_loop.solo import Facts
from backend_loop.thought import Function, Thought, Usage, Wanted
from shared.settings import Settings
from tests.services import OutsideServices

KEY = "sk-live-0123456789"
LAMP = Function("device-control", "a lamp", {"type": "object", "properties": {"entity": {"type": "string"}}})


class Server:
    """Answers every request with the same bytes, and keeps what it was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.heard: list[tuple[dict[str, str], Any]] = []
        self.answer = b""

    def says(self, status: int, body: Any, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.answer = f"HTTP/1.1 {status} X\r\n{head}content-length: {len(content)}\r\n\r\n".encode() + content

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers["content-length"]))
        self.heard.append((dict(line.split(": ", 1) for line in head[1:] if line), json.loads(body)))
        writer.write(self.answer)
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    one = Server()
    serving = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    one.url = f"http://127.0.0.1:{serving.sockets[0].getsockname()[1]}/v1"
    yield one
    serving.close()
    await serving.wait_closed()


async def think(server: Server, *functions: Function, **more: Any) -> Thought:
    async with http_client() as client:
        return await Model(server.url, client, more.get("name"), more.get("key", "")).think(
            [{"role": "user", "content": "hello"}],
            functions,
            within_s=more.get("within_s", 60.0),
            key="m:1:THINKING:1",
            traceparent="00-1",
        )


def completion(message: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop"}], **more}


async def test_it_asks_as_servers_want_to_be_asked(server: Server) -> None:
    server.says(200, completion({"content": "hi"}, usage={"prompt_tokens": 3, "completion_tokens": 4}))
    said = await think(server, LAMP, name="big", key=f" {KEY}\n")
    assert said == Thought("hi", (), Usage(3, 4))
    headers, body = server.heard[0]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["idempotency-key"] == alias("m:1:THINKING:1")
    assert headers["traceparent"] == "00-1"
    assert body["model"] == "big"
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert body["tools"] == [{"type": "function", "function": LAMP._asdict()}]


async def test_without_key_name_or_functions_none_is_sent(server: Server) -> None:
    server.says(200, completion({"content": "hi"}))
    await think(server)
    headers, body = server.heard[0]
    assert "authorization" not in headers
    assert set(body) == {"messages"}


async def test_calls_are_read_as_they_were_said(server: Server) -> None:
    calls = [
        {"id": "a", "function": {"name": "f", "arguments": '{"x": 1'}},
        {"id": None, "function": {"name": "g", "arguments": {"y": [2]}}},
        {"function": {"name": "h"}},
    ]
    server.says(200, completion({"content": None, "tool_calls": calls}))
    said = await think(server)
    assert said.calls == (Wanted("a", "f", '{"x": 1'), Wanted("", "g", '{"y":[2]}'), Wanted("", "h", ""))


@pytest.mark.parametrize("usage", [None, {}, 7, {"prompt_tokens": None}, {"prompt_tokens": -1, "completion_tokens": 1}])
async def test_tokens_that_are_not_told_are_guessed(server: Server, usage: Any) -> None:
    server.says(200, completion({"content": "x" * 400}, usage=usage))
    said = await think(server)
    assert said.usage == Usage(said.usage.prompt, 100, told=False)
    assert 5 < said.usage.prompt < 50


async def test_a_reply_that_came_to_its_limit_says_so(server: Server) -> None:
    server.says(200, {"choices": [{"message": {"content": "half a"}, "finish_reason": "length"}]})
    assert (await think(server)).cut


async def test_a_refusal_of_the_model_is_its_answer(server: Server) -> None:
    server.says(200, completion({"content": None, "refusal": "I may not"}))
    assert (await think(server)).text == "I may not"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>oops",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"choices": [{"message": {"content": "\\ud800"}}]}',
        b'{"choices": NaN}',
        [],
        {},
        {"choices": []},
        {"choices": [{}]},
        completion({"content": ["parts"]}),
        completion({"content": None}),
        completion({"content": "  "}),
        completion({"content": None, "tool_calls": [{}]}),
        completion({"content": None, "tool_calls": [{"function": {"name": 7}}]}),
    ],
    ids=str,
)
async def test_what_is_no_answer_may_be_asked_again(server: Server, body: Any) -> None:
    server.says(200, body)
    with pytest.raises(ServiceUnavailable, match=r"the model (gave an answer that is no|said nothing)"):
        await think(server)


async def test_an_answer_without_end_is_none(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_module, "MOST_BYTES", 10_000)
    server.says(200, completion({"content": "x" * 20_000}))
    with pytest.raises(ServiceUnavailable, match="more than 10000 bytes"):
        await think(server)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 529])
async def test_what_may_work_later_says_when(server: Server, status: int) -> None:
    server.says(status, {"error": {"message": "busy", "code": "rate_limit_exceeded"}}, Retry_After="7")
    with pytest.raises(ServiceUnavailable, match="the model's server: busy") as fault:
        await think(server)
    assert fault.value.after_s == 7


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, {"error": {"message": "wrong key", "code": "invalid_api_key"}}, "invalid_api_key"),
        (404, {"error": "model not found"}, "404"),
        (400, {"detail": "too long"}, "400"),
        (403, b"<html>", "403"),
        (429, {"error": {"message": "pay first", "code": "insufficient_quota"}}, "insufficient_quota"),
    ],
)
async def test_what_will_not_work_later_is_refused(server: Server, status: int, body: Any, code: str) -> None:
    server.says(status, body)
    with pytest.raises(ServiceRefused, match="the model's server: ") as fault:
        await think(server)
    assert fault.value.code == code


async def test_nobody_there_and_no_time(server: Server) -> None:
    with pytest.raises(ServiceUnavailable, match="no time is left"):
        await think(server, within_s=0)
    server.answer = b""
    with pytest.raises(ServiceUnavailable, match="gave no answer"):
        await think(server)
    server.url = "http://127.0.0.1:1/v1"
    with pytest.raises(ServiceUnavailable, match="gave no answer"):
        await think(server)


async def test_a_redirect_does_not_take_the_key_elsewhere(server: Server) -> None:
    server.says(307, b"", Location="http://127.0.0.1:1/elsewhere")
    with pytest.raises(ServiceUnavailable, match="HTTP 307"):
        await think(server, key=KEY)
    assert len(server.heard) == 1


# --- the key is told nobody


@pytest.mark.parametrize("before", [0, 290])
async def test_a_server_that_repeats_the_key_does_not_get_it_into_an_error(server: Server, before: int) -> None:
    server.says(401, {"error": {"message": f"{'-' * before}{KEY} is wrong", "code": "invalid_api_key"}})
    with pytest.raises(ServiceRefused) as fault:
        await think(server, key=KEY)
    assert KEY[:4] not in str(fault.value)


@pytest.mark.parametrize("key", ["sk-\nlive", "sk-\u2026"])
def test_a_key_that_is_none_is_refused_without_showing_it(key: str) -> None:
    with pytest.raises(ValueError, match="DUALLOOP_MODEL_KEY has characters") as fault:
        Model("http://x", httpx.AsyncClient(), None, key)
    assert "sk-" not in str(fault.value)


def test_the_key_is_in_no_settings_that_are_shown_and_reaches_a_child() -> None:
    settings = Settings(model_url="http://x/v1", model_key=SecretStr(KEY), _env_file=None)
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert KEY not in shown
    packed = Facts(0, "m", "n", settings, "unix://x").pack()
    child = json.loads(packed)["settings"]
    assert Settings(**child, _env_file=None).model_key == SecretStr(KEY)


def test_whose_model_it_is() -> None:
    def of(**settings: Any) -> Any:
        made = model_of(Settings(_env_file=None, **settings), httpx.AsyncClient())
        return made and (made._url, made._name, made._key)

    assert of() is None
    demonstration = ("http://o/model/v1/chat/completions", "scripted", "")
    assert of(outside_url="http://o/") == demonstration
    assert of(outside_url="http://o", model_key=SecretStr(KEY)) == demonstration, "the key is for somebody else"
    own = of(outside_url="http://o", model_url="http://m/v1/", model_name="big", model_key=SecretStr(KEY))
    assert own == ("http://m/v1/chat/completions", "big", KEY)
    assert of(model_url="http://m/v1", model_key=SecretStr(""))[1:] == (None, "")


# --- the demonstration's


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutsideServices]:
    with OutsideServices(tmp_path_factory.mktemp("outside")) as outside:
        yield outside


def ask(outside: OutsideServices, goal: str, *, key: str = "k", model: str = "scripted", **more: Any) -> httpx.Response:
    messages = [{"role": "user", "content": goal}, *more.pop("after", [])]
    body = {"model": model, "messages": messages, **more}
    return outside.http.post("/model/v1/chat/completions", json=body, headers={"idempotency-key": key})


def test_the_scripted_model_counts_who_asks_over_its_own_death(tmp_path: Path) -> None:
    with OutsideServices(tmp_path) as outside:
        for key in ("a:1:THINKING:1", "a:1:THINKING:1", "b:1:THINKING:1"):
            assert ask(outside, "hello", key=key).is_success
        outside.end(9)
        outside.start()
        assert outside.http.get("/asked", params={"mission": "a"}).json() == {"a:1:THINKING:1": 2}
        book = outside.books()["model"]
        assert (book["calls"], book["keys"]) == (3, 2)
        assert outside.books()["balanced"]


def test_a_script_is_followed_reply_by_reply(outside: OutsideServices) -> None:
    replies = [{"calls": [["f", {"x": 1}], ["g", "{"]], "tokens": 7}, {"say": "done", "finish": "length"}]
    outside.http.put("/scripts", json={"goal": "plan", "replies": [*replies, {"raw": [1]}]}).raise_for_status()
    first = ask(outside, "plan").json()
    assert [one["function"] for one in first["choices"][0]["message"]["tool_calls"]] == [
        {"name": "f", "arguments": '{"x": 1}'},
        {"name": "g", "arguments": "{"},
    ]
    assert first["usage"]["completion_tokens"] == 7
    assert ask(outside, "plan").json()["choices"] == first["choices"], "asked the same, it says the same"
    said = {"role": "assistant", "content": "thinking"}
    assert ask(outside, "plan", after=[said]).json()["choices"][0]["finish_reason"] == "length"
    assert ask(outside, "plan", after=[said, said]).json() == [1]
    assert "all that I was told" in ask(outside, "plan", after=[said] * 3).text


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"model": "x"}, "does not exist"),
        ({"model": ""}, "must provide a model"),
        ({"stream": True}, "does not stream"),
        ({"after": [{"role": "nobody"}]}, "known role"),
        ({"after": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}, "must be a response"),
        ({"after": [{"role": "assistant", "content": None}]}, "content has to be"),
        ({"tools": []}, "at least one"),
        ({"tools": [{"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}]}, "no name"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"anyOf": []}}}]}, "Invalid schema"),
    ],
)
def test_it_is_as_strict_as_the_real_ones(outside: OutsideServices, wrong: dict[str, Any], sentence: str) -> None:
    answer = ask(outside, "hello", **wrong)
    assert answer.status_code in {400, 404}
    assert sentence in answer.json()["error"]["message"]


def test_each_call_has_to_be_answered(outside: OutsideServices) -> None:
    calls = [{"id": id_, "function": {"name": "f", "arguments": "{}"}} for id_ in ("a", "b")]
    told = [{"role": "tool", "tool_call_id": id_, "content": "x"} for id_ in ("a", "b")]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    assert ask(outside, "hello", after=[said, *told]).is_success
    assert "did not have response messages: b" in ask(outside, "hello", after=[said, told[0]]).text
    calls[0]["function"] = {"name": "f", "arguments": "{"}
    assert ask(outside, "hello", after=[said, *told]).status_code == 400


async def test_its_faults_are_what_the_client_makes_of_them(outside: OutsideServices) -> None:
    async with http_client() as client:
        model = Model(f"{outside.url}/model/v1", client, "scripted")

        async def asked(**faults: Any) -> Thought:
            outside.faults("model", **faults)
            return await model.think(
                [{"role": "user", "content": "hi"}],
                within_s=0.5 if "slow_s" in faults else 60,
                key="f:1:THINKING:1",
                traceparent="00-1",
            )

        for faults in ({"garbage": True}, {"lose_reply": True}, {"slow_s": 60}):
            with pytest.raises(ServiceUnavailable):
                await asked(**faults)
        with pytest.raises(ServiceUnavailable, match="model is down") as fault:
            await asked(down=True)
        assert fault.value.after_s == 1
        with pytest.raises(ServiceRefused, match="model says no"):
            await asked(refuses=True)
        assert "do not know" in (await asked()).text
