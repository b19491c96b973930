"""``dualloop missions export`` writes a file of its own, or none."""

import json
import stat
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from dualloop.cli import export
from dualloop.errors import Refusal


@pytest.fixture(autouse=True)
def _there(monkeypatch: pytest.MonkeyPatch) -> None:
    mission: dict[str, Any] = defaultdict(lambda: None, type="shop.hold", task_id="m", history=[])
    monkeypatch.setattr(export, "ask", lambda _work: mission)


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "letter.json"
    file.write_text("of yesterday")
    with pytest.raises(Refusal, match=r"letter\.json is there already: name another one, or remove it"):
        export.export("m", file)
    assert file.read_text() == "of yesterday"


def test_nor_is_one_written_where_a_link_leads(tmp_path: Path) -> None:
    """It may be somebody else's, and lead where they can read it."""
    (tmp_path / "letter.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refusal, match=r"letter\.json"):
        export.export("m", tmp_path / "letter.json")
    assert not (tmp_path / "elsewhere").exists()


def test_it_is_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "letter.json"
    export.export("m", file)
    assert json.loads(file.read_text())["type"] == "shop.hold"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
