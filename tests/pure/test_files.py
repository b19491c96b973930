"""Files of missions: whole or not there, and safe from whoever has lost its lease."""

import asyncio
from pathlib import Path

import pytest

from backend_loop.files import NO_FILES, File, FileNameError, Files, FilesTooLargeError, LostPartError, NoFileError
from backend_loop.store import LapsedError

TASK = "0" * 40
OPEN = Path("/proc/self/fd")
LINK = f"/v1/files/{TASK}/report.csv"


def goes_on() -> None:
    pass


def lapsed() -> None:
    raise LapsedError("the lease has run out")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "files")


def file(files: Files, fence: int = 1, name: str = "report.csv") -> File:
    return files.file(TASK, name, fence, goes_on)


def write(one: File, length: int, data: bytes) -> None:
    with one.resume(length) as stream:
        stream.write(data)


def names(files: Files) -> list[str]:
    assert files.folder is not None
    return sorted(path.name for path in (files.folder / TASK).iterdir())


def test_a_file_is_there_once_it_is_published_and_whole(files: Files) -> None:
    one = file(files)
    one.path.write_bytes(b"all of it")
    with pytest.raises(NoFileError):
        files.find(one.link)
    assert one.publish() == LINK
    assert files.find(LINK).read_bytes() == b"all of it"
    assert names(files) == ["report.csv"]


def test_a_later_one_of_the_name_takes_its_place(files: Files) -> None:
    for data in (b"first", b"second"):
        one = file(files)
        write(one, 0, data)
        one.publish()
    assert files.find(LINK).read_bytes() == b"second"


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "../a", "a\\b", "a\0", "a\n", "ä", "a" * 101, "a b", "%2e%2e", "a\u202e"]
)
def test_no_path_can_be_made_of_a_name(files: Files, name: str) -> None:
    with pytest.raises(FileNameError):
        file(files, name=name)
    with pytest.raises(NoFileError):
        files.find(f"/v1/files/{TASK}/{name}")


@pytest.mark.parametrize(
    "link", ["", "report.csv", f"/v1/files/../{TASK}/a", "/v1/files/x/a", f"http://h{LINK}", LINK + "\n"]
)
def test_what_is_no_link_finds_nothing(files: Files, link: str) -> None:
    write(one := file(files), 0, b"x")
    one.publish()
    with pytest.raises(NoFileError):
        files.find(link)


def test_what_is_linked_from_elsewhere_is_not_found(files: Files, tmp_path: Path) -> None:
    write(one := file(files), 0, b"x")
    one.publish()
    secret = tmp_path / "secret"
    secret.write_text("of somebody else")
    files.find(LINK).with_name("linked").symlink_to(secret)
    with pytest.raises(NoFileError):
        files.find(f"/v1/files/{TASK}/linked")


def test_the_next_run_goes_on_behind_what_is_right(files: Files) -> None:
    write(file(files, fence=1), 0, b"kept|not checkpointed")
    write(second := file(files, fence=2), 5, b"and more")
    second.publish()
    assert files.find(LINK).read_bytes() == b"kept|and more"
    assert names(files) == ["report.csv"], "what earlier runs have left is gone"


def test_one_that_has_lost_its_lease_spoils_nothing(files: Files) -> None:
    with file(files, fence=1).resume(0) as old:
        old.write(b"kept|")
        old.flush()
        second = file(files, fence=2)
        with second.resume(5) as new:
            old.write(b"rubbish")
            old.flush()
            new.write(b"right")
        late = files.file(TASK, "report.csv", 1, lapsed)
        write(late, 0, b"rubbish")
        second.publish()
        with pytest.raises(LapsedError):
            late.publish()
    assert files.find(LINK).read_bytes() == b"kept|right"


def test_what_nobody_writes_to_any_more_is_taken_over_as_it_is(files: Files) -> None:
    """However large it is: nothing is copied."""
    write(first := file(files, fence=1), 0, b"kept|not checkpointed")
    inode = first.path.stat().st_ino
    write(second := file(files, fence=2), 5, b"copied")
    assert second.path.stat().st_ino != inode, "the first one lives"
    inode = second.path.stat().st_ino
    del second
    write(third := file(files, fence=3), 5, b"taken over")
    assert third.path.stat().st_ino == inode
    assert third.path.read_bytes() == b"kept|taken over"


def test_whoever_still_has_the_stream_may_write_yet(files: Files) -> None:
    with file(files, fence=1).resume(0) as stream:  # the file itself is forgotten, not the stream
        stream.write(b"kept|")
        stream.flush()
        second = file(files, fence=2)
        second.resume(5).close()
        stream.write(b"rubbish")
    assert second.path.read_bytes() == b"kept|"


