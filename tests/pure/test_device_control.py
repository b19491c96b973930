"""`device.control` as data: its machine, and a payload schema that refuses at the door what devices would refuse."""

from typing import Any

import httpx
import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import ValidationError

from backend_loop.missions.device_control import DeviceControl
from backend_loop.testing import Bench, lost
from backend_loop.testing.home import Gadget, Home, HomeWire
from shared.actions import ACTIONS, CHANGES

DEFINITION = DeviceControl.definition
DOOR = jsonschema_rs.Draft202012Validator(DEFINITION.row().payload_schema)

VALUES = some.one_of(
    some.none(),
    some.booleans(),
    some.integers(-10, 110),
    some.floats(-10, 110, allow_nan=False),
    some.sampled_from(["cool", "26", "on", ""]),
    some.lists(some.integers(), max_size=1),
)


def accepted(payload: dict[str, Any]) -> bool:
    try:
        DeviceControl.Payload.model_validate(payload)
    except ValidationError:
        return False
    return True


@given(action=some.sampled_from([*ACTIONS, *CHANGES, "fly"]), value=VALUES)
def test_the_door_and_the_type_agree_about_every_action_and_value(action: str, value: Any) -> None:
    payload = {"entity": "light.x", "action": action, "value": value}
    assert DOOR.is_valid(payload) == accepted(payload)


@pytest.mark.parametrize(
    ("payload", "good"),
    [
        ({"entity": "light.x", "action": "turn_on"}, True),
        ({"entity": "climate.living_room", "action": "set_temperature", "value": 26}, True),
        ({"entity": "light.x", "action": "turn_on", "why": "unknown fields are kept and ignored"}, True),
        ({"entity": "light.x", "action": "turn_on", "conflict": "force"}, True),
        ({"entity": "light.x", "action": "turn_on", "conflict": "maybe"}, False),
        ({"entity": "light.x", "action": "set_brightness"}, False),
        ({"entity": "", "action": "turn_on"}, False),
        ({"action": "turn_on"}, False),
        ({"entity": "light.x"}, False),
        ({"entity": 5, "action": "turn_on"}, False),
    ],
    ids=str,
)
def test_payloads(payload: dict[str, Any], good: bool) -> None:
    assert (DOOR.is_valid(payload), accepted(payload)) == (good, good)


def test_a_wrong_value_is_pointed_at() -> None:
    faults = list(DOOR.iter_errors({"entity": "light.x", "action": "set_brightness", "value": 1000}))
    assert [fault.instance_path for fault in faults] == [["value"]]


def test_its_states_are_those_of_the_contract() -> None:
    assert DEFINITION.plan.initial == "FETCHING_CURRENT_STATE"
    assert list(DEFINITION.states) == [
        "FETCHING_CURRENT_STATE",
        "DECIDING_ACTION",
        "ALREADY_DONE",
        "EXECUTING_COMMAND",
        "VERIFYING_RESULT",
    ]
    assert [name for name, spec in DEFINITION.states.items() if spec.acting] == ["EXECUTING_COMMAND"]
    assert DEFINITION.row().target == "entity"


SINCE = "2025-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("before", "stands_still", "value", "sentence"),
    [
        ("on", True, "off", f"light.hall was told, and its report is older than that: power on, as of {SINCE}"),
        ("off", True, "off", f"light.hall was told, and its report is older than that: power off, as of {SINCE}"),
        ("off", False, "off", "light.hall shows power off although it was told otherwise"),
        ("off", False, "on", "light.hall shows power on, but as the same version of its state as before, when it "),
    ],
)
def test_what_is_not_confirmed_says_why(
    monkeypatch: pytest.MonkeyPatch, before: str, stands_still: bool, value: str, sentence: str
) -> None:
    def shown(home: HomeWire, gadget: Gadget) -> httpx.Response:
        power = value if gadget.fence and not stands_still else before
        at = SINCE if stands_still else home._now()
        return httpx.Response(200, json={"value": {"power": power}, "version": "1", "observed_at": at})

    monkeypatch.setattr(HomeWire, "_shown", shown)
    failed = Bench(DeviceControl, home={"light.hall": {"power": "off"}}).run(
        {"entity": "light.hall", "action": "turn_on"}
    )
    error = failed.error or {}
    assert (failed.status, error["code"]) == ("FAILED", "unconfirmed")
    assert error["message"].startswith(sentence), error["message"]


def test_of_a_device_that_is_not_there_it_is_said_where_those_are_that_are() -> None:
    failed = Bench(DeviceControl, home={}).run({"entity": "light.nowhere", "action": "turn_on"})
    error = failed.error or {}
    assert (error["code"], error["attempts"]) == ("device_refused", 1), "the contract has no nearer word"
    assert error["message"] == "there is no light.nowhere in this home; see what there is: dualloop home ls"


def test_one_that_is_gone_after_it_may_have_obeyed_has_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = HomeWire._shown

    def gone(home: HomeWire, gadget: Gadget) -> httpx.Response:
        return home._no(404, "gone") if gadget.fence else shown(home, gadget)

    monkeypatch.setattr(HomeWire, "_shown", gone)
    home = Home({"light.hall": {"power": "off"}}, act={"light.hall": [lost()]})
    error = Bench(DeviceControl, home=home).run({"entity": "light.hall", "action": "turn_on"}).error or {}
    assert error["code"] == "unconfirmed"
    assert error["message"].startswith("light.hall may have done it, and cannot be looked at any more: there is no ")
