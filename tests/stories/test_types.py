"""Mission types as they are shown: over HTTP, in the terminal; and as a file that a first start begins with."""

from collections.abc import AsyncIterator
from pathlib import Path
from xml.etree import ElementTree as ET

import httpx
import pytest
import redis
from pydantic_core import from_json, to_json

from dualloop.client import Client
from frontend_loop.diagram import diagram
from frontend_loop.diagram_mermaid import mermaid
from frontend_loop.diagram_svg import POLICY
from frontend_loop.diagram_text import text
from frontend_loop.ingress.types import preferred
from shared import keys
from tests.missions.plain import Patient, Slow
from tests.stories.stack import MISSIONS, Stack, running
from tests.stories.terminal import Terminal
from tests.waiting import eventually


@pytest.fixture
async def stack(redis_url: str, tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(redis_url, tmp_path) as stack:
        yield stack


def terminal(stack: Stack, folder: Path, **env: str) -> Terminal:
    return Terminal(folder, DUALLOOP_URL=stack.url, **env)


async def test_a_type_is_served_with_its_drawings_and_each_of_them_alone(stack: Stack) -> None:
    path = "/v1/mission-types/test.slow"
    async with httpx.AsyncClient(base_url=stack.url, trust_env=False, timeout=60) as client:
        shown = await client.get(path)
        assert shown.headers["content-type"] == "application/json"
        graph = shown.json()["graph"]
        assert graph["mermaid"] == mermaid(diagram(Slow.definition.row()))
        for query, accept in (("?format=svg", "*/*"), ("", "image/avif,image/svg+xml,*/*;q=0.8")):
            bare = await client.get(path + query, headers={"accept": accept})
            assert bare.headers["content-type"] == "image/svg+xml"
            assert bare.headers["content-security-policy"] == POLICY
            assert bare.headers["x-content-type-options"] == "nosniff"
            assert bare.headers["vary"] == "Accept"
            assert bare.text == graph["svg"]
            ET.fromstring(bare.text)  # noqa: S314  our own
        for query, accept in (("?format=mermaid", "*/*"), ("", "application/vnd.mermaid")):
            bare = await client.get(path + query, headers={"accept": accept})
            assert bare.headers["content-type"] == "application/vnd.mermaid"
            assert bare.text == graph["mermaid"]
        refused = await client.get(path, params={"format": "png"})
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid")
        for accept in ("text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8", "text/nothing", ";q=x"):
            assert (await client.get(path, headers={"accept": accept})).json()["graph"] == graph


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("*/*", "json"),
        ("", "json"),
        ("image/svg+xml", "svg"),
        ("image/*", "json"),
        ("application/json, image/svg+xml", "json"),
        ("application/json;q=0.5, image/svg+xml;q=0.6", "svg"),
        ("image/svg+xml;q=0, */*", "json"),
        ("Application/Vnd.Mermaid; Q=0.9", "mermaid"),
    ],
)
def test_accept_is_understood(accept: str, wanted: str) -> None:
    assert preferred(accept) == wanted


async def test_a_type_is_drawn_in_the_terminal(stack: Stack, tmp_path: Path) -> None:
    line = terminal(stack, tmp_path)
    shown = await line.run("types", "show", "test.patient")
    assert (shown.code, shown.err) == (0, "")
    for drawn in text(diagram(Patient.definition.row())).splitlines():
        assert f"\n{drawn}\n" in shown.out
    flow = await line.run("types", "show", "test.patient", "--mermaid")
    assert flow.out == mermaid(diagram(Patient.definition.row()))
    picture = await line.run("types", "show", "test.patient", "--svg", "patient.svg")
    assert picture.out == "Drew test.patient@1 into patient.svg\n"
    assert ET.parse(tmp_path / "patient.svg").getroot().tag.endswith("svg")  # noqa: S314  our own
    nowhere = await line.run("types", "show", "test.patient", "--svg", "no/folder/patient.svg")
    assert (nowhere.code, nowhere.out) == (1, "")
    assert nowhere.err == "no/folder/patient.svg cannot be written: No such file or directory.\n"


