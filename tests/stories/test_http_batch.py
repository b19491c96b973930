"""Batches at the door: each command is taken or refused by itself, in its order."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.stories.stack import Stack, running

PATH = "/v1/commands:batch"
LINES = {"content-type": "application/x-ndjson"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with running(module_redis_url, tmp_path_factory.mktemp("batch"), DUALLOOP_MAX_BODY="4096") as stack:
        yield stack


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=40) as client:
        yield client


def noop(n: int, **more: Any) -> dict[str, Any]:
    return {"type": "test.noop", "payload": {"n": n}, **more}


async def ends(client: httpx.AsyncClient, told: list[dict[str, Any]]) -> list[Any]:
    """The results of what was taken."""
    paths = [one["links"]["result"] for one in told]
    return [(await client.get(path, params={"wait": 30})).json()["result"] for path in paths]


async def test_each_is_taken_or_refused_by_itself_and_told_in_its_order(client: httpx.AsyncClient) -> None:
    good = [noop(n) for n in range(20)]
    bad = [{"type": "nobody.knows"}, 7, noop(1, priority="soon"), noop(1, x="y" * 5_000), {"text": " "}]
    answer = await client.post(PATH, json=[*good[:10], *bad, *good[10:]])
    told = answer.json()
    assert (answer.status_code, len(told)) == (207, 25)
    codes = [one["code"] for one in told[10:15]]
    assert codes == ["unknown_type", "invalid", "invalid", "too_large", "invalid"]
    assert [one["instance"] for one in told[10:12]] == [f"{PATH}#/10", f"{PATH}#/11"]
    assert told[14]["errors"][0]["pointer"] == "/text"
    assert await ends(client, told[:10] + told[15:]) == [{"n": n} for n in range(20)]


async def test_one_command_a_line(client: httpx.AsyncClient) -> None:
    lines = [json.dumps(noop(1)), "", "{", '{"type":"test.noop","payload":{"n":NaN}}', json.dumps(noop(2)) + "\r"]
    answer = await client.post(PATH, content="\n".join(lines), headers=LINES)
    told = answer.json()
    assert (answer.status_code, [one.get("code") for one in told]) == (207, [None, "bad_json", "not_finite", None])
    assert await ends(client, [told[0], told[3]]) == [{"n": 1}, {"n": 2}]
    assert (await client.post(PATH, content="", headers=LINES)).json() == []


async def test_a_thousand_are_taken_and_one_more_is_not(client: httpx.AsyncClient) -> None:
    line = json.dumps(noop(3))[:-1] + "}\n"
    told = (await client.post(PATH, content=line * 1_000, headers=LINES)).json()
    assert len({one["task_id"] for one in told}) == 1_000
    answer = await client.post(PATH, content=line * 1_001, headers=LINES)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


async def test_a_key_of_each_makes_a_repeat_harmless(client: httpx.AsyncClient) -> None:
    batch = [noop(4, idempotency_key="batch-a"), noop(5, idempotency_key="batch-b")]
    first = (await client.post(PATH, json=batch)).json()
    assert [one["task_id"] for one in (await client.post(PATH, json=batch)).json()] == [one["task_id"] for one in first]


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        ("[", {"content-type": "application/json"}, 400, "bad_json"),
        ('{"type": "test.noop"}', {"content-type": "application/json"}, 422, "invalid"),
        ("[]", {"content-type": "text/plain"}, 415, "wrong_content_type"),
        ("[]", {"content-type": "application/json", "idempotency-key": "k"}, 422, "invalid"),
        (" " * (16 * 4096 + 1), LINES, 413, "too_large"),
    ],
)
async def test_what_is_no_batch_is_refused_whole(
    client: httpx.AsyncClient, content: str, headers: dict[str, str], status: int, code: str
) -> None:
    answer = await client.post(PATH, content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
