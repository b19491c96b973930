"""A rollout that is flashed back: not for a report that cannot be written, and all of it where it has to be."""

import errno
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from backend_loop.files import File
from backend_loop.missions import firmware_rollout
from backend_loop.missions.firmware_rollout import MOST, FirmwareRollout, has_way_back
from backend_loop.missions.firmware_update import FirmwareUpdate
from backend_loop.testing import Bench, Kill, Trial
from backend_loop.testing.faults import Call, Fault, refused
from shared.settings import Settings


def named(count: int, letters: int = 0) -> list[str]:
    return [f"gadget.{n:04}".ljust(letters, "x") for n in range(count)]


class Field:
    """Gadgets, each of which shows at once what it was flashed with last."""

    def __init__(self, gadgets: list[str]) -> None:
        self.gadgets = dict.fromkeys(gadgets, ("1.0.0", ""))
        self.broken = frozenset[str]()
        self.flashed = Counter[tuple[str, str]]()
        self.most = 1 << 20
        self.script = {"GET gadgets/": self.listed, "GET gadgets/*": self.look, "POST gadgets/*/flash": self.flash}

    def listed(self, _call: Call) -> Mapping[str, Any]:
        return {"gadgets": [self.shown(one) for one in self.gadgets], "more": False}

    def look(self, call: Call) -> Mapping[str, Any]:
        return self.shown(call.path.rpartition("/")[2])

    def flash(self, call: Call) -> Mapping[str, Any] | Fault:
        id_ = call.path.split("/")[1]
        if id_ in self.broken:
            return refused("bricked", status=409)
        before, self.gadgets[id_] = self.gadgets[id_][0], (call.body["version"], call.key)
        self.flashed[id_, call.body["version"]] += 1
        return {"id": id_, "flash": call.key, "before": before, "accepted_at": 0, "takes_ms": 0}

    def shown(self, id_: str) -> dict[str, Any]:
        version, flash = self.gadgets[id_]
        return {
            "id": id_,
            "version": version,
            "flash": flash,
            "last_flashed": 0 if flash else None,
            "flashing": None,
            "online": True,
            "observed_at": 0,
        }

    def bench(self, files: Path) -> Bench:
        settings = Settings(_env_file=None, max_output=self.most)
        return Bench(FirmwareRollout, FirmwareUpdate, outside=self.script, files=files, settings=settings)

    def roll_out(self, files: Path, *, kill: Sequence[Kill] = (), **payload: Any) -> Trial:
        wish = {"version": "2.0.0", "gadgets": list(self.gadgets), "canaries": 0, "rollback": True}
        return self.bench(files).run(wish | payload, kill=kill)


def full(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The disk takes no report so many times."""
    publish, left = File.publish, [None] * times

    def failing(file: File) -> str:
        if left:
            left.pop()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return publish(file)

    monkeypatch.setattr(File, "publish", failing)


def test_for_a_report_that_cannot_be_written_nothing_is_flashed_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(monkeypatch, 100)
    field = Field(named(3))
    mission = field.roll_out(tmp_path)
    assert mission.status == "SUCCEEDED", mission.told()
    assert mission.result is not None
    assert mission.result["ended"] == {"confirmed": 3}
    assert (mission.result["report"], mission.result["no_report"]) == (None, "[Errno 28] No space left on device")
    assert {version for version, _ in field.gadgets.values()} == {"2.0.0"}
    assert not any(path.is_file() for path in tmp_path.rglob("*")), "halves would only fill the disk"


def test_it_is_tried_some_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full(monkeypatch, 3)
    mission = Field(named(3)).roll_out(tmp_path)
    assert mission.result is not None
    assert mission.result["report"] == f"/v1/files/{mission.task_id}/report.jsonl"
    assert "no_report" not in mission.result


def test_all_are_flashed_back_though_not_all_of_it_is_in_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firmware_rollout, "BACK_AT_ONCE", 10)
    field = Field(named(100))
    field.broken, field.most = frozenset({"gadget.0099"}), 91_000
    mission = field.roll_out(tmp_path, budget={"count": 0}, at_once=20)
    assert mission.status == "FAILED"
    assert mission.error is not None
    assert (mission.error["code"], mission.undone) == ("child_failed", ["NOTING"])
    assert {version for version, _ in field.gadgets.values()} == {"1.0.0"}


def test_a_worker_that_dies_between_the_portions_has_no_gadget_flashed_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(firmware_rollout, "BACK_AT_ONCE", 2)
    field, kills = Field(named(7)), [Kill.within("UNDO_NOTING")] * 5
    field.broken = frozenset({"gadget.0006"})
    mission = field.roll_out(tmp_path, kill=kills, budget={"count": 0}, at_once=2)
    assert (mission.undone, mission.killed) == (["NOTING"], tuple(kills))
    assert field.flashed == {(one, version): 1 for one in named(6) for version in ("1.0.0", "2.0.0")}


def test_what_could_not_be_flashed_back_is_not_flashed(tmp_path: Path) -> None:
    assert has_way_back(dict.fromkeys(named(MOST), "1.0.0-rc.1+20260101"), "2.0.0-rc.1+20260101")
    assert not has_way_back(dict.fromkeys(named(MOST), "1" * 50), "2.0.0")
    assert not has_way_back(dict.fromkeys(named(MOST), "1.0.0"), "2" * 50)
    field = Field(named(MOST, letters=40))
    mission = field.roll_out(tmp_path)
    assert mission.error is not None
    assert mission.error["message"].startswith("NoWayBackError: 1000 gadgets with names and versions as long as these")
    assert {version for version, _ in field.gadgets.values()} == {"1.0.0"}