async def test_types_of_workers_and_of_modules_are_the_same_file(redis_url: str, tmp_path: Path) -> None:
    missions = f"{MISSIONS},tests.missions.versions.third"
    async with running(redis_url, tmp_path, DUALLOOP_MISSIONS=missions) as stack:
        line = terminal(stack, tmp_path, DUALLOOP_MISSIONS=missions)
        live = await line.run("types", "export", "live.json")
        assert (live.code, live.err) == (0, "")
        assert "device.control@1" in live.out
        assert "test.order@2, test.order@3" in live.out
        assert "DUALLOOP_CATALOGUE=live.json" in live.out
    installed = await line.run("types", "export", "installed.json", "--installed")
    assert (installed.code, installed.err) == (0, "")
    assert (tmp_path / "live.json").read_bytes() == (tmp_path / "installed.json").read_bytes()


@pytest.fixture
async def exported(tmp_path: Path) -> Path:
    """A catalogue of the test missions, and of a type that no worker knows; one row is older than its worker's."""
    file = tmp_path / "catalogue.json"
    told = await Terminal(tmp_path, DUALLOOP_MISSIONS=MISSIONS).run("types", "export", str(file), "--installed")
    assert told.code == 0, told.err
    document = from_json(file.read_bytes())
    [noop] = [row for row in document["rows"] if row["type"] == "test.noop"]
    document["rows"].append(noop | {"type": "test.unborn"})
    noop["description"] = "As the file has it."
    file.write_bytes(to_json(document))
    return file


async def test_commands_are_taken_before_any_worker_ran(redis_url: str, tmp_path: Path, exported: Path) -> None:
    async with (
        running(redis_url, tmp_path, workers=0, foregrounds=2, DUALLOOP_CATALOGUE=str(exported)) as stack,
        Client(stack.url) as client,
    ):

        async def told() -> str:
            return str((await client.mission_type("test.noop"))["description"])

        await eventually(stack.foregrounds[0].tells_types, what="the file is known")
        assert await told() == "As the file has it."
        ack = await client.submit("test.noop", {"n": 7})
        assert ack.status == "PENDING"
        await stack.start([stack.worker()])
        assert (await client.wait(ack.correlation_id, timeout=60))["result"] == {"n": 7}

        async def won() -> bool:
            return await told() == "Done at once."

        await eventually(won, what="the row of the live worker takes the place of the file's")
        with redis.Redis.from_url(redis_url) as server:  # so that it goes, as all that no worker announces
            assert server.zscore(keys.CATALOGUE_SEEN, "test.unborn@1") is not None


async def test_a_catalogue_that_is_there_is_left_alone(redis_url: str, tmp_path: Path, exported: Path) -> None:
    async with running(redis_url, tmp_path) as stack, Client(stack.url) as client:
        await stack.foregrounds[0].restart(DUALLOOP_CATALOGUE=str(exported))
        await eventually(stack.foregrounds[0].tells_types, what="the catalogue is known")
        types = {row["type"]: row["description"] for row in await client.mission_types()}
        assert types["test.noop"] == "Done at once."
        assert "test.unborn" not in types


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "{file}, which DUALLOOP_CATALOGUE names, cannot be read: No such file or directory"),
        (b"[", "{file} is no catalogue: write it anew: dualloop types export FILE"),
        (b'{"v": 2, "rows": []}', "{file} is no catalogue of this release: write it anew: dualloop types export FILE"),
        (b'{"v": 1}', "{file} is no catalogue: write it anew: dualloop types export FILE"),
        (b'{"v": 1, "rows": [{}]}', "{file} has a row that is none (('type',): Field required): write it anew"),
    ],
)
async def test_a_file_that_is_none_is_said_at_the_start(
    redis_url: str, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / "catalogue.json"
    if content is not None:
        file.write_bytes(content)
    line = Terminal(tmp_path, DUALLOOP_REDIS_URL=redis_url, DUALLOOP_CATALOGUE=str(file), DUALLOOP_PORT="0")
    said = await line.run("foreground")
    assert said.code == 1
    assert said.err.startswith(sentence.format(file=file))
    assert said.err.count("\n") == 1
