"""A command with an idempotency key: sent again it is answered like the first time, and done once (P16)."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio
import redis

from tests.processes.commands import tally
from tests.stories.stack import Stack, running
from tests.stories.talk import talking
from tests.stories.test_http import JSON, problem
from tests.waiting import eventually

NOOP: Final[dict[str, Any]] = {"type": "test.noop", "payload": {"n": 1}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("idempotency")
    async with running(
        module_redis_url, folder, foregrounds=2, DUALLOOP_RETENTION_S="3", DUALLOOP_TEST_TALLY=str(folder / "tally")
    ) as stack:
        yield stack


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=40) as client:
        yield client


@pytest.fixture
async def other(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the second foreground."""
    async with httpx.AsyncClient(base_url=stack.foregrounds[1].url, trust_env=False, timeout=40) as client:
        yield client


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """Its own for each test: the module shares one Redis."""
    return str(request.node.name)


async def send(client: httpx.AsyncClient, key: str, command: dict[str, Any] = NOOP) -> httpx.Response:
    return await client.post("/v1/commands", json=command, headers={"idempotency-key": key})


async def end(client: httpx.AsyncClient, ack: httpx.Response) -> dict[str, Any]:
    answer = await client.get(ack.json()["links"]["result"], params={"wait": 20})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def runs(stack: Stack, ack: httpx.Response) -> int:
    return len([line for line in tally(stack) if line[1] == ack.json()["task_id"]])


async def test_a_repeat_is_answered_like_the_first_and_done_once(
    stack: Stack, client: httpx.AsyncClient, other: httpx.AsyncClient, key: str
) -> None:
    first = await send(client, key)
    assert (first.status_code, "idempotent-replayed" in first.headers) == (202, False)
    under_way = await send(other, key)
    document = await end(client, first)
    ended = await send(client, key)
    for again in (under_way, ended):
        assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
        assert again.content == first.content
        assert (again.headers["location"], again.headers["x-correlation-id"]) == (
            first.headers["location"],
            first.headers["x-correlation-id"],
        )
    assert document["created_at"] == first.json()["accepted_at"]
    assert runs(stack, first) == 1


