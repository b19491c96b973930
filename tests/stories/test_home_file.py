"""The file that people edit, Redis and the copies of workers: one truth, on a real Redis and a real file."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import redis

from backend_loop.inventory import HomeBook
from backend_loop.solo import _spawning
from backend_loop.worker import LoopWorker
from dualloop.doctor.fleet import home, served
from frontend_loop import home_file
from frontend_loop.home_file import GONE, HomeFile
from frontend_loop.inventory import Inventories
from shared import keys
from shared.errors import Problem
from shared.home import EMPTY, check, read
from shared.home_store import fetch, furnish
from shared.redis import Link
from shared.settings import Settings
from tests.missions.household import Household

SETTINGS = Settings(_env_file=None)


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[Link]:
    link = await Link(redis_url).open(wait_s=30)
    yield link
    await link.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home.json"


@pytest.fixture
def file(link: Link, path: Path) -> HomeFile:
    return HomeFile(link, path, wanted=False)


def document(*areas: str) -> dict[str, Any]:
    return {"areas": [{"id": area} for area in areas]}


def edit(path: Path, *areas: str, at: float | None = None) -> None:
    """As an editor saves it; `at`: it says that it was written then."""
    path.write_text(json.dumps(document(*areas)))
    if at is not None:
        os.utime(path, (at, at))


def spoil(path: Path) -> None:
    """As an editor leaves it in the middle of a word."""
    path.write_text('{"areas": [')


def other_folder(folder: Path) -> Path:
    (folder / "there").mkdir()
    return folder / "there"


def linked(path: Path, to: Path) -> Path:
    path.symlink_to(to)
    return path


def is_link(path: Path) -> bool:
    return path.is_symlink()


def remove(path: Path) -> None:
    path.unlink()


async def areas(link: Link) -> list[str]:
    """Of the inventory that lies in Redis."""
    stored = await fetch(link)
    return [] if stored.document is None else [area.id for area in read(stored.document).areas]


def written(path: Path) -> list[str]:
    return [area.id for area in read(path.read_bytes()).areas]


async def sent(link: Link) -> int:
    """Bytes that Redis has told since it runs."""
    told = str(await link.call("INFO", "stats"))
    return int(told.partition("total_net_output_bytes:")[2].partition("\\r")[0])


async def trouble(link: Link) -> str | None:
    stored = await fetch(link)
    return None if stored.trouble is None else str(stored.trouble["detail"])


async def test_an_edit_is_taken_in_and_workers_see_it(link: Link, path: Path, file: HomeFile) -> None:
    book = HomeBook()
    assert not await book.refresh(link)
    assert book.current() is EMPTY
    for rooms in (("hall",), ("hall", "den"), ("hall",)):
        edit(path, *rooms)
        await file._once()
        assert await book.refresh(link)
        assert tuple(area.id for area in book.current().areas) == rooms
        assert not await book.refresh(link)


async def test_who_looks_and_sees_nothing_new_reads_no_document(link: Link, path: Path, file: HomeFile) -> None:
    edit(path, *(f"room_{n}" for n in range(500)))
    await file._once()
    document = (await fetch(link)).document
    assert document is not None
    before = await sent(link)
    for _ in range(5):
        await file._once()
    assert await sent(link) - before < 3 * len(document)


async def test_a_bad_file_changes_nothing_and_its_sentence_is_told_until_it_is_put_right(
    link: Link, path: Path, file: HomeFile
) -> None:
    edit(path, "hall")
    await file._once()
    edit(path, "hall", "hall")
    for _ in range(2):
        await file._once()
        assert await areas(link) == ["hall"]
        assert await trouble(link) == "home.json: /areas/1/id: 'hall' is that of /areas/0 already"
    spoil(path)
    await file._once()
    assert "this is no JSON" in str(await trouble(link))
    edit(path, "den")
    await file._once()
    assert (await areas(link), await trouble(link)) == (["den"], None)


async def test_a_file_that_is_put_back_as_it_was_is_no_trouble_any_more(link: Link, path: Path, file: HomeFile) -> None:
    edit(path, "hall")
    await file._once()
    spoil(path)
    await file._once()
    edit(path, "hall")
    await file._once()
    assert (await areas(link), await trouble(link)) == (["hall"], None)


async def test_trouble_that_another_one_has_wiped_off_is_told_again(link: Link, path: Path, file: HomeFile) -> None:
    spoil(path)
    await file._once()
    for _ in ("another inventory", "the same one again"):
        await furnish(link, check(document("hall")))
        assert await trouble(link) is None
        await file._once()
        assert (await areas(link), "this is no JSON" in str(await trouble(link))) == (["hall"], True)


async def test_the_trouble_of_another_foreground_is_left_alone(link: Link, path: Path, tmp_path: Path) -> None:
    mine, other = HomeFile(link, path, wanted=False), HomeFile(link, tmp_path / "other.json", wanted=True)
    edit(path, "hall")
    await mine._once()
    await other._once()
    assert await trouble(link) == "other.json: there is no such file"
    edit(path, "hall")  # which says what it said before
    await mine._once()
    assert await trouble(link) is not None


async def test_a_file_that_is_gone_empties_no_home_and_is_missed(link: Link, path: Path, file: HomeFile) -> None:
    await file._once()
    assert await trouble(link) is None, "nobody has named one, and none was there"
    edit(path, "hall")
    await file._once()
    remove(path)
    for _ in range(2):
        await file._once()
        assert (await areas(link), await trouble(link)) == (["hall"], f"home.json: {GONE}")
    edit(path, "hall")
    await file._once()
    assert (await areas(link), await trouble(link)) == (["hall"], None)
    remove(path)
    await file._once()
    await Inventories(link, file, SETTINGS).replace(json.dumps(document("den")).encode(), None)
    await file._once()
    assert (written(path), await trouble(link)) == (["den"], None)


async def test_a_redis_that_has_lost_its_data_is_furnished_again(link: Link, path: Path, file: HomeFile) -> None:
    edit(path, "hall")
    await file._once()
    await link.call("DEL", keys.HOME)
    await file._once()
    assert await areas(link) == ["hall"]


async def test_a_redis_that_has_lost_the_last_change_gets_it_back_from_the_file(
    link: Link, path: Path, file: HomeFile
) -> None:
    edit(path, "hall")
    await file._once()
    before = await fetch(link)
    await Inventories(link, file, SETTINGS).replace(json.dumps(document("den")).encode(), None)
    old: list[str | bytes] = ["revision", before.revision, "document", before.document or b""]
    await link.call(
        "HSET", keys.HOME, *old, "changed_at", (before.changed_at or 0) - 1
    )  # as a replica knows it that lagged
    await file._once()
    assert (await areas(link), written(path)) == (["den"], ["den"])


async def test_what_a_client_puts_is_in_every_foregrounds_file_and_no_old_file_brings_back_what_was(
    link: Link, path: Path, tmp_path: Path
) -> None:
    files = [HomeFile(link, one, wanted=False) for one in (path, tmp_path / "other.json")]
    for one in files:
        edit(one._path, "hall")
        await one._once()
    await Inventories(link, files[0], SETTINGS).replace(json.dumps(document("den")).encode(), None)
    assert written(path) == ["den"]
    for one in (*files, HomeFile(link, tmp_path / "other.json", wanted=False)):
        await one._once()
        assert (await areas(link), written(one._path)) == (["den"], ["den"])


async def test_at_a_start_the_file_wins_if_it_came_later_whatever_it_says_of_when_it_was_written(
    link: Link, path: Path
) -> None:
    edit(path, "old")
    await furnish(link, check(document("hall")))
    await link.call("HSET", keys.HOME, "changed_at", 99_999_999_999_999)
    await HomeFile(link, path, wanted=False)._once()
    assert (await areas(link), written(path)) == (["hall"], ["hall"]), "what lies in Redis is newer"
    await link.call("HSET", keys.HOME, "changed_at", 5_000)
    edit(path, "restored", at=1.0)  # from a backup, which keeps its time
    await HomeFile(link, path, wanted=False)._once()
    assert await areas(link) == ["restored"]


async def test_a_file_that_cannot_be_written_is_409_and_nothing_changes(link: Link, path: Path, file: HomeFile) -> None:
    edit(path, "hall")
    await file._once()
    nowhere = HomeFile(link, path / "home.json", wanted=False)
    with pytest.raises(Problem) as caught:
        await Inventories(link, nowhere, SETTINGS).replace(b"{}", None)
    assert (caught.value.code, await areas(link)) == ("home_file", ["hall"])


async def test_a_folder_in_the_place_of_the_file_is_trouble_and_409(link: Link, tmp_path: Path) -> None:
    edit(tmp_path / "home.json", "hall")
    await HomeFile(link, tmp_path / "home.json", wanted=False)._once()
    file = HomeFile(link, tmp_path, wanted=False)
    await file._once()
    assert "it cannot be read: Is a directory" in str(await trouble(link))
    with pytest.raises(Problem, match="cannot be written: it is a folder"):
        await Inventories(link, file, SETTINGS).replace(json.dumps(document("den")).encode(), None)
    assert await areas(link) == ["hall"]


async def test_of_a_link_the_file_is_written_that_it_leads_to(link: Link, path: Path, tmp_path: Path) -> None:
    real = other_folder(tmp_path) / "real.json"
    edit(real, "hall")
    file = HomeFile(link, linked(path, real), wanted=False)
    await file._once()
    await Inventories(link, file, SETTINGS).replace(json.dumps(document("den")).encode(), None)
    assert (written(real), is_link(path)) == (["den"], True)
    assert (await file.prepare(EMPTY)).parent == real.parent, "which may be another file system"


async def test_nothing_is_left_of_what_was_refused(link: Link, path: Path, file: HomeFile) -> None:
    edit(path, "hall")
    await file._once()
    with pytest.raises(Problem, match="by now"):
        await Inventories(link, file, SETTINGS).replace(b"{}", '"older"')
    assert {one.name for one in path.parent.iterdir()} == {"home.json", ".home.json.lock"}


async def test_of_two_who_know_the_same_one_is_taken_and_the_other_told(link: Link, path: Path, file: HomeFile) -> None:
    edit(path, "hall")
    await file._once()
    inventories, tag = Inventories(link, file, SETTINGS), f'"{(await fetch(link)).revision}"'

    async def put(area: str) -> str:
        try:
            await inventories.replace(json.dumps(document(area)).encode(), tag)
        except Problem as problem:
            return problem.code
        return area

    answers = await asyncio.gather(*map(put, ("den", "attic", "shed")))
    winners = [answer for answer in answers if answer != "home_changed"]
    assert len(winners) == 1
    assert (await areas(link), written(path)) == (winners, winners)


async def test_a_file_has_one_writer_at_a_time_in_all_processes(
    link: Link, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a slow one would put an older inventory over a newer one, which then looks like an edit."""
    monkeypatch.setattr(home_file, "LOCK_S", 0.05)
    edit(path, "hall")
    first, second = (HomeFile(link, path, wanted=False) for _ in range(2))
    async with first.held():
        with pytest.raises(Problem, match="another process holds it"):
            await Inventories(link, second, SETTINGS).replace(b"{}", None)
        with pytest.raises(TimeoutError):
            await second._once()
        assert (await areas(link), written(path)) == ([], ["hall"])
    await second._once()
    assert await areas(link) == ["hall"]


