"""`device.sequence` as data: what the door refuses, and that every way out of the steps leads through `finally`."""

from typing import Any

import jsonschema_rs
import pytest
from pydantic import ValidationError

from backend_loop.missions.device_sequence import ActStep, DeviceSequence, LookStep, WaitStep

DEFINITION = DeviceSequence.definition
DOOR = jsonschema_rs.Draft202012Validator(DEFINITION.row().payload_schema)

UNLOCK = {"entity": "lock.front_door", "action": "unlock"}
LOCK = {"entity": "lock.front_door", "action": "lock"}
LOOK = {"entity": "sensor.front_door", "expect": {"contact": "closed"}, "within_s": 30}


def accepted(payload: dict[str, Any]) -> bool:
    try:
        DeviceSequence.Payload.model_validate(payload)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("payload", "good"),
    [
        ({"steps": [UNLOCK, LOOK, {"wait_s": 5}], "finally": [LOCK]}, True),
        ({"steps": [{"entity": "sensor.front_door"}]}, True),
        ({"steps": [{**UNLOCK, "conflict": "force"}], "finally": [{**LOCK, "conflict": "respect_newer"}]}, True),
        ({"steps": [UNLOCK], "name": "postman"}, True),
        ({"steps": []}, False),
        ({"steps": [UNLOCK] * 51}, False),
        ({"finally": [LOCK]}, False),
        ({"steps": [{}]}, False),
        ({"steps": ["unlock"]}, False),
        ({"steps": [{**UNLOCK, "action": "fly"}]}, False),
        ({"steps": [{**UNLOCK, "value": 5}]}, False),
        ({"steps": [{**UNLOCK, "wait_s": 5}]}, False),
        ({"steps": [{"entity": "sensor.front_door", "expcet": {"contact": "closed"}}]}, False),
        ({"steps": [{**LOOK, "expect": {}}]}, False),
        ({"steps": [{**LOOK, "within_s": -1}]}, False),
        ({"steps": [{"wait_s": 0}]}, False),
        ({"steps": [{"wait_s": 5, "entity": "sensor.front_door"}]}, False),
        ({"steps": [UNLOCK], "finally": [LOOK]}, False),
        ({"steps": [UNLOCK], "finally": [{**LOCK, "conflict": "maybe"}]}, False),
        ({"steps": [UNLOCK], "finally": [LOCK] * 11}, False),
    ],
    ids=str,
)
def test_the_door_and_the_type_agree(payload: dict[str, Any], good: bool) -> None:
    assert (DOOR.is_valid(payload), accepted(payload)) == (good, good)


@pytest.mark.parametrize(
    ("step", "where", "what"),
    [
        ({**UNLOCK, "action": "set_brightness", "value": 1000}, ["steps", 0, "value"], "1000 is greater than"),
        ({"entity": "a", "expcet": {}}, ["steps", 0], "'expcet' was unexpected"),
        ({"wait_s": 0}, ["steps", 0, "wait_s"], "0 is less than or equal to"),
    ],
)
def test_a_fault_is_told_of_the_kind_of_step_that_is_meant(step: Any, where: list[str | int], what: str) -> None:
    [fault] = DOOR.iter_errors({"steps": [step]})
    assert fault.instance_path == where
    assert what in fault.message


def test_a_step_is_known_by_its_fields() -> None:
    payload = DeviceSequence.Payload.model_validate({"steps": [UNLOCK, LOOK, {"wait_s": 5}], "finally": [LOCK]})
    assert [type(step) for step in payload.steps] == [ActStep, LookStep, WaitStep]
    assert payload.last[0].conflict == "force"


def test_the_steps_are_undone_by_finally_and_that_is_tried_for_ten_minutes() -> None:
    row = DEFINITION.row()
    assert (row.target, row.undos) == (None, ["DOING_STEPS"])
    assert row.states["DOING_STEPS"]["acting"] is True, "so that a cancel amid the first step is undone too"
    assert row.states["DOING_STEPS"]["undo"]["retry"]["max_elapsed_s"] == 600
