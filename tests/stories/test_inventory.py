"""The home's inventory with real processes: edited as a file, by HTTP and by the command line, seen by all at once."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from typer.testing import CliRunner, Result

from dualloop.cli import app
from dualloop.client import Client, ClientProblem
from dualloop.home.inventory import demonstration_inventory, furnish
from shared.home import EMPTY, Inventory, read, schema
from tests.stories.stack import Stack, running
from tests.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

MISSIONS = "tests.missions.household"
HOME = "/v1/home"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """Two foregrounds of one machine, which share the file, and a worker."""
    folder = tmp_path_factory.mktemp("home")
    async with running(module_redis_url, folder, foregrounds=2, DUALLOOP_MISSIONS=MISSIONS) as stack:
        yield stack


@pytest_asyncio.fixture(loop_scope="module")
async def file(stack: Stack) -> Path:
    """The file, with a hall in it that all have seen."""
    path = stack.folder / "home.json"
    edit(path, "hall")
    await known(stack, "hall")
    return path


@pytest_asyncio.fixture(loop_scope="module")
async def http(stack: Stack) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=30) as http:
        yield http


def document(*areas: str) -> dict[str, Any]:
    return {"areas": [{"id": area} for area in areas]}


def held(path: Path) -> Inventory:
    return read(path.read_bytes())


def edit(path: Path, *areas: str) -> None:
    path.write_text(json.dumps(document(*areas)))


async def asked(stack: Stack) -> dict[str, Any]:
    """What a worker's handler says of the home."""
    async with Client(stack.foregrounds[1].url) as client:
        ack = await client.submit("test.household")
        result: dict[str, Any] = (await client.wait(ack.correlation_id, timeout=60))["result"]
    return result


async def known(stack: Stack, *areas: str) -> None:
    """Wait until handlers know of these."""

    async def look() -> bool:
        return bool((await asked(stack))["areas"] == list(areas))

    await eventually(look, what=f"a handler knows of {areas}")


async def test_an_edited_file_is_in_every_process_and_a_bad_one_changes_nothing(
    stack: Stack, file: Path, http: httpx.AsyncClient
) -> None:
    edit(file, "hall", "den")
    await known(stack, "hall", "den")
    before = (await http.get(HOME)).json()
    assert (before["trouble"], before["inventory"]["areas"][1]["id"]) == (None, "den")
    assert before["revision"] == (await asked(stack))["revision"] == held(file).revision

    edit(file, "hall", "hall")

    async def told() -> Any:
        async with Client(stack.foregrounds[1].url) as client:
            return (await client.home.look())["trouble"]

    trouble = await eventually(told, what="any foreground tells what is wrong with the file")
    assert trouble["detail"] == "home.json: /areas/1/id: 'hall' is that of /areas/0 already"
    assert [error["pointer"] for error in trouble["errors"]] == ["/areas/1/id"]
    assert trouble["detail"] in stack.foregrounds[0].tail() + stack.foregrounds[1].tail()
    now = (await http.get(HOME)).json()
    assert (now["revision"], now["inventory"]) == (before["revision"], before["inventory"])
    assert await asked(stack) == {"revision": before["revision"], "areas": ["hall", "den"]}

    edit(file, "attic")
    await known(stack, "attic")
    assert (await http.get(HOME)).json()["trouble"] is None


