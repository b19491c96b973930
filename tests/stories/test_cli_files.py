"""Files of missions on the command line and in the client."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from dualloop.cli.files import size
from dualloop.client import Client, ClientProblem, UnreachableError
from tests.stories.stack import Stack, running
from tests.stories.terminal import Terminal

pytestmark = pytest.mark.asyncio(loop_scope="module")
TEXT = "".join(f"line {n}\n" for n in range(20_000))
DEAD = "http://127.0.0.1:9"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    folder = tmp_path_factory.mktemp("files")
    async with running(
        module_redis_url, folder, DUALLOOP_MISSIONS="tests.missions.filing,tests.missions.plain"
    ) as stack:
        yield stack


@pytest.fixture
def terminal(stack: Stack, tmp_path: Path) -> Terminal:
    return Terminal(tmp_path, DUALLOOP_URL=stack.url)


async def made(stack: Stack, type_: str = "test.filing", **payload: str) -> str:
    async with Client(stack.url) as client:
        ack = await client.submit(type_, payload)
        assert (await client.wait(ack.task_id, timeout=60))["status"] == "SUCCEEDED"
        return ack.task_id


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_the_client_lists_and_downloads(stack: Stack, tmp_path: Path) -> None:
    one = await made(stack, text=TEXT)
    (tmp_path / "here.txt.part").write_text("of somebody else")
    async with Client((DEAD, stack.url)) as client:
        [file] = await client.files.ls(one)
        assert (file["name"], file["bytes"]) == ("sheet.txt", len(TEXT))
        await client.files.download(one, "sheet.txt", tmp_path / "here.txt")
        assert (tmp_path / "here.txt").read_text() == TEXT
        with pytest.raises(ClientProblem) as missing:
            await client.files.download(one, "other.txt", tmp_path / "other.txt")
        assert missing.value.code == "no_file"
        there = sorted(path.name for path in _inside(tmp_path))
        assert there == ["here.txt", "here.txt.part"], "nothing is left of one that failed"
        assert (tmp_path / "here.txt.part").read_text() == "of somebody else"
    async with Client(DEAD) as client:
        with pytest.raises(UnreachableError):
            await client.files.download(one, "sheet.txt", tmp_path / "other.txt")


async def test_a_person_lists_and_downloads(stack: Stack, terminal: Terminal) -> None:
    one = await made(stack, text=TEXT)
    said = await terminal.run("missions", "files", one)
    assert (said.code, "sheet.txt" in said.out, f"/v1/files/{one}/sheet.txt" in said.out) == (0, True, True)
    assert (await terminal.run("missions", "files", one, "--json")).json["files"][0]["bytes"] == len(TEXT)
    said = await terminal.run("missions", "download", one)
    assert (said.code, said.out) == (0, "sheet.txt: 208.9 KB in sheet.txt\n")
    assert (terminal.folder / "sheet.txt").read_text() == TEXT
    again = await terminal.run("missions", "download", one)
    assert (again.code, again.err) == (1, "sheet.txt is there already: say --to another place, or remove it.\n")
    assert (await terminal.run("missions", "download", one, "sheet.txt", "--to", "-")).out == TEXT
    (terminal.folder / "folder").mkdir()
    assert (await terminal.run("missions", "download", one, "--to", "folder")).code == 0
    assert (terminal.folder / "folder" / "sheet.txt").read_text() == TEXT


async def test_a_mission_without_files_says_so(stack: Stack, terminal: Terminal) -> None:
    async with Client(stack.url) as client:
        noop = await client.submit("test.noop")
    for verb in ("files", "download"):
        said = await terminal.run("missions", verb, noop.task_id)
        assert (said.code == 0, (said.out or said.err)) == (verb == "files", "It has made no files, or none yet.\n")


async def test_a_person_is_told_what_is_wrong(stack: Stack, terminal: Terminal) -> None:
    one = await made(stack, "test.filing_beside")
    said = await terminal.run("missions", "download", one)
    assert (said.code, said.err) == (1, "It has 2 files: name one of again-sheet.txt, sheet.txt.\n")
    said = await terminal.run("missions", "download", one, "none.txt")
    assert (said.code, "no file of this name" in said.err) == (1, True)
    said = await terminal.run("missions", "download", one, "sheet.txt", "--to", "no/such/folder")
    assert (said.code, said.err) == (1, "no/such/folder cannot be written: No such file or directory.\n")
    said = await terminal.run("missions", "files", "nobody")
    assert (said.code, "no correlation_id" in said.err) == (1, True)


@pytest.mark.parametrize(
    ("count", "told"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 KB"), (1_250_000, "1.2 MB"), (10**15, "1000.0 TB")],
)
async def test_sizes_are_told_in_units(count: int, told: str) -> None:
    assert size(count) == told