async def test_a_repeat_after_the_mission_was_retired_runs_nothing(
    stack: Stack, client: httpx.AsyncClient, key: str
) -> None:
    first = await send(client, key)
    await end(client, first)

    async def gone() -> bool:
        return (await client.get(first.json()["links"]["result"])).status_code == 410

    await eventually(gone)
    again = await send(client, key)
    assert (again.status_code, again.content) == (202, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert await gone(), "what is no longer kept stays so"
    assert runs(stack, first) == 1
    problem(await send(client, key, {"type": "test.five"}), 422, "idempotency_mismatch")


async def test_another_command_under_the_key_is_refused_and_changes_nothing(
    stack: Stack, client: httpx.AsyncClient, key: str
) -> None:
    first = await send(client, key)
    for changed in (
        NOOP | {"payload": {"n": 2}},
        NOOP | {"payload": {"n": 1.0}},
        NOOP | {"priority": "urgent"},
        NOOP | {"note": "ours to keep"},
    ):
        refused = problem(await send(client, key, changed), 422, "idempotency_mismatch")
        assert refused["retryable"] is False
        assert refused["errors"][0]["pointer"] == "/idempotency_key"
    assert (await send(client, key)).content == first.content
    await end(client, first)
    assert runs(stack, first) == 1


async def test_the_key_may_be_in_the_command_or_in_the_header_or_in_both(client: httpx.AsyncClient, key: str) -> None:
    first = await client.post("/v1/commands", json=NOOP | {"idempotency_key": key})
    spaced = json.dumps(NOOP, indent=2).encode()
    both = JSON | {"idempotency-key": f'"{key}"'}
    for again in (
        await send(client, key),
        await client.post("/v1/commands", content=spaced, headers=both),
        await client.post("/v1/commands", json=NOOP | {"idempotency_key": key}, headers=both),
    ):
        assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    different = {"idempotency-key": key + "2"}
    refused = await client.post("/v1/commands", json=NOOP | {"idempotency_key": key}, headers=different)
    assert problem(refused, 422, "invalid")["errors"][0]["pointer"] == "/idempotency_key"
    twice = [("idempotency-key", key), ("idempotency-key", key + "2")]
    problem(await client.post("/v1/commands", json=NOOP, headers=twice), 422, "invalid")


async def test_the_same_command_under_another_key_is_another_one(client: httpx.AsyncClient, key: str) -> None:
    one, two = await send(client, key + "1"), await send(client, key + "2")
    assert one.json()["task_id"] != two.json()["task_id"]
    assert "idempotent-replayed" not in two.headers


async def test_many_at_once_by_two_foregrounds_are_one(
    stack: Stack, client: httpx.AsyncClient, other: httpx.AsyncClient, key: str
) -> None:
    acks = await asyncio.gather(*(send(door, key) for door in (client, other) * 20))
    assert {ack.status_code for ack in acks} == {202}
    assert len({ack.content for ack in acks}) == 1
    assert ["idempotent-replayed" in ack.headers for ack in acks].count(False) == 1
    await end(client, acks[0])
    assert runs(stack, acks[0]) == 1


async def test_a_key_is_kept_for_a_day_however_short_results_are(
    stack: Stack, client: httpx.AsyncClient, key: str
) -> None:
    await send(client, key)
    with redis.Redis.from_url(stack.redis_url) as server:
        assert 86_390 < int(str(server.ttl(f"dl:{{s0}}:idem:default:{key}"))) <= 86_400


async def test_a_socket_that_repeats_a_command_is_told_all_of_it(
    stack: Stack, client: httpx.AsyncClient, key: str
) -> None:
    async with talking(stack.ws) as talk, talking(stack.foregrounds[1].ws) as second:
        task_id = await talk.submit("test.five", idempotency_key=key)
        await talk.result(task_id)
        assert len(talk.check(task_id)) == 6
        assert await second.submit("test.five", idempotency_key=key) == task_id
        await second.result(task_id)
        assert second.check(task_id) == talk.check(task_id)
        again = await send(client, key, {"type": "test.five", "payload": {}})
        assert (again.json()["task_id"], again.headers["idempotent-replayed"]) == (task_id, "true")
        await second.say("submit", ref="x", command={"type": "test.noop", "payload": {}, "idempotency_key": key})
        refused = await second.until(lambda frame: frame.get("ref") == "x")
        assert (refused["op"], refused["problem"]["code"]) == ("error", "idempotency_mismatch")


async def test_a_socket_that_repeats_what_waits_is_told_of_it_once(
    stack: Stack, client: httpx.AsyncClient, key: str
) -> None:
    command: dict[str, Any] = {"type": "test.slow", "payload": {"seconds": 0.4, "entity": key}}
    await client.post("/v1/commands", json=command)  # holds the target, so that all that is to be told comes later
    first = await send(client, key, command)
    task_id = first.json()["task_id"]
    async with talking(stack.foregrounds[1].ws) as talk:
        tries = [await talk.submit(command["type"], command["payload"], idempotency_key=key) for _ in range(3)]
        assert tries == [task_id] * 3, "each is acknowledged"
        await talk.result(task_id)
        assert [event["state"] for event in talk.check(task_id)] == ["ACTING", "CHECKING", "SUCCEEDED"]
    assert (await end(client, first))["status"] == "SUCCEEDED"


async def test_a_socket_that_repeats_what_is_no_longer_kept_is_told_so(
    stack: Stack, client: httpx.AsyncClient, key: str
) -> None:
    first = await send(client, key)
    await end(client, first)

    async def gone() -> bool:
        return (await client.get(first.json()["links"]["result"])).status_code == 410

    await eventually(gone)
    async with talking(stack.ws) as talk:
        assert await talk.submit(NOOP["type"], NOOP["payload"], idempotency_key=key) == first.json()["task_id"]
        assert (await talk.next())["problem"]["code"] == "expired"


async def test_the_header_is_documented(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()["paths"]["/v1/commands"]["post"]
    assert [one["name"] for one in described["parameters"]] == ["Idempotency-Key", "Prefer"]
