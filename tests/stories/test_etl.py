"""A file into a table, on real processes; nothing is killed here."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import pytest
import pytest_asyncio

from tests import etl_source
from tests.processes.commands import Front
from tests.stories.stack import Stack, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

PEOPLE: dict[str, Any] = {
    "fields": [{"name": "id", "type": "integer", "required": True}, {"name": "name", "required": True}],
    "key": ["id"],
}


class Works:
    """A client of the front, the folder that is read, and the database."""

    def __init__(self, stack: Stack, front: Front) -> None:
        self.stack, self.front = stack, front
        self.data = stack.folder / "data"
        self.data.mkdir(exist_ok=True)

    async def run(self, source: str, table: str, **job: Any) -> dict[str, Any]:
        """The end of an `etl.run`."""
        one = await self.front.send("etl.run", payload=PEOPLE | {"source": source, "table": table} | job)
        return await self.front.end(one)

    async def rejects(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """The report that a result links to."""
        answer = await self.front.client.get(document["result"]["report"])
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]

    def ask(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.stack.folder / "data.sqlite")) as db:
            return db.execute(sql).fetchall()

    def files(self, task_id: str) -> list[str]:
        """What is left of the files of a run."""
        folder = self.stack.folder / "files" / task_id
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_works(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Works]:
    folder = tmp_path_factory.mktemp("etl")
    async with running(module_redis_url, folder, DUALLOOP_DATA_DIR=str(folder / "data")) as stack:
        front = Front(stack.foregrounds[0])
        yield Works(stack, front)
        await front.client.aclose()


@pytest.fixture
def works(shared_works: Works) -> Works:
    return shared_works


async def test_each_good_row_is_in_the_table_and_each_bad_one_in_the_report(works: Works) -> None:
    sales = etl_source.write(works.data / "sales.csv", rows=1_500, seed=1, bad=0.03)
    one = await works.front.send("etl.run", payload=etl_source.JOB | {"chunk_rows": 200})
    document = await works.front.end(one)
    assert document["status"] == "SUCCEEDED", document
    assert document["result"] == {
        "table": "sales",
        "rows": 1_500,
        "loaded": len(sales.good),
        "rejected": len(sales.bad),
        "lost": 0,
        "chunks": 8,
        "report": f"/v1/files/{one}/rejects.jsonl",
    }
    assert document["progress"] == {"done": 1_500, "total": 1_500, "message": "8 chunks are loaded"}
    assert dict(works.ask("SELECT id, total_cents FROM sales")) == sales.good
    assert works.ask("SELECT count(*) FROM sales WHERE email GLOB '*[A-Z]*'") == [(0,)]
    rejects = await works.rejects(document)
    assert [one["line"] for one in rejects] == sales.bad
    assert all(one["reason"] and one["raw"] for one in rejects)
    assert works.files(one) == ["rejects.jsonl"], "what lay between the stages is gone"


@pytest.mark.parametrize("form", ["json", "jsonl"])
async def test_json_is_read_as_an_array_or_line_by_line(works: Works, form: str) -> None:
    people = [{"id": n, "name": f"Person {n}", "more": [n]} for n in range(1, 8)]
    text = json.dumps(people, indent=1) if form == "json" else "\n".join(map(json.dumps, people))
    (works.data / f"people.{form}").write_text(text)
    document = await works.run(f"people.{form}", f"people_{form}", chunk_rows=3)
    assert document["status"] == "SUCCEEDED", document
    assert (document["result"]["chunks"], document["result"]["report"]) == (3, None)
    loaded = works.ask({"json": "SELECT id, name FROM people_json", "jsonl": "SELECT id, name FROM people_jsonl"}[form])
    assert loaded == [(n, f"Person {n}") for n in range(1, 8)]


async def test_a_file_without_rows_makes_a_table_without_rows(works: Works) -> None:
    (works.data / "empty.csv").write_text("id,name\n")
    document = await works.run("empty.csv", "empty")
    assert (document["status"], document["result"]["rows"]) == ("SUCCEEDED", 0)
    assert works.ask("SELECT * FROM empty") == []


async def test_what_is_loaded_a_second_time_is_told_row_by_row(works: Works) -> None:
    (works.data / "again.csv").write_text("id,name\n1,Ada\n2,Bo\n")
    assert (await works.run("again.csv", "again"))["result"]["loaded"] == 2
    document = await works.run("again.csv", "again", budget={"count": 2})
    assert (document["status"], document["result"]["loaded"], document["result"]["rejected"]) == ("SUCCEEDED", 0, 2)
    assert [one["reason"] for one in await works.rejects(document)] == [
        "duplicate: id 1 is there already",
        "duplicate: id 2 is there already",
    ]


async def test_once_too_many_rows_are_bad_it_is_given_up_and_says_which(works: Works) -> None:
    rows = "".join(f"{n if n % 3 else 'x'},Person {n}\n" for n in range(1, 31))
    (works.data / "bad.csv").write_text(f"id,name\n{rows}")
    document = await works.run("bad.csv", "bad", chunk_rows=5, at_once=1, budget={"count": 2})
    assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
    assert document["error"]["message"] == "3 of 30 items failed, and 2 may"
    result, rejects = document["result"], await works.rejects(document)
    assert result["loaded"] + result["rejected"] + result["lost"] == 30
    assert result["loaded"] == works.ask("SELECT count(*) FROM bad")[0][0] < 20
    bad, left = [one for one in rejects if "raw" in one], [one for one in rejects if "rows" in one]
    assert [one["line"] for one in bad][:3] == [4, 7, 10]
    assert sum(one["rows"] for one in left) + len(bad) + result["loaded"] == 30
    assert left[-1] == {"line": 27, "reason": "not loaded: 3 of 30 items failed, and 2 may", "rows": 5}


@pytest.mark.parametrize(
    ("source", "content", "message"),
    [
        ("none.csv", None, "SourceError: none.csv is not in "),
        ("head.csv", "number,name\n1,Ada\n", "SourceError: the header has 'id' 0 times, and not once: number, name"),
        ("object.json", "{}", "SourceError: the file is no JSON array"),
        ("cut.json", '[{"id": 1, "name": "Ada"}', "SourceError: the array that the file is has no end"),
    ],
)
async def test_what_is_no_source_ends_it_before_anything_is_loaded(
    works: Works, source: str, content: str | None, message: str
) -> None:
    if content is not None:
        (works.data / source).write_text(content)
    document = await works.run(source, "untouched")
    assert (document["status"], document["error"]["code"]) == ("FAILED", "permanent")
    assert document["error"]["message"].startswith(message)
    assert works.ask("SELECT name FROM sqlite_master WHERE name = 'untouched'") == []


async def test_a_table_that_the_rows_do_not_fit_ends_it_before_anything_is_loaded(works: Works) -> None:
    (works.data / "fit.csv").write_text("id,name\n1,Ada\n")
    with closing(sqlite3.connect(works.stack.folder / "data.sqlite")) as db:
        db.execute("CREATE TABLE fit (id INTEGER, name TEXT)")
    document = await works.run("fit.csv", "fit")
    assert document["error"]["state"] == "PREPARING"
    assert document["error"]["message"].startswith("TableError: the table fit is there, and cannot take these rows: ")
    assert (await works.run("fit.csv", "fit", key=[]))["result"]["loaded"] == 1


async def test_what_was_put_right_is_replayed_from_where_it_failed(works: Works) -> None:
    document = await works.run("late.csv", "late")
    assert document["error"]["state"] == "SURVEYING"
    (works.data / "late.csv").write_text("id,name\n1,Ada\n")
    answer = await works.front.client.post(f"/v1/dead-letters/{document['task_id']}/replay", json={})
    assert answer.status_code == 202, answer.text
    assert (await works.front.end(document["task_id"]))["result"]["loaded"] == 1


@pytest.mark.parametrize(
    "wrong", [{"source": "../secret.csv"}, {"source": "/etc/passwd"}, {"table": "x; DROP TABLE y"}]
)
async def test_nonsense_is_refused_at_the_door(works: Works, wrong: dict[str, Any]) -> None:
    payload = PEOPLE | {"source": "it.csv", "table": "t"} | wrong
    answer = await works.front.client.post("/v1/commands", json={"type": "etl.run", "payload": payload})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["errors"][0]["pointer"] == f"/payload/{next(iter(wrong))}"


async def test_a_link_out_of_the_folder_leads_nowhere(works: Works) -> None:
    (works.stack.folder / "secret.csv").write_text("id,name\n1,secret\n")
    (works.data / "link.csv").symlink_to(works.stack.folder / "secret.csv")
    document = await works.run("link.csv", "untouched")
    assert document["error"]["message"].startswith("SourceError: link.csv leads out of ")


@pytest.mark.parametrize("stage", ["etl.extract", "etl.transform", "etl.load"])
async def test_a_stage_is_begun_by_a_run_alone(works: Works, stage: str) -> None:
    (works.data / "people.csv").write_text("id,name\n1,Ada\n")
    payload = {
        "job": PEOPLE | {"source": "people.csv", "table": "untouched"},
        "n": 0,
        "piece": [8, 14, 2, 1],
        "columns": ["id", "name"],
        "stamp": "",
        "load": "",
    }
    one = await works.front.send(stage, payload=payload, parent="0" * 40)
    document = await works.front.end(one)
    assert document["error"]["message"] == f"NotOfARunError: {stage} is a stage of etl.run: send that one"
    assert works.files(one) == works.files("0" * 40) == []
