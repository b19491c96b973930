"""Files that missions make, downloaded from a foreground: whole, resumable, and nothing else that lies on the disk."""

import http.client
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import redis

from shared import keys
from shared.ids import Ids
from tests.processes.commands import Front
from tests.stories.stack import LOCAL, Stack, running
from tests.waiting import eventually, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
TEXT = "".join(f"line {n}\n" for n in range(10_000))


class Desk:
    """A client of the front, and the folder of files."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.front = stack, Front(stack.foregrounds[0])
        self.folder = stack.folder / "files"

    async def makes(self, type_: str = "test.filing", **payload: str) -> str:
        """A mission that has made a file; its id."""
        one = await self.front.send(type_, payload=payload)
        document = await self.front.end(one)
        assert document["status"] == "SUCCEEDED", document
        return one

    def raw(self, target: str, method: str = "GET") -> tuple[int, bytes]:
        """Status and body of a request whose path is sent as it stands."""
        connection = http.client.HTTPConnection(LOCAL, self.stack.foregrounds[0].port, timeout=60)
        try:
            connection.putrequest(method, target)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(module_redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    folder = tmp_path_factory.mktemp("files")
    async with running(module_redis_url, folder, DUALLOOP_MISSIONS="tests.missions.filing") as stack:
        desk = Desk(stack)
        yield desk
        await desk.front.client.aclose()


async def test_what_a_mission_has_made_is_downloaded_as_it_stands(desk: Desk) -> None:
    one = await desk.makes(name="sheet.csv", text=TEXT)
    link = (await desk.front.end(one))["result"]["file"]
    answer = await desk.front.client.get(link)
    assert (answer.status_code, answer.text) == (200, TEXT)
    assert answer.headers["content-disposition"] == 'attachment; filename="sheet.csv"'
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    head = await desk.front.client.head(link)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(TEXT)))
    assert head.headers["etag"] == answer.headers["etag"]


async def test_handlers_in_threads_and_processes_make_files_and_read_those_of_others(desk: Desk) -> None:
    one = await desk.makes("test.filing_beside", name="beside.txt", text="from a thread")
    listing = (await desk.front.client.get(f"/v1/files/{one}")).json()["files"]
    assert [(file["name"], file["bytes"]) for file in listing] == [("again-beside.txt", 13), ("beside.txt", 13)]
    assert [(await desk.front.client.get(file["link"])).text for file in listing] == ["from a thread"] * 2
    result = (await desk.front.end(one))["result"]
    assert result["database"] == f"sqlite:///{desk.stack.folder}/data.sqlite"


@pytest.mark.parametrize(
    ("header", "begin", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=10-", 10, len(TEXT)),
        ("bytes=-7", len(TEXT) - 7, len(TEXT)),
        (f"bytes=5-{10**17}", 5, len(TEXT)),
        (f"bytes=-{10**17}", 0, len(TEXT)),
    ],
)
async def test_a_download_goes_on_where_it_was_broken_off(desk: Desk, header: str, begin: int, end: int) -> None:
    link = f"/v1/files/{await desk.makes(name='long.txt', text=TEXT)}/long.txt"
    answer = await desk.front.client.get(link, headers={"range": header})
    assert (answer.status_code, answer.text) == (206, TEXT[begin:end])
    assert answer.headers["content-range"] == f"bytes {begin}-{end - 1}/{len(TEXT)}"
    stale = {"range": header, "if-range": '"of another file"'}
    assert (await desk.front.client.get(link, headers=stale)).text == TEXT


@pytest.mark.parametrize(
    "header",
    ["bytes=0-1,5-6", "bytes=9-1", "lines=1-2", "bytes=", "bytes=a-b", "bytes=--1", "bytes=" + "9" * 5000 + "-"],
)
async def test_a_range_that_is_not_understood_is_no_range(desk: Desk, header: str) -> None:
    link = f"/v1/files/{await desk.makes(name='a.txt', text='whole')}/a.txt"
    answer = await desk.front.client.get(link, headers={"range": header})
    assert (answer.status_code, answer.text) == (200, "whole")


@pytest.mark.parametrize("header", ["bytes=5-", "bytes=99-100", "bytes=-0"])
async def test_bytes_that_the_file_does_not_have_are_refused(desk: Desk, header: str) -> None:
    link = f"/v1/files/{await desk.makes(name='a.txt', text='whole')}/a.txt"
    answer = await desk.front.client.get(link, headers={"range": header})
    assert (answer.status_code, answer.json()["code"]) == (416, "bad_range")
    assert answer.headers["content-range"] == "bytes */5"


async def test_a_part_of_an_earlier_file_is_not_asked_of_this_one(desk: Desk) -> None:
    link = f"/v1/files/{await desk.makes(name='a.txt', text='whole')}/a.txt"
    answer = await desk.front.client.get(link, headers={"range": "bytes=99-", "if-range": '"of a longer one"'})
    assert (answer.status_code, answer.text) == (200, "whole")
    same = {"range": "bytes=99-", "if-range": answer.headers["etag"]}
    assert (await desk.front.client.get(link, headers=same)).status_code == 416


async def test_who_has_it_already_is_told_so(desk: Desk) -> None:
    link = f"/v1/files/{await desk.makes()}/sheet.txt"
    etag = (await desk.front.client.get(link)).headers["etag"]
    for tags in (etag, f'"old", W/{etag}', "*"):
        answer = await desk.front.client.get(link, headers={"if-none-match": tags})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", etag)
    assert (await desk.front.client.get(link, headers={"if-none-match": '"old"'})).status_code == 200


async def test_only_whole_files_are_seen(desk: Desk) -> None:
    one = await desk.front.send("test.holding")
    await eventually((desk.folder / one / "whole.txt").exists)
    listing = (await desk.front.client.get(f"/v1/files/{one}")).json()
    assert [file["name"] for file in listing["files"]] == ["whole.txt"]
    early = await desk.front.client.get(f"/v1/files/{one}/begun.txt")
    assert (early.status_code, early.json()["code"]) == (404, "no_file")
    part = next(path.name for path in (desk.folder / one).iterdir() if path.name.startswith(".begun"))
    assert desk.raw(f"/v1/files/{one}/{part}")[0] == 404
    await desk.front.cancel(one)


async def test_a_mission_without_files_has_none(desk: Desk) -> None:
    one = await desk.front.send("test.holding")
    await desk.front.cancel(one)
    await desk.front.end(one)
    shutil.rmtree(desk.folder / one, ignore_errors=True)
    assert (await desk.front.client.get(f"/v1/files/{one}")).json() == {"files": []}
    assert (await desk.front.client.get(f"/v1/files/{one}/any")).json()["code"] == "no_file"


async def test_ids_that_are_not_ours_and_those_of_missions_that_are_gone(desk: Desk) -> None:
    for odd in ("x", "0" * 40, "Z" * 40, "a" * 5000, "%00", "."):
        for path in (f"/v1/files/{odd}", f"/v1/files/{odd}/sheet.txt"):
            assert desk.raw(path)[0] == 404, path
    gone = _genuine(desk.stack.redis_url)
    for path in (f"/v1/files/{gone}", f"/v1/files/{gone}/sheet.txt"):
        answer = await desk.front.client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (410, "expired")


def _genuine(redis_url: str, ms: int = 0) -> str:
    """The id of a mission that is no longer known."""
    with redis.Redis.from_url(redis_url) as client:
        mac_key = client.hget(keys.FLEET, "mac_key")
        assert isinstance(mac_key, bytes)
        return Ids(mac_key).new(0, ms)


async def test_no_way_leads_out_of_the_mission_s_folder(desk: Desk) -> None:
    one = await desk.makes()
    secret = desk.stack.folder / "secret.txt"
    secret.write_text("not for you")
    (desk.folder / "loose.txt").write_text("not for you")
    (desk.folder / one / "folder").mkdir()
    (desk.folder / one / "folder" / "inner.txt").write_text("not for you")
    (desk.folder / one / "linked.txt").symlink_to(secret)
    (desk.folder / one / "linked").symlink_to(desk.stack.folder)
    os.mkfifo(desk.folder / one / "pipe")
    other = _genuine(desk.stack.redis_url, 1)
    (desk.folder / other).symlink_to(desk.stack.folder)
    dots = ("..", "%2e%2e", ".%2e", "..%2f", "..%5c", "%252e%252e", "..;", "\\..")
    paths = [f"{one}/{dot}/{name}" for dot in dots for name in ("secret.txt", "../secret.txt", "loose.txt")]
    paths += [f"{one}/{dot}%2fsecret.txt" for dot in dots]
    paths += [f"{one}/{name}" for name in ("folder", "folder/inner.txt", "folder%2finner.txt", "linked.txt", "linked")]
    paths += [
        f"{one}/{name}" for name in ("pipe", "linked/secret.txt", "%00", "sheet.txt%00", "a" * 5000, "%C3%A9", "")
    ]
    paths += [f"{other}/secret.txt", f"{other}/x", "../secret.txt", "loose.txt", f"/{secret}", f"{one}//{secret}"]
    for path in paths:
        status, body = desk.raw(f"/v1/files/{path}")
        assert status in {307, 400, 404, 410}, (path, status)
        assert b"not for you" not in body, path
    listing = (await desk.front.client.get(f"/v1/files/{one}")).json()
    assert [file["name"] for file in listing["files"]] == ["sheet.txt"]
    (desk.folder / other).unlink()


async def test_files_are_read_only_for_clients(desk: Desk) -> None:
    link = f"/v1/files/{await desk.makes()}/sheet.txt"
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        assert desk.raw(link, method)[0] == 405
    assert (await desk.front.client.get(link)).status_code == 200


async def test_many_downloads_leave_no_file_open(desk: Desk) -> None:
    link = f"/v1/files/{await desk.makes()}/sheet.txt"
    await desk.front.client.get(link)
    pid = desk.stack.foregrounds[0].running.pid
    before = _open_files(pid)
    for headers in (
        {},
        {"range": "bytes=0-1"},
        {"range": "bytes=99-"},
        {"if-none-match": "*"},
        {"range": "bytes=0-1,3-4"},
    ):
        for _ in range(10):
            await desk.front.client.get(link, headers=headers)
            await desk.front.client.head(link, headers=headers)
    until(lambda: _open_files(pid) <= before + 2, what="the descriptors are closed")


def _open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


async def test_the_files_go_with_the_mission_and_nothing_else_does(redis_url: str, tmp_path: Path) -> None:
    async with running(
        redis_url,
        tmp_path,
        DUALLOOP_MISSIONS="tests.missions.filing",
        DUALLOOP_RETENTION_S="3",
        DUALLOOP_FILES_DIR=str(tmp_path / "elsewhere"),
    ) as stack:
        desk = Desk(stack)
        desk.folder = tmp_path / "elsewhere"
        waits = await desk.front.send("test.holding")
        ours = [await desk.front.send("test.filing") for _ in range(3)]
        for one in ours:
            await eventually((desk.folder / one).exists)
        kept = [desk.folder / name for name in ("of-somebody-else", "0" * 40, _genuine(redis_url).lower())]
        for folder in kept:
            folder.mkdir()
        lost = desk.folder / _genuine(redis_url, 5)
        lost.mkdir()
        await eventually(lambda: not any((desk.folder / one).exists() for one in ours), 60, "the folders are gone")
        await eventually(lambda: not lost.exists(), 60, "that of a mission nobody knows is gone")
        assert (await desk.front.client.get(f"/v1/files/{ours[0]}/sheet.txt")).status_code == 410
        assert (await desk.front.client.get(f"/v1/files/{waits}/whole.txt")).text == "all of it"
        assert all(folder.exists() for folder in kept)
        await desk.front.client.aclose()
