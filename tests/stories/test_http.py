"""HTTP at the door: what is taken, what is refused with a pointer, and that nothing refused is enqueued."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.stories.stack import LOCAL, Stack, running
from tests.waiting import eventually

JSON = {"content-type": "application/json"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with running(module_redis_url, tmp_path_factory.mktemp("http"), DUALLOOP_MAX_BODY="4096") as stack:
        yield stack


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=40) as client:
        yield client


@pytest.fixture
def accepted(stack: Stack) -> Any:
    """How many missions were ever taken in."""

    def count() -> int:
        with redis.Redis.from_url(stack.redis_url) as client:
            return int(str(client.get("dl:{s0}:order") or b"0", "ascii"))

    return count


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    document: dict[str, Any] = answer.json()
    assert (answer.status_code, document["status"], document["code"]) == (status, status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail", "instance", "code", "correlation_id", "retryable", "errors"} <= set(
        document
    )
    return document


async def test_a_command_is_answered_at_once_and_its_result_follows(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/commands", json={"type": "test.noop", "payload": {"n": 7}})
    ack = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == ack["links"]["result"] == f"/v1/results/{ack['correlation_id']}"
    assert answer.headers["x-correlation-id"] == ack["correlation_id"] == ack["task_id"]
    assert (ack["status"], ack["retention_s"], set(ack["links"])) == ("PENDING", 86400, {"result", "ws"})
    answer = await client.get(ack["links"]["result"], params={"wait": 30})
    document = answer.json()
    assert (answer.status_code, document["status"], document["result"]) == (200, "SUCCEEDED", {"n": 7})
    assert document["created_at"] == ack["accepted_at"] <= document["started_at"] <= document["finished_at"]
    assert document["expires_at"] > document["finished_at"]


async def test_a_result_that_is_not_there_yet_says_when_to_ask_again(client: httpx.AsyncClient) -> None:
    ack = (await client.post("/v1/commands", json={"type": "test.slow", "payload": {"seconds": 60}})).json()

    async def running() -> bool:
        answer = await client.get(ack["links"]["result"], params={"wait": 0.1})
        assert (answer.status_code, answer.headers["retry-after"]) == (202, "1")
        return bool(answer.json()["status"] == "RUNNING")

    await eventually(running)
    assert (await client.post(f"/v1/commands/{ack['task_id']}/cancel")).status_code == 202
    assert (await client.get(ack["links"]["result"], params={"wait": 30})).json()["status"] == "CANCELLED"


async def test_a_command_may_be_answered_with_its_result(client: httpx.AsyncClient) -> None:
    noop = {"type": "test.noop", "payload": {"n": 7}}
    answer = await client.post("/v1/commands", json=noop, headers={"prefer": "wait=30"})
    assert (answer.status_code, answer.json()["status"], answer.json()["result"]) == (200, "SUCCEEDED", {"n": 7})
    assert answer.headers["preference-applied"] == "wait=30"
    assert answer.headers["x-correlation-id"] == answer.json()["correlation_id"]
    slow = {"type": "test.slow", "payload": {"seconds": 60}}
    answer = await client.post("/v1/commands", json=slow, headers={"prefer": "wait=0.1"})
    ack = answer.json()
    assert (answer.status_code, ack["status"], answer.headers["preference-applied"]) == (202, "PENDING", "wait=0.1")
    await client.post(f"/v1/commands/{ack['task_id']}/cancel")
    assert "preference-applied" not in (await client.post("/v1/commands", json=noop, headers={"prefer": "x"})).headers


async def test_many_may_wait_for_one(client: httpx.AsyncClient) -> None:
    ack = (await client.post("/v1/commands", json={"type": "test.slow", "payload": {"seconds": 0.5}})).json()
    answers = await asyncio.gather(*(client.get(ack["links"]["result"], params={"wait": 30}) for _ in range(30)))
    assert {answer.content for answer in answers} == {answers[0].content}
    assert answers[0].json()["status"] == "SUCCEEDED"


async def test_the_redis_key_is_the_same_document(client: httpx.AsyncClient, stack: Stack) -> None:
    ack = (await client.post("/v1/commands", json={"type": "test.five"})).json()
    answer = await client.get(ack["links"]["result"], params={"wait": 30})
    with redis.Redis.from_url(stack.redis_url) as server:
        key = f"dl:{{s0}}:result:{ack['correlation_id']}"
        assert server.get(key) == answer.content
        assert 86_000 < int(str(server.ttl(key))) <= 86_400


NOOP = {"type": "test.noop"}
BAD: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"", JSON, 400, "bad_json"),
    (b"{", JSON, 400, "bad_json"),
    (b"\xff\xfe\x00", JSON, 400, "bad_encoding"),
    (b'{"type":"test.noop","payload":{"a":"\\ud800"}}', JSON, 400, "bad_json"),
    (b'{"type":"test.noop","payload":{"a":NaN}}', JSON, 422, "not_finite"),
    (b'{"type":"test.noop","payload":{"a":Infinity}}', JSON, 422, "not_finite"),
    (b'{"type":"test.noop","payload":{"a":1e400}}', JSON, 422, "not_finite"),
    (b'{"type":"test.noop","payload":' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}", JSON, 422, "too_deep"),
    (b"[" * 2000 + b"]" * 2000, JSON, 422, "too_deep"),
    (b'{"type":"test.noop","payload":{"a":"' + b"x" * 5000 + b'"}}', JSON, 413, "too_large"),
    (b"[]", JSON, 422, "invalid"),
    (b'{"payload":{}}', JSON, 422, "invalid"),
    (b'{"type":"test.nowhere"}', JSON, 422, "unknown_type"),
    (b'{"type":"test.flaky","payload":{"failures":"many"}}', JSON, 422, "invalid"),
    (b'{"type":"test.flaky","payload_version":7}', JSON, 422, "invalid"),
    (b'{"type":"test.slow","payload":{"entity":""}}', JSON, 422, "invalid"),
    (b'{"type":"test.noop","idempotency_key":"k k"}', JSON, 422, "invalid"),
    (b'{"type":"test.noop","idempotency_key":""}', JSON, 422, "invalid"),
    (b'{"type":"test.noop","idempotency_key":7}', JSON, 422, "invalid"),
    (b'{"type":"test.noop"}', JSON | {"idempotency-key": ""}, 422, "invalid"),
    (b'{"type":"test.noop"}', JSON | {"idempotency-key": "k" * 201}, 422, "invalid"),
    (b'{"type":"test.noop","idempotency_key":"k"}', JSON | {"idempotency-key": "other"}, 422, "invalid"),
    (b'{"type":"test.noop","webhook":"http://x"}', JSON, 422, "invalid"),
    (b'{"type":"test.noop"}', {"content-type": "text/plain"}, 415, "wrong_content_type"),
    (b'{"type":"test.noop"}', {}, 415, "wrong_content_type"),
    (b"type=test.noop", {"content-type": "application/x-www-form-urlencoded"}, 415, "wrong_content_type"),
]


async def test_b53_too_large_a_command_is_refused_with_what_to_do_and_sent_again_by_nobody(
    client: httpx.AsyncClient, accepted: Any
) -> None:
    before = accepted()
    document = problem(await client.post("/v1/commands", json=NOOP | {"payload": {"a": "x" * 5000}}), 413, "too_large")
    assert document["retryable"] is False
    assert "keep large data elsewhere and send a reference" in document["detail"]
    assert accepted() == before
    answer = await client.post("/v1/commands", json=NOOP | {"payload": {"a": "x" * 3900}})
    assert answer.status_code == 202, "what just fits is taken"


@pytest.mark.parametrize("bad", BAD)
async def test_bad_input_is_a_clear_4xx_and_enqueues_nothing(
    client: httpx.AsyncClient, accepted: Any, bad: tuple[bytes, dict[str, str], int, str]
) -> None:
    body, headers, status, code = bad
    before = accepted()
    answer = await client.post("/v1/commands", content=body, headers=headers)
    document = problem(answer, status, code)
    assert document["detail"]
    assert document["instance"] == "/v1/commands"
    assert accepted() == before


async def test_a_pointer_leads_to_each_fault(client: httpx.AsyncClient) -> None:
    answer = await client.post("/v1/commands", json={"type": "test.flaky", "payload": {"failures": "x", "how": "no"}})
    pointers = [error["pointer"] for error in problem(answer, 422, "invalid")["errors"]]
    assert sorted(pointers) == ["/payload/failures", "/payload/how"]


async def test_a_body_that_comes_in_pieces_is_bounded_too(client: httpx.AsyncClient) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"type":"test.noop","payload":{"a":"'
        for _ in range(100):
            yield b"x" * 1000
        yield b'"}}'

    problem(await client.post("/v1/commands", content=pieces(), headers=JSON), 413, "too_large")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/results/nonsense", 404, "bad_id"),
        ("GET", "/v1/results/" + "0" * 40, 404, "bad_id"),
        ("GET", "/v1/results/%00", 404, "bad_id"),
        ("GET", "/v1/nowhere", 404, "not_found"),
        ("DELETE", "/v1/commands", 405, "method_not_allowed"),
        ("POST", "/v1/commands/nonsense/cancel", 404, "bad_id"),
        ("GET", "/v1/mission-types/test.nowhere", 404, "not_found"),
        ("GET", "/v1/mission-types/test.noop?version=9", 404, "not_found"),
        ("GET", "/v1/mission-types/test.noop?version=x", 422, "invalid"),
        ("GET", "/v1/results/nonsense?wait=soon", 422, "invalid"),
        ("GET", "/v1/results/nonsense?wait=-1", 422, "invalid"),
        ("GET", "/v1/results/nonsense?wait=nan", 422, "invalid"),
        ("GET", "/v1/results/nonsense?wait=inf", 404, "bad_id"),
    ],
)
async def test_every_other_error_is_a_problem_too(
    client: httpx.AsyncClient, method: str, path: str, status: int, code: str
) -> None:
    problem(await client.request(method, path), status, code)


async def test_an_id_that_was_never_accepted_but_is_genuine_is_gone(client: httpx.AsyncClient, stack: Stack) -> None:
    ack = (await client.post("/v1/commands", json={"type": "test.noop"})).json()
    await client.get(ack["links"]["result"], params={"wait": 30})
    with redis.Redis.from_url(stack.redis_url) as server:
        server.delete(f"dl:{{s0}}:mission:{ack['task_id']}", f"dl:{{s0}}:result:{ack['task_id']}")
    problem(await client.get(ack["links"]["result"]), 410, "expired")


async def test_people_may_write_the_id_in_lower_case(client: httpx.AsyncClient) -> None:
    ack = (await client.post("/v1/commands", json={"type": "test.noop"})).json()
    answer = await client.get(f"/v1/results/{ack['task_id'].lower()}", params={"wait": 30})
    assert answer.json()["correlation_id"] == ack["correlation_id"]


async def test_another_host_is_not_served(stack: Stack) -> None:
    async with httpx.AsyncClient(
        base_url=stack.url, trust_env=False, timeout=60, headers={"host": "evil.example"}
    ) as client:
        problem(await client.get("/v1/mission-types"), 421, "bad_host")
        problem(await client.post("/v1/commands", json={"type": "test.noop"}), 421, "bad_host")
        assert (await client.get("/livez")).status_code == 200


async def test_what_passes_comes_back_exactly(client: httpx.AsyncClient) -> None:
    odd = {"nul": "\x00", "emoji": "😀", "rtl": "שלום", "big": 10**200, "small": -(10**40), "float": 1.5e-300, "": []}
    body = json.dumps({"type": "test.echo", "payload": odd}, ensure_ascii=False).encode()
    ack = (await client.post("/v1/commands", content=body, headers=JSON)).json()
    answer = await client.get(ack["links"]["result"], params={"wait": 30})
    assert json.loads(answer.text)["result"] == odd


async def test_types_are_listed_with_schema_states_and_transitions(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/v1/mission-types")).json()["mission_types"]
    assert {"test.noop", "test.slow", "device.control"} <= {row["type"] for row in listed}
    shown = (await client.get("/v1/mission-types/test.slow")).json()
    assert shown["payload_schema"]["properties"]["seconds"]["maximum"] == 600
    assert {"from": "ACTING", "event": "acted", "to": "CHECKING"} in shown["transitions"]
    assert shown["states"]["ACTING"]["acting"] is True


async def test_the_contract_is_published(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert {"/v1/commands", "/v1/results/{correlation_id}", "/v1/commands/{correlation_id}/cancel"} <= set(paths)
    body = paths["/v1/commands"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert {"payload", "text", "locale"} <= set(body["properties"])
    assert body["anyOf"] == [{"required": ["type"]}, {"required": ["text"]}]
    assert (await client.get("/docs")).status_code == 200


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=300),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=10,
        ).map(lambda value: json.dumps({"type": "test.noop", "payload": value}).encode()),
        st.dictionaries(
            st.sampled_from(
                ["type", "payload", "target", "priority", "deadline_s", "on_disconnect", "session", "snapshot", "area"]
            ),
            st.none() | st.integers() | st.text(max_size=300) | st.floats() | st.dictionaries(st.text(), st.text()),
        ).map(lambda value: json.dumps({"type": "test.noop"} | value).encode()),
    )
)
def test_no_body_whatever_is_a_500(stack: Stack, body: bytes) -> None:
    answer = httpx.post(f"{stack.url}/v1/commands", content=body, headers=JSON, trust_env=False, timeout=60)
    assert answer.status_code in {202, 400, 413, 422}, (body, answer.text)


async def test_raw_bytes_that_are_no_http_are_answered_or_closed(stack: Stack, client: httpx.AsyncClient) -> None:
    for raw in (
        b"\x00" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/commands HTTP/1.1\r\ncontent-length: nine\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection(LOCAL, stack.foregrounds[0].port)
        writer.write(raw)
        answer = await asyncio.wait_for(reader.read(200), 60)
        assert answer == b"" or b" 400 " in answer
        writer.close()
    assert (await client.get("/livez")).status_code == 200