def test_no_descriptor_is_left_behind(files: Files) -> None:
    before = len([*OPEN.iterdir()])
    for fence in range(1, 20):
        one = file(files, fence)
        write(one, min(4, 4 * (fence - 1)), b"some")
    one.publish()
    del one
    assert len([*OPEN.iterdir()]) == before


def test_two_tries_under_one_lease_have_a_place_each(files: Files) -> None:
    first, second = file(files), file(files)
    with first.resume(0) as stuck:
        stuck.write(b"kept|")
        stuck.flush()
        with second.resume(5) as stream:
            stuck.write(b"rubbish")
            stuck.flush()
            stream.write(b"right")
    second.publish()
    assert files.find(LINK).read_bytes() == b"kept|right"


def test_of_several_runs_the_newest_that_came_so_far_counts(files: Files) -> None:
    write(file(files, fence=9), 0, b"older, longer")
    parts = [(10, b"newer, enough"), (11, b"short")]
    for fence, data in parts:
        file(files, fence=fence).path.write_bytes(data)
    write(last := file(files, fence=12), 7, b"!")
    assert last.path.read_bytes() == b"newer, !"


def test_a_run_after_the_publishing_begins_with_what_was_published(files: Files) -> None:
    """Killed between the publishing and the commit that says so."""
    write(one := file(files, fence=1), 0, b"all of it")
    one.publish()
    write(again := file(files, fence=2), 9, b"")
    again.publish()
    assert files.find(LINK).read_bytes() == b"all of it"


def test_what_is_not_there_is_said_to_be_lost(files: Files) -> None:
    file(files, fence=1).path.write_bytes(b"1234")
    with pytest.raises(LostPartError):
        file(files, fence=2).resume(5)
    write(anew := file(files, fence=3), 0, b"anew")
    assert anew.path.read_bytes() == b"anew"


def test_names_that_look_like_parts_of_others_are_told_apart(files: Files) -> None:
    write(odd := file(files, name="report.csv.1-0.part"), 0, b"odd")
    write(one := file(files), 0, b"plain")
    one.publish()
    odd.publish()
    assert names(files) == ["report.csv", "report.csv.1-0.part"]


def test_where_no_files_are_kept_it_is_said() -> None:
    with pytest.raises(RuntimeError, match="keeps files"):
        NO_FILES.file(TASK, "a", 1, goes_on)


def test_they_are_the_owner_s_alone(files: Files) -> None:
    write(one := file(files), 0, b"x")
    one.publish()
    found = files.find(LINK)
    assert (found.stat().st_mode & 0o777, found.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_mission_may_write_so_much_and_what_is_more_is_not_left_on_the_disk(tmp_path: Path) -> None:
    files = Files(tmp_path / "files", most=10)
    one, other = file(files), file(files, name="other.csv")
    write(one, 0, b"x" * 6)
    one.publish()
    write(other, 0, b"y" * 4)
    files.bound(TASK)
    other.path.write_bytes(b"y" * 5)
    with pytest.raises(FilesTooLargeError, match="its files have 11 bytes, of 10 allowed"):
        files.bound(TASK)
    assert names(files) == ["report.csv"]
    assert files.find(LINK).read_bytes() == b"x" * 6


def test_nor_is_more_published(tmp_path: Path) -> None:
    one = file(Files(tmp_path / "files", most=10))
    one.path.write_bytes(b"x" * 11)
    with pytest.raises(FilesTooLargeError):
        one.publish()


def test_a_file_that_is_begun_anew_counts_once(tmp_path: Path) -> None:
    """What was published stays until the new one is whole; a run that has lost its lease may hold its part yet."""
    files = Files(tmp_path / "files", most=10)
    for fence in (1, 2, 3):
        one = file(files, fence)
        write(one, 0, b"x" * 9)
        if fence != 2:
            one.publish()
    assert files.find(LINK).read_bytes() == b"x" * 9


async def test_of_who_has_written_nothing_nothing_is_asked(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()

    async def to_thread(_look: object, task_id: str) -> None:
        asked.append(task_id)

    monkeypatch.setattr(asyncio, "to_thread", to_thread)
    for kept in (files, NO_FILES):
        kept.bound(TASK)
        await kept.bounded(TASK)
    assert asked == []
    write(file(files), 0, b"x")
    await files.bounded(TASK)
    assert asked == [TASK]