async def test_of_clients_that_replace_it_at_the_same_time_one_is_taken_and_the_others_are_told(
    stack: Stack, file: Path, http: httpx.AsyncClient
) -> None:
    found = await http.get(HOME)
    assert (await http.get(HOME, headers={"if-none-match": found.headers["etag"]})).status_code == 304

    async def put(n: int, url: str) -> httpx.Response:
        return await http.put(url + HOME, json=document(f"room{n}"), headers={"if-match": found.headers["etag"]})

    urls = [foreground.url for foreground in stack.foregrounds]
    answers = await asyncio.gather(*(put(n, urls[n % 2]) for n in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]
    [taken] = [answer for answer in answers if answer.status_code == 200]
    refused = next(answer for answer in answers if answer.status_code == 412)
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["code"] == "home_changed"
    assert taken.json()["revision"] in refused.json()["detail"]
    assert taken.headers["etag"] != found.headers["etag"]
    [area] = taken.json()["inventory"]["areas"]
    await known(stack, area["id"])
    assert held(file).revision == taken.json()["revision"], "who edits the file next edits this one"
    after = (await http.get(HOME)).json()
    assert after == taken.json(), "nobody took the file for an edit"


REFUSED: list[tuple[bytes, str, int, list[str]]] = [
    (b'{"areas": [', "application/json", 400, [""]),
    (b"[]", "application/json", 422, [""]),
    (b'{"rooms": []}', "application/json", 422, ["/rooms"]),
    (b'{"devices": [{"entity": "a.b", "area": "x"}], "v": 1}', "application/json", 422, ["/devices/0/area"]),
    (b'{"areas": [{"id": "\\ud800"}]}', "application/json", 400, [""]),
    (b"{}", "text/plain", 415, []),
    (b"{" + b" " * 2**20 + b"}", "application/json", 413, []),
]


async def test_what_is_no_inventory_is_refused_and_changes_nothing(
    stack: Stack, file: Path, http: httpx.AsyncClient
) -> None:
    before = held(file)
    for body, kind, status, pointers in REFUSED:
        answer = await http.put(HOME, content=body, headers={"content-type": kind})
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), body[:50]
        assert [error["pointer"] for error in answer.json()["errors"]] == pointers, body[:50]
        assert (answer.json()["code"] == "invalid_home") is (status == 422)
    assert (await asked(stack))["areas"] == ["hall"]
    assert held(file) == before


async def test_the_client_replaces_what_it_has_seen(stack: Stack, file: Path) -> None:
    async with Client(stack.url) as client:
        seen = await client.home.look()
        replaced = await client.home.replace(document("den"), revision=seen["revision"])
        with pytest.raises(ClientProblem) as caught:
            await client.home.replace(document("attic"), revision=seen["revision"])
        assert (caught.value.status, caught.value.code) == (412, "home_changed")
        assert (await client.home.look()) == replaced
        assert [area["id"] for area in (await client.home.replace({}))["inventory"]["areas"]] == []
        assert (await client.home.look())["revision"] == EMPTY.revision
    assert held(file) == EMPTY


async def test_the_command_line_takes_it_along_and_brings_it_in(
    stack: Stack, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUALLOOP_URL", stack.url)

    async def run(*args: str, stdin: str | None = None) -> Result:
        return await asyncio.to_thread(lambda: CliRunner().invoke(app, ["home", *args], input=stdin))

    given = tmp_path / "given.json"
    furnish(given)
    inventory = held(given)
    assert (await run("export", str(tmp_path / "before.json"))).output.startswith(
        "Wrote 1 area, 0 devices, 0 scenes to "
    )
    counts = f"{len(inventory.areas)} areas, {len(inventory.devices)} devices, {len(inventory.scenes)} scenes"
    assert (await run("import", str(given))).output == f"The home has {counts}, revision {inventory.revision}.\n"
    await known(stack, *(area.id for area in inventory.areas))
    assert held(file) == inventory
    assert (await run("export")).output == demonstration_inventory()
    bad = demonstration_inventory().replace('"area": "hall"', '"area": "attic"')
    refusal = "-: /devices/4/area: there is no area 'attic'"
    assert str((await run("import", "-", stdin=bad)).exception).startswith(refusal)
    late = await run("import", str(given), "--revision", "older")
    assert f"The home is at revision {inventory.revision} by now" in str(late.exception)
    assert "No such file" in str((await run("import", "nowhere.json")).exception)
    assert json.loads((await run("schema")).output) == schema()