async def test_a_document_of_a_later_release_leaves_a_workers_copy_as_it_is(link: Link) -> None:
    book = HomeBook()
    await furnish(link, check(document("hall")))
    await book.refresh(link)
    await link.call("HSET", keys.HOME, "revision", "later", "document", b'{"v": 2}')
    assert not await book.refresh(link)
    assert [area.id for area in book.current().areas] == ["hall"]
    assert book._seen == "later", "it is not read and complained of again and again"
    await link.call("DEL", keys.HOME)
    assert await book.refresh(link)
    assert book.current() == EMPTY


async def test_a_suspect_in_a_process_of_its_own_knows_the_home_before_it_begins(link: Link) -> None:
    book = HomeBook()
    await furnish(link, check(document("hall")))
    await _spawning(link, SETTINGS, Household.definition, book)
    assert [area.id for area in book.current().areas] == ["hall"]


async def test_a_worker_knows_the_home_before_it_claims_anything(link: Link, redis_url: str) -> None:
    await furnish(link, check(document("hall")))
    worker = LoopWorker({}, SETTINGS, redis_url, handle_signals=False)
    await worker._join(link)
    assert [area.id for area in worker.home.current().areas] == ["hall"]


async def test_the_doctor_says_what_is_known_of_the_home_and_what_is_wrong_with_its_file(
    link: Link, path: Path, file: HomeFile, redis_url: str
) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert home(client).level == "ok"
        assert "nothing is known of it yet" in home(client).detail
        edit(path, "hall")
        await file._once()
        assert home(client).detail == f"1 areas, 0 devices, 0 scenes, revision {check(document('hall')).revision}"
        edit(path, "hall", "hall")
        await file._once()
        found = home(client)
        assert (found.level, found.remedy) == ("warn", "put home.json right")
        assert "home.json: /areas/1/id: 'hall' is that of /areas/0 already" in found.detail
        assert served(client) == check(document("hall")), "by which devices are judged"
    assert await trouble(link) is not None
