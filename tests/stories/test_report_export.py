"""`report.export` as a client has it: a command, its progress, a file that is the table."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.processes.commands import Front
from tests.reports import fill, person, read
from tests.stories.stack import running

pytestmark = pytest.mark.asyncio(loop_scope="module")
COUNT = 12_345


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def front(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Front]:
    folder = tmp_path_factory.mktemp("report")
    fill(folder / "data.sqlite", COUNT)
    async with running(module_redis_url, folder) as stack:
        front = Front(stack.foregrounds[0])
        yield front
        await front.client.aclose()


async def exported(front: Front, **payload: Any) -> dict[str, Any]:
    return await front.end(await front.send("report.export", payload={"table": "people"} | payload))


async def test_what_is_downloaded_is_the_table(front: Front) -> None:
    document = await exported(front)
    assert document["status"] == "SUCCEEDED", document
    assert document["progress"] == {"done": COUNT, "total": COUNT, "message": None}
    result = document["result"]
    answer = await front.client.get(result["file"])
    assert answer.headers["content-disposition"] == 'attachment; filename="report.csv"'
    assert (len(answer.content), result["rows"]) == (result["bytes"], COUNT)
    assert read(answer.content) == [person(n) for n in range(1, COUNT + 1)]


async def test_a_part_of_it_comes_in_the_form_and_under_the_name_that_was_asked_for(front: Front) -> None:
    where = [{"column": "city", "op": "in", "value": ["City 1", "City 2"]}, {"column": "id", "op": "<", "value": 20}]
    document = await exported(front, columns=["id", "city"], where=where, format="json", name="some.json")
    rows = json.loads((await front.client.get(document["result"]["file"])).content)
    wanted = [person(n) for n in range(1, 20)]
    assert rows == [{"id": id_, "city": city} for id_, _, city, _ in wanted if city in {"City 1", "City 2"}]
    assert document["result"]["file"].endswith("/some.json")


async def test_a_view_is_a_query_that_an_operator_has_written(front: Front) -> None:
    document = await exported(front, table="tall", format="jsonl")
    lines = (await front.client.get(document["result"]["file"])).text.splitlines()
    assert len(lines) == document["result"]["rows"] == COUNT - 40
    assert json.loads(lines[0]) == {"name": person(41)[1], "size": 10.25}


async def test_a_table_that_is_not_there_fails_it_at_once_and_says_which_are(front: Front) -> None:
    document = await exported(front, table="nobody")
    assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
    assert "there is no table 'nobody': there are people, tall" in document["error"]["message"]


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"table": "people", "where": "1=1"},
        {"table": "people", "where": [{"column": "id", "op": "glob", "value": "*"}]},
        {"table": "people", "format": "xlsx"},
        {"table": "people", "name": "../../etc/passwd"},
        {"table": "people", "sql": "DROP TABLE people"},
    ],
)
async def test_nonsense_is_refused_at_the_door(front: Front, payload: dict[str, Any]) -> None:
    answer = await front.client.post("/v1/commands", json={"type": "report.export", "payload": payload})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), answer.text


async def test_without_a_database_it_says_what_to_do(redis_url: str, tmp_path: Path) -> None:
    async with running(redis_url, tmp_path) as stack:
        front = Front(stack.foregrounds[0])
        document = await exported(front)
        assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
        assert "load something into it first" in document["error"]["message"]
        await front.client.aclose()
