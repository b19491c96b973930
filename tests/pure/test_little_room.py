"""A disk that is full, or nearly so, is told in a sentence."""

import shutil
from pathlib import Path

import pytest

from dualloop import stack
from dualloop.errors import Refusal
from dualloop.home.inventory import furnish
from dualloop.state_folder import write_whole
from dualloop.terminal import Terminal


def test_what_cannot_be_written_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "up.json").mkdir()
    with pytest.raises(Refusal, match=r"up\.json cannot be used: .* DUALLOOP_STATE_DIR"):
        write_whole(tmp_path / "up.json", "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["up.json"]


def test_a_home_that_cannot_be_furnished_is_no_reason_to_stop(tmp_path: Path) -> None:
    furnish(tmp_path / "no" / "home.json")


@pytest.mark.parametrize(("free", "told"), [(12_345, "Only 12 kB are free"), (10**9, "")])
def test_little_room_is_told_before_anything_fails(
    free: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**10, 10**10 - free, free))
    stack._tell_of_little_room(tmp_path, Terminal())
    said = capsys.readouterr().out
    assert told in said
    assert bool(said) == bool(told)
