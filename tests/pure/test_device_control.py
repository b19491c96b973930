"""`device.control` as data: its machine, and a payload schema that refuses at the door what devices would refuse."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import ValidationError

from backend_loop.missions.device_control import DeviceControl
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
