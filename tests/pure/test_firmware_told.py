"""A rollout that was stopped, or is flashed back: who failed, who was only told to end, and who was not touched."""

from typing import Any

import pytest
from pydantic import ValidationError

from backend_loop.missions.firmware_rollout import failed
from backend_loop.missions.firmware_update import FirmwareUpdate
from backend_loop.testing import Bench, Trial


def line(gadget: str, status: str, said: str, message: str | None = None) -> dict[str, Any]:
    return {"gadget": gadget, "status": status, "said": said, "message": message, "task_id": "t"}


def test_who_was_told_to_end_has_not_failed_and_does_not_stand_for_those_who_have() -> None:
    lines = [
        line("g1", "CANCELLED", "requested"),
        line("g2", "FAILED", "device_refused", "g2 is bricked"),
        line("g3", "CANCELLED", "requested"),
    ]
    sentence = "1 of 9 failed and 2 were told to end, the first one is g2, device_refused: g2 is bricked"
    assert failed(lines, 9) == sentence


def test_who_ended_otherwise_counts_as_the_budget_counts_it() -> None:
    lines = [line("g1", "CANCELLED", "overridden"), line("g2", "FAILED", "unconfirmed")]
    assert failed(lines, 9) == "2 of 9 failed, the first one is g1, overridden"


def test_none_of_its_own_failed() -> None:
    assert failed([line("g1", "CANCELLED", "requested")], 9) == "0 of 9 failed and 1 was told to end"


def back(**shows: Any) -> Trial:
    gadget = {"id": "g1", "online": False, "flashing": None, "flash": "", "last_flashed": None, "observed_at": 0}
    payload = {"gadget": "g1", "version": "1.0.0", "replaces": "2.0.0", "patience_s": 60}
    return Bench(FirmwareUpdate, outside={"gadgets/g1": {**gadget, **shows}}).run(payload)


def test_what_never_had_our_firmware_is_not_waited_for_to_be_flashed_back() -> None:
    mission = back(version="1.1.0")
    assert (mission.status, mission.reason) == ("CANCELLED", "overridden"), mission.told()
    assert mission.took_s < 10


@pytest.mark.parametrize(
    "shows",
    [
        pytest.param({"version": "2.0.0"}, id="it has it"),
        pytest.param({"version": "1.1.0", "flashing": {"left_ms": 1, "version": "2.0.0"}}, id="it is to have it"),
    ],
)
def test_what_may_have_it_is_waited_for(shows: dict[str, Any]) -> None:
    mission = back(**shows)
    assert mission.error is not None
    assert mission.error["code"] == "device_unreachable", mission.told()


@pytest.mark.parametrize("gadget", [".", "..", ".g"])
def test_no_gadget_leads_to_another_path(gadget: str) -> None:
    with pytest.raises(ValidationError):
        FirmwareUpdate.Payload(gadget=gadget, version="1.0.0")


@pytest.mark.parametrize("nonsense", [["2.0.0"], {}, None, 2], ids=str)
def test_a_version_that_is_nonsense_is_blamed_on_who_said_it(nonsense: Any) -> None:
    mission = back(version=nonsense)
    assert mission.error is not None
    assert mission.error["code"] == "device_unreachable", mission.told()
    assert mission.error["message"].startswith("gadgets gave an answer whose 'version' is no text")
